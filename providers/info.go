package providers

import (
	"bytes"
	"maps"
	"strings"
	"time"
)

// Kind is the kind of an entry.
type Kind uint8

// The kinds of entries. Other entries of a backend (devices, sockets) are neither listed nor
// touched.
const (
	KindUnknown Kind = iota
	KindFile
	KindDir
	KindSymlink // the content is the target
)

// String is "file", "dir", "symlink" or "unknown".
func (k Kind) String() string {
	switch k {
	case KindFile:
		return "file"
	case KindDir:
		return "dir"
	case KindSymlink:
		return "symlink"
	}
	return "unknown"
}

// Version tells states of one entry apart. Versions of different entries cannot be compared.
// Compare with Matches.
type Version struct {
	ETag     string // opaque; changes with the content, and may stay when only metadata change
	Modified int64  // the backend's own time of the change, nanoseconds since 1970; 0: not told
	Size     int64  // bytes of content
}

// IsZero reports whether v is no version, as for directories.
func (v Version) IsZero() bool { return v == Version{} }

// Matches reports whether v and w are the same state. Services do not tell Modified in every
// answer; where v or w lacks it, the rest decides. A zero Version matches nothing.
func (v Version) Matches(w Version) bool {
	if v.ETag == "" || v.ETag != w.ETag || v.Size != w.Size {
		return false
	}
	return v.Modified == w.Modified || v.Modified == 0 || w.Modified == 0
}

// AttrSet is a set of POSIX attributes.
type AttrSet uint8

// The members of AttrSet.
const (
	AttrMode AttrSet = 1 << iota
	AttrOwner
	AttrModTime
	// AttrExec is for stores that keep of a file's mode only whether its owner may execute it,
	// as git does: they report 0755 or 0644, take AttrMode for AttrExec, and keep nothing for
	// directories and links.
	AttrExec
	AttrXattrs
)

// Has reports whether all of t is in s.
func (s AttrSet) Has(t AttrSet) bool { return s&t == t }

// String lists the members: "mode,owner,mtime".
func (s AttrSet) String() string {
	var names []string
	for i, name := range []string{"mode", "owner", "mtime", "exec", "xattrs"} {
		if s.Has(1 << i) {
			names = append(names, name)
		}
	}
	return strings.Join(names, ",")
}

// Attr are POSIX attributes as a backend stores them. Valid tells which fields are set; the
// others were never stored.
type Attr struct {
	Valid   AttrSet
	Mode    uint32 // permission bits, 07777; see AttrExec
	UID     uint32
	GID     uint32
	ModTime time.Time // time of last content change that a program should see
	// Xattrs are the extended attributes, all of them, by the names that
	// programs use ("user.x"); nil and empty are the same.
	Xattrs map[string][]byte
}

// Keep is the part of a, given for a file, that a store with the set keeps.
func (a Attr) Keep(set AttrSet) Attr {
	exec := a.Valid&(AttrMode|AttrExec) != 0 && a.Mode&0o100 != 0
	kept := Attr{Valid: a.Valid & set &^ AttrExec}
	if kept.Valid.Has(AttrMode) {
		kept.Mode = a.Mode
	}
	if kept.Valid.Has(AttrOwner) {
		kept.UID, kept.GID = a.UID, a.GID
	}
	if kept.Valid.Has(AttrModTime) {
		kept.ModTime = a.ModTime
	}
	if kept.Valid.Has(AttrXattrs) {
		kept.Xattrs = cloneXattrs(a.Xattrs)
	}
	if set.Has(AttrExec) {
		kept.Valid, kept.Mode = kept.Valid|AttrExec, 0o644
		if exec {
			kept.Mode = 0o755
		}
	}
	return kept
}

// Merge is a with the members of change that are valid.
func (a Attr) Merge(change Attr) Attr {
	if change.Valid&(AttrMode|AttrExec) != 0 {
		a.Mode = change.Mode
	}
	if change.Valid.Has(AttrOwner) {
		a.UID, a.GID = change.UID, change.GID
	}
	if change.Valid.Has(AttrModTime) {
		a.ModTime = change.ModTime
	}
	if change.Valid.Has(AttrXattrs) {
		a.Xattrs = cloneXattrs(change.Xattrs)
	}
	a.Valid |= change.Valid
	return a
}

// Equal reports whether a and b are the same attributes.
func (a Attr) Equal(b Attr) bool {
	return a.Valid == b.Valid && a.Mode == b.Mode && a.UID == b.UID && a.GID == b.GID && a.ModTime.Equal(b.ModTime) &&
		maps.EqualFunc(a.Xattrs, b.Xattrs, bytes.Equal)
}

func cloneXattrs(all map[string][]byte) map[string][]byte {
	if len(all) == 0 {
		return nil
	}
	clone := make(map[string][]byte, len(all))
	for name, value := range all {
		clone[name] = bytes.Clone(value)
	}
	return clone
}

// Info describes an entry.
type Info struct {
	Locator Locator
	Kind    Kind
	Size    int64 // bytes of content, 0 for a directory
	Version Version
	// Digest is a hash of the content as "algorithm:hex", for instance
	// "sha256:...", when the backend knows one without reading; else "".
	Digest string
	Attr   Attr
	// Metadata are the entry's own names and values; nil and empty are the same. Names are
	// lower-case ASCII, values any bytes. Those with the prefix HeaderMetadata are headers that
	// the entry is served with.
	Metadata map[string]string
	// Opaque: the store declares the content to be no text, so that lines of two versions are
	// not merged, whatever the content is.
	Opaque bool
	// Untold is for entries of an incomplete listing. If not 0, the entry has extended
	// attributes or metadata that the listing left out and Stat tells; the number changes with
	// them. The values in Attr are right.
	Untold uint32
}

// ModTime is the time of the last change to show for the entry: the stored
// one, else the backend's, else zero. On synced backends it is a hint, not a
// total order.
func (i Info) ModTime() time.Time {
	switch {
	case i.Attr.Valid.Has(AttrModTime):
		return i.Attr.ModTime
	case i.Version.Modified != 0:
		return time.Unix(0, i.Version.Modified)
	}
	return time.Time{}
}
