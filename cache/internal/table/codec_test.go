package table

import (
	"bytes"
	"reflect"
	"testing"
	"time"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
)

// full records have every part.
var (
	fullInode = &Inode{
		Mode: 0o100644, UID: 1000, GID: 1 << 31, Rdev: 7, Size: 1 << 40, Blocks: 9,
		Atime: Time{Sec: lastSecond, Nsec: 1}, Mtime: Time{Sec: firstSecond, Nsec: 999_999_999}, Ctime: Time{Nsec: 4}, Birth: 5,
		Links: []Link{{1, "a"}, {1 << 47, "\xff\x00"}}, RemoteLinks: []Link{{2, "b"}},
		Subdirs: 3, Entries: 4, Cookies: 1 << 63, Loaded: true, Listed: -8, From: "old/path",
		ContentVersion: 11, AttrGen: 12, State: Whole,
		Origin:  Origin{providers.Version{ETag: "etag", Modified: 13, Size: 14}, "sha256:00", 10},
		Writing: true, Synced: 9, Suspect: true, Pulled: true, AttrsUnknown: true, Untold: 8, Target: "../x",
		Xattrs:   map[string][]byte{"user.a": {0}, "user.b": {}},
		Metadata: map[string]string{"k": "v", "": ""},
		LostName: &Link{6, "claimed"},
	}
	fullName = Name{
		Ino: 5, Cookie: 6, Seq: 7, Local: true,
		Remote:  &Remote{8, providers.KindSymlink, providers.Version{ETag: "e", Modified: -1, Size: 2}, "md5:00", 3, 4},
		Attempt: &Attempt{"op", 1, 2, 255, "other/path"},
		Held:    &Held{"because", true, []byte{0, 1}},
	}
)

// TestFullRecords: the records above leave nothing out, so that the tests
// below see a part that was forgotten.
func TestFullRecords(t *testing.T) {
	for _, v := range []any{*fullInode, fullName, *fullName.Remote, *fullName.Attempt, *fullName.Held} {
		for i, r := 0, reflect.ValueOf(v); i < r.NumField(); i++ {
			if r.Field(i).IsZero() {
				t.Errorf("%T.%s is not set", v, r.Type().Field(i).Name)
			}
		}
	}
}

func TestRoundTrip(t *testing.T) {
	for _, want := range []*Inode{fullInode, {}} {
		got, err := decodeInode(want.encode(nil))
		assert.True(t, err == nil && reflect.DeepEqual(got, want), "got", got, err, "want", want)
	}
	for _, want := range []Name{fullName, {}} {
		got, err := decodeName(want.encode(nil))
		assert.True(t, err == nil && reflect.DeepEqual(got, want), "got", got, err, "want", want)
	}
}

// TestEachPartAlone: parts do not need each other.
func TestEachPartAlone(t *testing.T) {
	full := reflect.ValueOf(*fullInode)
	for i := range full.NumField() {
		want := &Inode{}
		reflect.ValueOf(want).Elem().Field(i).Set(full.Field(i))
		got, err := decodeInode(want.encode(nil))
		assert.True(t, err == nil && reflect.DeepEqual(got, want), full.Type().Field(i).Name, "got", got, err, "want", want)
	}
}

// TestOldTimes: a record of a version that knew only nanoseconds is read as before, and
// such times are written in the same way.
func TestOldTimes(t *testing.T) {
	want := &Inode{Mtime: Stamp(-5), Atime: Stamp(1 << 62), Ctime: Stamp(7), Birth: -1 << 62}
	e := encoder{inodeVersion}
	e.uint(0)
	e.uint(0)
	for _, n := range []int64{0, -5, 1<<62 + 5, 12, -1<<62 + 5} { // the size, mtime, and how far the others are from it
		e.int(n)
	}
	got, err := decodeInode(e)
	assert.True(t, err == nil && reflect.DeepEqual(got, want), "got", got, err, "want", want)
	assert.Slice(t, want.encode(nil), e, "written as")
}

