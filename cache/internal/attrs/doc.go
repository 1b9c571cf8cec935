// Package attrs maps attributes between an inode and the remote: which of them the remote
// keeps, how an inode is made from a remote entry, and which remote attributes have no local
// meaning.
//
//	m := attrs.Mapping{UID: uid, GID: gid, Kept: capabilities.Attributes}
//	n := m.Inode(info, now, born) // of a listing
//	attr := m.Of(n)               // to be sent
//
// Bits and extended attributes that give rights on one machine never come from the remote
// or go there. POSIX ACLs do; an access ACL and the mode are two views of one thing, so a
// change of one changes the other.
//
// It does no I/O and knows inodes as values.
package attrs
