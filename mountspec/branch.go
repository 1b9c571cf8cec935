package mountspec

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strings"
)

// maxID is how long a cleaned id may be, in bytes, its hash included.
const maxID = 64

// ErrNoID says that a branch was asked for without the id that names it. The
// caller makes one when the workspace opens, and keeps it.
var ErrNoID = errors.New("no id to name a branch after")

// BranchForConversation names the branch of a conversation: wsmount/c/<id>.
func BranchForConversation(id string) (string, error) {
	if id == "" {
		return "", ErrNoID
	}
	return "wsmount/c/" + CleanID(id), nil
}

// BranchForTurn names the branch of a turn: wsmount/t/<conversation>/<turn>.
func BranchForTurn(conversation, turn string) (string, error) {
	if conversation == "" || turn == "" {
		return "", ErrNoID
	}
	return "wsmount/t/" + CleanID(conversation) + "/" + CleanID(turn), nil
}

var (
	idForbidden = expression(`[^A-Za-z0-9._-]+|\.\.+`)
	idHashed    = expression(`-[0-9a-f]{12}$`)
)

// CleanID makes an id one segment of a branch name (git-check-ref-format) of
// at most 64 bytes. An id that has to change gets a hash of the original, and
// so does one that looks as if it had one: two ids never share a name.
func CleanID(id string) string {
	clean := strings.Trim(idForbidden().ReplaceAllString(id, "-"), ".-")
	if strings.HasSuffix(clean, ".lock") {
		clean = strings.TrimSuffix(clean, ".lock") + "-lock"
	}
	if clean == id && len(id) <= maxID && id != "" && !idHashed().MatchString(id) {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	hash := hex.EncodeToString(sum[:6])
	if room := maxID - len(hash) - 1; len(clean) > room {
		clean = strings.TrimRight(clean[:room], ".-")
	}
	if clean == "" {
		clean = "id"
	}
	return clean + "-" + hash
}

var branchForbidden = expression(`[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//|/\.|\.lock(/|$)`)

// ValidBranch reports whether git takes the name for a branch
// (git-check-ref-format), and whether it is no option of a command.
func ValidBranch(s string) bool {
	return s != "" && len(s) <= 244 && s != "@" && s != "HEAD" && !branchForbidden().MatchString(s) &&
		!strings.HasPrefix(s, "-") && !strings.HasPrefix(s, ".") && !strings.HasPrefix(s, "/") &&
		!strings.HasSuffix(s, "/") && !strings.HasSuffix(s, ".")
}
