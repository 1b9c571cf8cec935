package providers

import (
	"crypto/md5"
	"crypto/sha256"
	"hash"
	"strings"
)

// Hasher is the hash that a digest ([Info.Digest]) was made with, and its value in lower-case
// hex; nil for a digest that is empty or of an unknown kind.
func Hasher(digest string) (hash.Hash, string) {
	kind, value, _ := strings.Cut(digest, ":")
	switch kind {
	case "sha256":
		return sha256.New(), strings.ToLower(value)
	case "md5":
		return md5.New(), strings.ToLower(value)
	}
	return nil, ""
}
