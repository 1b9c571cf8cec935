package history

import (
	"fmt"
	"syscall"
	"testing"

	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
)

// A record has of an inode what is of its kind.
func TestAbout(t *testing.T) {
	l, version := table.Link{Dir: 7, Name: "f"}, providers.Version{ETag: "e"}
	for mode, want := range map[uint32]string{syscall.S_IFREG: "5 ", syscall.S_IFLNK: "0 to", syscall.S_IFDIR: "0 "} {
		r := About(Written, "why", l, 9, &table.Inode{Mode: mode, Size: 5, Target: "to", ContentVersion: 3, Birth: 4, Origin: table.Origin{Version: version}})
		assert.Equal(t, fmt.Sprint(r.Size, " ", r.Target), want, "mode", mode)
		assert.True(t, r.Change == Written && r.Why == "why" && r.Link() == l && r.Ino == 9 && r.Mode == mode && r.Gen == 3 && r.Birth == 4 && r.Base == "e", "record", r)
	}
	assert.Equal(t, VersionText(providers.Version{}), "")
	assert.Equal(t, VersionText(providers.Version{Modified: 2, Size: 3}), "2-3")
}

func TestIsOfHere(t *testing.T) {
	for n, want := range map[*table.Inode]bool{
		{}: true, {Pulled: true}: false, {RemoteLinks: []table.Link{{}}}: false,
		{Origin: table.Origin{Version: providers.Version{ETag: "e"}}}: false,
	} {
		assert.Equal(t, IsOfHere(n), want, "inode", *n)
	}
}

// A commit is noted back to what an earlier one has, or a pull brought, and not for what
// came after it was begun.
func TestNoteCommit(t *testing.T) {
	in(t, func(tx *tree.Tx) {
		l := table.Link{Dir: 7, Name: "f"}
		var ids []uint64
		for _, r := range []Record{{}, {Why: WhyPulled}, {Commit: "old"}, {}, {}, {}} {
			r.Change, r.Dir, r.Name = Written, l.Dir, l.Name
			ids = append(ids, appended(tx, r))
		}
		commits := func(want ...string) {
			t.Helper()
			var got []string
			for _, id := range ids {
				got = append(got, Get(tx, id).Commit)
			}
			assert.Slice(t, got, want, "commits")
		}
		NoteCommit(tx, l, ids[5], "new")
		commits("", "", "old", "new", "new", "")
		old := Get(tx, ids[2])
		old.Commit = ""
		Put(tx, ids[2], old)
		NoteCommit(tx, l, ids[5]+1, "newer")
		commits("", "", "", "new", "new", "newer")
	})
}

// A file is where it is now, or where it was last; what it became it is until it changes.
func TestWhereAndIsCurrent(t *testing.T) {
	const ino = 10
	in(t, func(tx *tree.Tx) {
		l, now := table.Link{Dir: table.Root, Name: "f"}, table.Link{Dir: table.Root, Name: "g"}
		tx.Put(ino, &table.Inode{Mode: syscall.S_IFREG, ContentVersion: 1})
		tx.SetLocal(now, ino, false, false)
		of := func(r Record) *Record {
			r.Ino, r.Dir, r.Name, r.Mode, r.Gen = ino, l.Dir, l.Name, syscall.S_IFREG, 1
			return &r
		}
		written, ended := of(Record{Change: Written}), of(Record{Change: Ended})
		assert.Equal(t, written.Where(tx), "g")
		assert.Equal(t, ended.Where(tx), "f")
		assert.Equal(t, of(Record{Change: Ended, Stays: true}).Where(tx), "g")
		gone := of(Record{Change: Ended, Path: "d/f"})
		gone.Dir = 99
		assert.Equal(t, gone.Where(tx), "d/f")

		assert.True(t, written.IsCurrent(tx), "it is not what it became")
		assert.False(t, ended.IsCurrent(tx), "what ended is there")
		tx.Edit(ino).Writing = true
		assert.False(t, written.IsCurrent(tx), "it is being written")
		tx.Edit(ino).Writing = false
		tx.ContentChanged(ino, 1, table.Time{})
		assert.False(t, written.IsCurrent(tx), "it has other content")
	})
}
