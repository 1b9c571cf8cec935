package attrs

import (
	"bytes"
	"maps"
	"strings"

	"github.com/wsmount/wsmount/cache/internal/table"
)

// Extended attributes at the remote.
//
// A remote that keeps them (providers.AttrXattrs) has those that any owner may set: user.* and
// ACLs. trusted.* and security.* give rights on one machine, as the set-id bits do; they stay
// local, and those that a remote has are sent back unchanged, under stored names that no
// program can ask for.

// foreign is the prefix of the names of remote attributes that have no local meaning.
const foreign = "theirs."

// maxName is the kernel's limit, in bytes.
const maxName = 255

// IsForeign reports whether a stored attribute is a remote one that no program can ask for.
func IsForeign(name string) bool { return strings.HasPrefix(name, foreign) }

// IsShared reports whether a remote may keep an attribute.
func IsShared(name string) bool { return IsACL(name) || strings.HasPrefix(name, "user.") }

// HasSpace reports whether an attribute is in one of the name spaces that are kept.
func HasSpace(name string) bool {
	if IsACL(name) {
		return true
	}
	for _, space := range []string{"user.", "trusted.", "security."} {
		if len(name) > len(space) && strings.HasPrefix(name, space) {
			return true
		}
	}
	return false
}

// Sent are the attributes that the remote keeps.
func Sent(all map[string][]byte) map[string][]byte {
	sent := map[string][]byte{}
	for name, value := range all {
		if name, ok := strings.CutPrefix(name, foreign); ok || IsShared(name) {
			sent[name] = value
		}
	}
	return sent
}

// Own are the attributes that are never sent.
func Own(all map[string][]byte) map[string][]byte {
	own := map[string][]byte{}
	for name, value := range all {
		if !IsShared(name) && !IsForeign(name) {
			own[name] = value
		}
	}
	return own
}

// SameSent reports whether the remote would keep equal extended attributes of two inodes.
func SameSent(a, b *table.Inode) bool {
	return maps.EqualFunc(Sent(a.Xattrs), Sent(b.Xattrs), bytes.Equal)
}

// Set gives an inode that may be edited a value, nil for none. The map is shared with the
// table's record, so it is not changed in place.
func Set(n *table.Inode, name string, value []byte) {
	if _, there := n.Xattrs[name]; !there && value == nil {
		return
	}
	n.Xattrs = maps.Clone(n.Xattrs)
	if value == nil {
		delete(n.Xattrs, name)
		return
	}
	if n.Xattrs == nil {
		n.Xattrs = map[string][]byte{}
	}
	n.Xattrs[name] = value
}