// TestTimes: years that cannot be told become the nearest that can.
func TestTimes(t *testing.T) {
	for year, want := range map[int]int{-5: 0, 0: 0, 1600: 1600, 2500: 2500, 9999: 9999, 12_345: 9999} {
		got := TimeOf(time.Date(year, 6, 1, 0, 0, 0, 5, time.UTC))
		assert.Equal(t, got.Time().UTC().Year(), want, "of the year", year)
		assert.OK(t, assert.ErrOf(got.Time().UTC().MarshalJSON()), "of the year", year)
	}
	last := TimeOf(time.Date(9999, 12, 31, 23, 59, 59, 999_999_999, time.UTC))
	assert.Equal(t, last.Next(), last, "after the last")
	assert.Equal(t, Time{Sec: 1, Nsec: 999_999_999}.Next(), Time{Sec: 2})
	early := Time{Sec: -1, Nsec: 5}
	assert.Equal(t, Latest(early, Time{Sec: -1, Nsec: 4}), early)
	assert.Equal(t, Latest(Time{Sec: -2, Nsec: 9}, early), early)
}

// TestCutOff: no record is whole without its end, or with more behind it.
func TestCutOff(t *testing.T) {
	inode, name := fullInode.encode(nil), fullName.encode(nil)
	for i := range inode {
		assert.True(t, assert.ErrOf(decodeInode(inode[:i])) != nil, "the first", i, "bytes of an inode are taken for one")
	}
	for i := range name {
		assert.True(t, assert.ErrOf(decodeName(name[:i])) != nil, "the first", i, "bytes of a name are taken for one")
	}
	assert.True(t, assert.ErrOf(decodeInode(append(inode, 0))) != nil, "an inode with a byte behind it is taken for one")
	assert.True(t, assert.ErrOf(decodeName(append(name, 0))) != nil, "a name with a byte behind it is taken for one")
}

// TestHostileRecords: what no encoder makes is refused.
func TestHostileRecords(t *testing.T) {
	long := bytes.Repeat([]byte{0xff}, 11)
	tests := []struct {
		name   string
		record []byte
	}{
		{"nothing", nil},
		{"another version", []byte{2, 0, 0, 0, 0, 0, 0, 0}},
		{"a number too long", append([]byte{1}, long...)},
		{"unknown parts", []byte{1, 0x80, 0x80, 0x80, 0x80, 1, 0, 0, 0, 0, 0, 0}},
		{"a number too large", []byte{1, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 0, 0, 0, 0, 0}},
		{"more links than bytes", []byte{1, 0x40, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xf}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			inode, err := decodeInode(tt.record)
			assert.True(t, err != nil, "taken for an inode", inode)
			name, err := decodeName(tt.record)
			assert.True(t, err != nil, "taken for a name", name)
		})
	}
}

// FuzzDecode: hostile bytes never panic, and what they are taken for survives
// the way there and back.
func FuzzDecode(f *testing.F) {
	f.Add(fullInode.encode(nil))
	f.Add(fullName.encode(nil))
	f.Add((&Inode{}).encode(nil))
	f.Add(encodeEntry(5, "name"))
	f.Fuzz(func(t *testing.T, record []byte) {
		if n, err := decodeInode(record); err == nil {
			again, err := decodeInode(n.encode(nil))
			assert.True(t, err == nil && sameInode(again, n), n, "comes back as", again, err)
		}
		if n, err := decodeName(record); err == nil {
			once := n.encode(nil)
			again, err := decodeName(once)
			assert.True(t, err == nil && bytes.Equal(again.encode(nil), once), n, "comes back as", again, err)
		}
		if ino, name, err := decodeEntry(record); err == nil {
			i, n, err := decodeEntry(encodeEntry(ino, name))
			assert.True(t, i == ino && n == name && err == nil, ino, name, "comes back as", i, n, err)
		}
	})
}
