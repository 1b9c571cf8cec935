package bucket

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/wsmount/wsmount/providers"
)

// hint is what the metadata of one version of an object say, in 40 bytes. It
// carries neither the key nor the ETag, but hashes of them: by chance, one of
// 2^32 changed versions passes for another, if it was made in the same second.
type hint struct {
	check  uint32 // hash of the version's ETag and size
	at     uint32 // the second of its change, or the last that it can be
	slack  uint16 // how many seconds earlier it can be: the answer to a PUT does not say
	target uint16 // length of a link's target that is in metadata; with hintMore, a hash of what is not told
	bits   uint32 // permissions, and the flags below
	uid    uint32
	gid    uint32
	nsec   uint32 // of mtime
	mtime  int64  // seconds, of any year
}

// The flags of bits. Those from hintMode to hintModTime are AttrSet's.
const (
	hintPerm    = 0o7777
	hintValid   = 12      // by how much AttrSet is shifted
	hintLink    = 1 << 15 // a symbolic link
	hintMore    = 1 << 16 // it has other metadata, which a listing cannot tell
	hintGone    = 1 << 17 // it was deleted; only sidecars say so
	hintAssumed = 1 << 18 // it was not looked at, and like others bears nothing; never in a sidecar
	hintTyped   = 1 << 19 // it has the content type that its name gives
)

// hintAttributes are those that a hint has room for.
const hintAttributes = providers.AttrMode | providers.AttrOwner | providers.AttrModTime

// clockSlack is how far, in seconds, the time of an answer and the time of a
// change may be apart in a service's own clocks.
const clockSlack = 2

// staleTimes are what s3fs keeps beside mtime. They are times of the object as
// s3fs last wrote it, so nobody misses them in a listing.
var staleTimes = []string{"atime", "ctime"}

// hintID is the name of a key, below the prefix, among hints.
func hintID(key string) uint64 {
	sum := sha256.Sum256([]byte(key))
	return binary.BigEndian.Uint64(sum[:])
}

func hintCheck(etag string, size int64) uint32 {
	sum := sha256.Sum256([]byte(etag + "\n" + strconv.FormatInt(size, 10)))
	return binary.BigEndian.Uint32(sum[:])
}

// hintOf is the hint of an object whose time the service told.
func hintOf(o *object) hint {
	h := hint{check: hintCheck(o.ETag, o.Size), at: seconds(o.Modified)}
	h.describe(o.Key, o.meta)
	return h
}

// hintWithin is for an object that was made between two times.
func hintWithin(o *object, from, to time.Time) hint {
	h := hintOf(o)
	h.at = seconds(to) + clockSlack
	h.slack = uint16(min(to.Sub(from)/time.Second+2*clockSlack, math.MaxUint16))
	return h
}

func seconds(t time.Time) uint32 { return uint32(max(0, min(t.Unix(), math.MaxUint32-clockSlack))) }

// describe takes what the metadata say. Of what has no room it has a hash, or
// nothing at all if even the numbers are too large.
func (h *hint) describe(key string, m meta) {
	typed, rest := m.untold(key)
	if rest != 0 && m.target != "" || len(m.target) > math.MaxUint16 {
		h.bits = hintMore
		return
	}
	if m.kind == providers.KindSymlink {
		h.bits |= hintLink
	}
	if typed {
		h.bits |= hintTyped
	}
	h.target = uint16(len(m.target))
	if rest != 0 {
		h.bits |= hintMore
		h.target = rest
	}
	h.bits |= uint32(m.attr.Valid&hintAttributes) << hintValid
	if m.attr.Valid.Has(providers.AttrMode) {
		h.bits |= m.attr.Mode & hintPerm
	}
	if m.attr.Valid.Has(providers.AttrOwner) {
		h.uid, h.gid = m.attr.UID, m.attr.GID
	}
	if m.attr.Valid.Has(providers.AttrModTime) {
		h.mtime, h.nsec = m.attr.ModTime.Unix(), uint32(m.attr.ModTime.Nanosecond())
	}
}

// untold is a hash of what a hint has no room for, 0 for nothing, and whether there is
// the usual type, which needs none.
func (m meta) untold(key string) (typed bool, hash uint16) {
	left := maps.Clone(m.user)
	for _, name := range staleTimes {
		if _, ok := parseTime(left[name]); ok {
			delete(left, name)
		}
	}
	if m.user = left; len(m.attr.Xattrs) == 0 && m.isUsual(key) {
		return true, 0
	}
	if len(left)+len(m.attr.Xattrs) == 0 {
		return false, 0
	}
	sum := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(left)) {
		fmt.Fprintf(sum, "%q %q\n", name, left[name])
	}
	sum.Write([]byte(encodeXattrs(m.attr.Xattrs)))
	return false, max(1, binary.BigEndian.Uint16(sum.Sum(nil)))
}

func (h *hint) is(flag uint32) bool { return h.bits&flag != 0 }

func (h *hint) valid() providers.AttrSet {
	return providers.AttrSet(h.bits>>hintValid) & hintAttributes
}

// tell adds to an entry of a listing what the hint knows of it, which has a key.
func (h *hint) tell(info *providers.Info, key string) {
	if h.is(hintAssumed) || h.is(hintMore) && h.target == 0 {
		return
	}
	if h.is(hintMore) {
		info.Untold = uint32(h.target)
	}
	if h.is(hintLink) && info.Kind == providers.KindFile {
		info.Kind = providers.KindSymlink
		if h.target > 0 && !h.is(hintMore) {
			info.Size = int64(h.target)
		}
	}
	if h.is(hintTyped) {
		info.Metadata = usualMetadata(key)
	}
	info.Attr.Valid = h.valid()
	if info.Attr.Valid.Has(providers.AttrMode) {
		info.Attr.Mode = h.bits & hintPerm
	}
	if info.Attr.Valid.Has(providers.AttrOwner) {
		info.Attr.UID, info.Attr.GID = h.uid, h.gid
	}
	if info.Attr.Valid.Has(providers.AttrModTime) {
		info.Attr.ModTime = time.Unix(h.mtime, int64(h.nsec))
	}
}

// matches reports whether the hint is of this version.
func (h *hint) matches(etag string, size int64, modified time.Time) bool {
	if h.check != hintCheck(etag, size) {
		return false
	}
	return modified.IsZero() || h.covers(seconds(modified))
}

func (h *hint) covers(at uint32) bool { return at <= h.at && uint32(h.slack) >= h.at-at }

// settle notes the time of a hint that matched.
func (h *hint) settle(modified time.Time) {
	if !modified.IsZero() {
		h.at, h.slack = seconds(modified), 0
	}
}

// order says which of two hints of a key is of the later version.
func (h *hint) order() uint32 {
	if h.slack > 0 {
		return h.at - min(h.at, clockSlack)
	}
	return h.at
}

// same reports whether two hints say the same but for when.
func (h hint) same(other hint) bool {
	h.at, h.slack = other.at, other.slack
	return h == other
}
