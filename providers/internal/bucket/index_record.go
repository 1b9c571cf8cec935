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

// record holds the metadata of one version of an object, in 40 bytes. It has neither the key nor
// the ETag, but hashes of them: by chance, one of 2^32 changed versions passes for another, if it
// was made in the same second.
type record struct {
	check  uint32 // hash of the version's ETag and size
	at     uint32 // the second of its change, or the last that it can be
	slack  uint16 // how many seconds earlier it can be: the answer to a PUT does not say
	target uint16 // length of a link's target in metadata; with recordMore, hash of the untold
	bits   uint32 // permissions, and the flags below
	uid    uint32
	gid    uint32
	nsec   uint32 // of mtime
	mtime  int64  // seconds, of any year
}

// The flags of bits. Those from recordMode to recordModTime are AttrSet's.
const (
	recordPerm    = 0o7777
	recordValid   = 12      // by how much AttrSet is shifted
	recordLink    = 1 << 15 // a symbolic link
	recordMore    = 1 << 16 // it has other metadata, which a listing cannot tell
	recordGone    = 1 << 17 // it was deleted; only segments say so
	recordAssumed = 1 << 18 // unexamined, and taken to have no attributes; in no segment
	recordTyped   = 1 << 19 // it has the content type that its name gives
)

// recordAttributes are the attributes that a record has room for.
const recordAttributes = providers.AttrMode | providers.AttrOwner | providers.AttrModTime

// clockSlack is how far, in seconds, the time of an answer and the time of a
// change may be apart in a service's own clocks.
const clockSlack = 2

// staleTimes are other times that s3fs keeps, of the object when s3fs last wrote it: a listing
// can do without them.
var staleTimes = []string{"atime", "ctime"}

// recordID is the name of a key, below the prefix, among records.
func recordID(key string) uint64 {
	sum := sha256.Sum256([]byte(key))
	return binary.BigEndian.Uint64(sum[:])
}

func recordCheck(etag string, size int64) uint32 {
	sum := sha256.Sum256([]byte(etag + "\n" + strconv.FormatInt(size, 10)))
	return binary.BigEndian.Uint32(sum[:])
}

// recordOf is the record of an object whose time the service told.
func recordOf(o *object) record {
	r := record{check: recordCheck(o.ETag, o.Size), at: seconds(o.Modified)}
	r.describe(o.Key, o.meta)
	return r
}

// recordWithin is for an object that was made between two times.
func recordWithin(o *object, from, to time.Time) record {
	r := recordOf(o)
	r.at = seconds(to) + clockSlack
	r.slack = uint16(min(to.Sub(from)/time.Second+2*clockSlack, math.MaxUint16))
	return r
}

func seconds(t time.Time) uint32 { return uint32(max(0, min(t.Unix(), math.MaxUint32-clockSlack))) }

// describe takes the metadata of an object. Of metadata that have no room it has a hash, or
// nothing at all if even the numbers are too large.
func (r *record) describe(key string, m meta) {
	typed, rest := m.untold(key)
	target := m.apart()
	if rest != 0 && target != "" || len(target) > math.MaxUint16 {
		r.bits = recordMore
		return
	}
	if m.kind == providers.KindSymlink {
		r.bits |= recordLink
	}
	if typed {
		r.bits |= recordTyped
	}
	r.target = uint16(len(target))
	if rest != 0 {
		r.bits |= recordMore
		r.target = rest
	}
	r.bits |= uint32(m.attr.Valid&recordAttributes) << recordValid
	if m.attr.Valid.Has(providers.AttrMode) {
		r.bits |= m.attr.Mode & recordPerm
	}
	if m.attr.Valid.Has(providers.AttrOwner) {
		r.uid, r.gid = m.attr.UID, m.attr.GID
	}
	if m.attr.Valid.Has(providers.AttrModTime) {
		r.mtime, r.nsec = m.attr.ModTime.Unix(), uint32(m.attr.ModTime.Nanosecond())
	}
}

// untold is a hash of the metadata that a record has no room for, 0 for nothing, and whether
// there is the usual type, which needs none.
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

func (r *record) is(flag uint32) bool { return r.bits&flag != 0 }

func (r *record) valid() providers.AttrSet {
	return providers.AttrSet(r.bits>>recordValid) & recordAttributes
}

// tell adds the record's attributes to the listing entry of key.
func (r *record) tell(info *providers.Info, key string) {
	if r.is(recordAssumed) || r.is(recordMore) && r.target == 0 {
		return
	}
	if r.is(recordMore) {
		info.Untold = uint32(r.target)
	}
	if r.is(recordLink) && info.Kind == providers.KindFile {
		info.Kind = providers.KindSymlink
		if r.target > 0 && !r.is(recordMore) {
			info.Size = int64(r.target)
		}
	}
	if r.is(recordTyped) {
		info.Metadata = usualMetadata(key)
	}
	info.Attr.Valid = r.valid()
	if info.Attr.Valid.Has(providers.AttrMode) {
		info.Attr.Mode = r.bits & recordPerm
	}
	if info.Attr.Valid.Has(providers.AttrOwner) {
		info.Attr.UID, info.Attr.GID = r.uid, r.gid
	}
	if info.Attr.Valid.Has(providers.AttrModTime) {
		info.Attr.ModTime = time.Unix(r.mtime, int64(r.nsec))
	}
}

// matches reports whether the record is of this version.
func (r *record) matches(etag string, size int64, modified time.Time) bool {
	if r.check != recordCheck(etag, size) {
		return false
	}
	return modified.IsZero() || r.covers(seconds(modified))
}

func (r *record) covers(at uint32) bool { return at <= r.at && uint32(r.slack) >= r.at-at }

// settle notes the time of a record that matched.
func (r *record) settle(modified time.Time) {
	if !modified.IsZero() {
		r.at, r.slack = seconds(modified), 0
	}
}

// order is a number by which two records of a key are compared: the later version has more.
func (r *record) order() uint32 {
	if r.slack > 0 {
		return r.at - min(r.at, clockSlack)
	}
	return r.at
}

// same reports whether two records are equal but for their time.
func (r record) same(other record) bool {
	r.at, r.slack = other.at, other.slack
	return r == other
}
