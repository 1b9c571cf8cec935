// Package attrs has the attributes of an inode on both sides: which of them the remote
// keeps, what an inode is like that comes from there, and what of the remote's has no
// place on this machine.
//
//	m := attrs.Mapping{UID: uid, GID: gid, Kept: capabilities.Attributes}
//	n := m.Inode(info, now, born) // what was listed
//	attr := m.Of(n)               // what is sent
//
// Bits and extended attributes that give rights on one machine never come from the remote
// or go there. POSIX ACLs do; an access ACL and the mode are two views of one thing, so a
// change of one changes the other.
//
// It does no I/O and knows inodes as values.
package attrs
