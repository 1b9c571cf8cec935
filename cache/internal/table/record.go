package table

import "github.com/wsmount/wsmount/providers"

// Ino is the number of an inode. No number is ever given twice.
type Ino = uint64

// Root is the inode of the volume's root directory. It has no name. The caller
// Puts it when there is none.
const Root Ino = 1

// FirstCookie is the cookie of the first name that a directory gets. Smaller ones are left
// to "." and "..".
const FirstCookie = 3

// State says how much of an inode's content is in the working copy.
type State uint8

// The states of content.
const (
	None    State = iota // nothing; it is fetched when needed
	Partial              // some blocks
	Whole                // all of it
)

// String is "none", "partial" or "whole".
func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return "unknown"
}

var stateNames = [...]string{None: "none", Partial: "partial", Whole: "whole"}

// Link is a name in a directory.
type Link struct {
	Dir  Ino
	Name string
}

// Inode is everything about an inode but its content.
//
// Links, RemoteLinks, Subdirs, Entries and Cookies belong to [Table.SetName], which keeps
// them true; all else belongs to the caller, and the table does not look at it.
type Inode struct {
	Mode                uint32 // as in stat, with the type
	UID, GID            uint32
	Rdev                uint32
	Size                int64 // bytes
	Blocks              int64 // of 512 bytes
	Atime, Mtime, Ctime Time
	Birth               int64 // nanoseconds since 1970, by the clock

	Links       []Link // the local names; a directory has one at most
	RemoteLinks []Link // the names at the remote

	// Of a directory.
	Subdirs uint64 // names of directories
	Entries uint64 // names that stand for an inode
	Cookies uint64 // names that have a local inode
	Loaded  bool   // all names are known
	Listed  int64  // time of the listing that set Loaded, in nanoseconds since 1970
	// From is the old path of a directory that is being renamed at the remote key by key,
	// for as long as some of it is still at that path.
	From string

	// ContentVersion and AttrGen count the states of the content and of the attributes,
	// from 1 on.
	ContentVersion, AttrGen uint64
	State                   State
	// Origin is the remote version that present content was taken from: the base of a change.
	Origin Origin
	// Writing is the intent to change: content may differ from this record.
	Writing bool
	// Synced is the ContentVersion whose bytes are known to be on the disk.
	Synced uint64
	// Suspect content may have lost bytes in a power cut.
	Suspect bool
	// Pulled says that it came from the remote, also when the remote has it no more.
	Pulled bool
	// AttrsUnknown says that a listing left the attributes out.
	AttrsUnknown bool
	// Untold is the Info.Untold of the listing that it was last in.
	Untold uint32

	Target   string            // of a symbolic link
	Xattrs   map[string][]byte // nil and empty are the same
	Metadata map[string]string // the remote's own, handed back unchanged
	// LostName is the name that it lost to a pull while it was open.
	LostName *Link
}

// Origin is a version at the remote and the local content version that is equal to it.
type Origin struct {
	Version        providers.Version
	Digest         string // as in providers.Info; "" when not known
	ContentVersion uint64
}

// Name is the record of one name of a directory: its local side and its remote side.
type Name struct {
	Ino Ino // 0: the name has no local inode
	// Cookie is the place in the order of the directory. The table gives it, and keeps it
	// for as long as Ino is not 0; a caller's value is ignored.
	Cookie  uint64
	Remote  *Remote  // the remote's entry; nil: none
	Seq     uint64   // place in the order of dirty names; 0: it is not dirty
	Local   bool     // never sent to the remote
	Attempt *Attempt // a change under way to the remote
	Held    *Held    // why it is not sent
}

// Remote is the remote's last known entry under a name.
type Remote struct {
	Ino                     Ino // that it came from or went to; 0: no local inode
	Kind                    providers.Kind
	Version                 providers.Version
	Digest                  string // as in providers.Info; "" when not known
	ContentVersion, AttrGen uint64 // of Ino, as the remote has them
}

// Attempt is a change that was begun at the remote and whose answer has not
// been recorded.
type Attempt struct {
	Op                      string // operation id
	ContentVersion, AttrGen uint64 // of the change that was sent
	Kind                    uint8  // the caller's
	Other                   string // the caller's, for instance the other path of a rename
}

// Held says why a change is held back.
type Held struct {
	Reason   string
	Conflict bool
	Remote   []byte // the caller's encoding of the remote's entry
}

// DirEnt is an entry of a directory, for readdir.
type DirEnt struct {
	Name   string
	Ino    Ino
	Cookie uint64
}

// gone reports whether a record is empty, and so need not be stored.
func (n *Name) gone() bool {
	return n.Ino == 0 && n.Remote == nil && n.Seq == 0 && n.Attempt == nil
}

// baseIno is the inode that has this name at the remote, or 0.
func (n *Name) baseIno() Ino {
	if n.Remote == nil {
		return 0
	}
	return n.Remote.Ino
}
