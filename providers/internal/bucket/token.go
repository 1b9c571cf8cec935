package bucket

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/wsmount/wsmount/providers"
)

// cursor is the place where a listing goes on, with the facts it needs of earlier pages. Keys are
// bytes, as JSON strings are text.
type cursor struct {
	Where string   `json:"w,omitempty"` // hash of the listed place
	Next  string   `json:"n,omitempty"` // the service's token
	Cut   bool     `json:"c,omitempty"` // of the page at Next, keys up to After are done
	After []byte   `json:"a,omitempty"` // the last key passed
	Dir   []byte   `json:"d,omitempty"` // the last directory told: keys in order have all of one together
	Files [][]byte `json:"f,omitempty"` // keys passed of files that may have a directory beside them to come
}

func (c *cursor) isZero() bool { return c.Next == "" && c.After == nil && c.Dir == nil }

// pass notes a key that is done with.
func (c *cursor) pass(key string, isFile bool) {
	c.Files = slices.DeleteFunc(c.Files, func(file []byte) bool { return !before(string(file), key) })
	if isFile {
		c.Files = append(c.Files, []byte(key))
	}
	c.After = []byte(key)
}

// before reports whether keys below file+"/" may still come after key.
func before(file, key string) bool {
	rest, ok := strings.CutPrefix(key, file)
	return ok && (rest == "" || rest[0] <= '/')
}

// isFile reports whether a file was passed that has this key.
func (c *cursor) isFile(key string) bool {
	return slices.ContainsFunc(c.Files, func(file []byte) bool { return string(file) == key })
}

func hashOf(where string) string {
	sum := sha256.Sum256([]byte(where))
	return hex.EncodeToString(sum[:8])
}

// token is the cursor as Page.Next.
func (c *cursor) token(where string) string {
	c.Where = hashOf(where)
	b, err := json.Marshal(c)
	if err != nil {
		panic(err) // strings and bytes always marshal
	}
	return base64.RawURLEncoding.EncodeToString(b)
}

// parseToken reads a cursor back, and refuses one of another place.
func parseToken(token, where string) (cursor, error) {
	var c cursor
	if token == "" {
		return c, nil
	}
	b, err := base64.RawURLEncoding.DecodeString(token)
	if err == nil {
		err = json.Unmarshal(b, &c)
	}
	if err != nil || c.Where != hashOf(where) {
		return cursor{}, fmt.Errorf("a token that this listing did not give: %w", providers.ErrInvalid)
	}
	return c, nil
}
