package lfs

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
)

// Pointer names an object: a repository has it in place of the content.
type Pointer struct {
	OID  string // the SHA-256 of the content, 64 digits in lower case
	Size int64
}

// MaxPointer is how many bytes the text of a pointer has at most.
const MaxPointer = 1023

// versions are the first lines of pointers that git-lfs reads; the last is written.
var versions = []string{"http://git-media.io/v/2", "https://hawser.github.com/spec/v1", "https://git-lfs.github.com/spec/v1"}

// Parse reads the text of a pointer as git-lfs does. One with extensions is not taken for a
// pointer: its object does not hold the plain content.
func Parse(text []byte) (p Pointer, ok bool) {
	if len(text) > MaxPointer {
		return p, false
	}
	var values [3]string
	lines := strings.Split(string(bytes.TrimSpace(text)), "\n")
	if len(lines) != len(values) {
		return p, false
	}
	for i, key := range []string{"version ", "oid sha256:", "size "} {
		if values[i], ok = strings.CutPrefix(strings.TrimSuffix(lines[i], "\r"), key); !ok {
			return p, false
		}
	}
	known := false
	for _, v := range versions {
		known = known || values[0] == v
	}
	size, err := strconv.ParseUint(values[2], 10, 63)
	if !known || err != nil || !isOID(values[1]) {
		return p, false
	}
	return Pointer{values[1], int64(size)}, true
}

func isOID(s string) bool {
	_, err := hex.DecodeString(s)
	return err == nil && len(s) == 64 && s == strings.ToLower(s)
}

// Encode is the text of a pointer, byte for byte as git-lfs writes it.
func (p Pointer) Encode() []byte {
	return fmt.Appendf(nil, "version %s\noid sha256:%s\nsize %d\n", versions[len(versions)-1], p.OID, p.Size)
}

// Digest is the hash of the content as providers.Info has it.
func (p Pointer) Digest() string { return "sha256:" + p.OID }
