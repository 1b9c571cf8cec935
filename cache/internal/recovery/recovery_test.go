package recovery

import (
	"crypto/sha256"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/wsmount/wsmount/cache/internal/content"
	"github.com/wsmount/wsmount/cache/internal/files"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/tier"
	"github.com/wsmount/wsmount/providers"
)

// scene is a working copy without a remote, of which the run before is made and ended.
type scene struct {
	*testing.T
	names *vfs.MemFS
	dir   string // of content
	tree  *tree.Tree
	store *content.Store
	tab   *table.Table
	r     *Recovery
	told  []string

	updates int // of the volume
}

func newScene(t *testing.T) *scene {
	t.Helper()
	s := &scene{T: t, names: vfs.NewCrashableMem(), dir: t.TempDir()}
	s.open("first")
	assert.OK(t, s.r.Run())
	s.does(func(tx *tree.Tx) {
		tx.Put(table.Root, &table.Inode{Mode: syscall.S_IFDIR, Loaded: true})
		for tx.Alloc() < 2*f { // the numbers of the test are of this run
		}
	})
	t.Cleanup(func() { s.close() })
	return s
}

func (s *scene) open(boot string) {
	s.Helper()
	log := slog.New(slog.DiscardHandler)
	var err error
	s.tab, err = table.Open("/names", table.Options{FS: s.names, Strict: true, BootID: boot})
	assert.OK(s, err)
	s.tree = tree.New(s.tab, tree.Options{Now: time.Now, Log: log})
	s.store, err = content.Open(s.dir, content.Options{Ballast: -1, Floor: -1})
	assert.OK(s, err)
	s.r = New(Options{Tree: s.tree, Store: s.store, Open: files.NewOpenSet(), Volume: s, Dir: s.dir, Now: time.Now, Context: s.Context(), Log: log})
}

func (s *scene) close() {
	assert.OK(s, s.store.Close())
	assert.OK(s, s.tab.Close())
}

// ends ends the run, and deals with what it left in another.
func (s *scene) ends(how string) {
	s.Helper()
	boot := "first"
	switch how {
	case "synced":
		assert.OK(s, Sync(s.tree, s.store, s.dir, func(do func(*tree.Tx) error) error { return s.tree.Update(do, nil) }))
		boot = "another"
	case "killed", "power lost":
		after := s.names.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rand.New(rand.NewPCG(1, 1))})
		defer func(before *table.Table) { assert.OK(s, before.Close()) }(s.tab)
		s.names = after
		if how == "power lost" {
			boot = "another"
		}
	}
	assert.OK(s, s.store.Close())
	if how == "synced" {
		assert.OK(s, s.tab.Close())
	}
	s.open(boot)
	assert.OK(s, s.r.Run())
	if s.r.IsToSweep() {
		s.r.Sweep()
	}
}

func (s *scene) does(f func(*tree.Tx)) {
	s.Helper()
	assert.OK(s, s.tree.Update(func(tx *tree.Tx) error { f(tx); return nil }, nil))
}

// Update and Report implement Volume.
func (s *scene) Update(do func(Tx) error) error {
	s.updates++
	return s.tree.Update(func(tx *tree.Tx) error { return do(sceneTx{s, tx}) }, nil)
}

func (s *scene) Report(_, path string, err error) {
	what, _, _ := strings.Cut(err.Error(), ";")
	s.told = append(s.told, strings.TrimSpace(path+" "+what))
}

type sceneTx struct {
	s  *scene
	tx *tree.Tx
}

func (t sceneTx) Tree() *tree.Tx { return t.tx }

func (t sceneTx) Recovered(ino table.Ino, _ *table.Inode) {
	t.s.told = append(t.s.told, fmt.Sprint("recovered ", ino))
}

func (t sceneTx) Orphaned(ino table.Ino) { t.s.told = append(t.s.told, fmt.Sprint("orphaned ", ino)) }

// f is the file of most tests, and its name.
const f table.Ino = 10

var name = table.Link{Dir: table.Root, Name: "f"}

// has is a file with a name (none: "") and content, clean if the remote has the content too.
func (s *scene) has(ino table.Ino, l table.Link, text string, isClean bool) {
	s.Helper()
	s.write(ino, l.Name, text)
	s.does(func(tx *tree.Tx) {
		tx.Put(ino, &table.Inode{Mode: syscall.S_IFREG | 0o644, ContentVersion: 1, AttrGen: 1, Size: int64(len(text)), State: table.Whole})
		if l.Name == "" {
			return
		}
		tx.SetLocal(l, ino, false, false)
		if isClean {
			tx.SetRemote(l, &table.Remote{Ino: ino, Kind: providers.KindFile, ContentVersion: 1, AttrGen: 1,
				Version: providers.Version{ETag: "1", Size: int64(len(text))}, Digest: fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(text)))})
		}
	})
}

// hasUndigested is has for clean content of which the remote gives no digest.
func (s *scene) hasUndigested() {
	s.Helper()
	s.has(f, name, "one", true)
	s.does(func(tx *tree.Tx) {
		base := *tx.Record(name).Remote
		base.Digest = ""
		tx.SetRemote(name, &base)
	})
}

// write makes a content file.
func (s *scene) write(ino table.Ino, path, text string) {
	s.Helper()
	c := assert.Of(s.store.Create(ino, path)).OK(s)
	assert.OK(s, assert.ErrOf(c.WriteAt(s.Context(), []byte(text), 0)))
	c.Release()
}

// writes changes content after the dirty intent, as a program does that has not closed it.
func (s *scene) writes(ino table.Ino, text string) {
	s.Helper()
	s.does(func(tx *tree.Tx) { files.SetDirtyIntent(tx, ino, tx.Edit(ino), true) })
	c := assert.Of(s.store.Open(ino)).OK(s)
	defer c.Release()
	assert.OK(s, assert.ErrOf(c.WriteAt(s.Context(), []byte(text), 0)))
}

// onDisk is the content file of an inode, "" if there is none.
func (s *scene) onDisk(ino table.Ino) string {
	found, _ := filepath.Glob(filepath.Join(s.dir, "data", "*", fmt.Sprint(ino)))
	if len(found) == 0 {
		return ""
	}
	return found[0]
}

// is what the table says of an inode.
func (s *scene) is(ino table.Ino) string {
	v := s.tree.Lock()
	defer s.tree.Unlock()
	n := v.Inode(ino)
	if n == nil {
		return "nothing"
	}
	text := fmt.Sprintf("%s v%d %d bytes", map[table.State]string{table.None: "none", table.Partial: "partial", table.Whole: "whole"}[n.State], n.ContentVersion, n.Size)
	if n.Suspect {
		text += " suspect"
	}
	if n.Writing || slices.Contains(files.DirtyIntents(v), ino) {
		text += " writing"
	}
	return text
}

// After each end the table says of a file what can be known of it.
func TestRun(t *testing.T) {
	for _, c := range []struct {
		name, ends, is, told string
		run                  func(*scene)
	}{
		{"open, and written", "killed", "whole v2 5 bytes", "recovered 10", func(s *scene) {
			s.has(f, name, "one", true)
			s.writes(f, "three")
		}},
		{"open, and not written", "killed", "whole v1 3 bytes", "", func(s *scene) {
			s.has(f, name, "one", true)
			s.writes(f, "")
		}},
		{"open, and written again as it was", "killed", "whole v1 3 bytes", "", func(s *scene) {
			s.has(f, name, "one", true)
			s.writes(f, "one")
		}},
		{"open, and its content is gone", "killed", "none v1 0 bytes suspect", "f the content did not reach the disk before the power was lost", func(s *scene) {
			s.has(f, name, "one", false)
			s.writes(f, "three")
			assert.OK(s, os.Remove(s.onDisk(f)))
		}},
		{"open, after a pull took its name", "killed", "whole v2 5 bytes", "recovered 10; orphaned 10", func(s *scene) {
			s.has(f, table.Link{}, "one", false)
			s.does(func(tx *tree.Tx) { tx.Edit(f).LostName = &name })
			s.writes(f, "three")
		}},
		{"closed", "killed", "whole v1 3 bytes", "", func(s *scene) { s.has(f, name, "one", false) }},
		{"open, and written", "power lost", "whole v2 5 bytes suspect", "recovered 10", func(s *scene) {
			s.has(f, name, "one", false)
			s.writes(f, "three")
		}},
		{"not synced", "power lost", "whole v1 3 bytes suspect", "", func(s *scene) { s.has(f, name, "one", false) }},
		{"synced", "power lost", "whole v1 3 bytes", "", func(s *scene) {
			s.has(f, name, "one", false)
			s.does(func(tx *tree.Tx) { tx.Edit(f).Synced = 1 })
		}},
		{"clean", "power lost", "whole v1 3 bytes", "", func(s *scene) { s.has(f, name, "one", true) }},
		{"clean, and torn", "power lost", "none v1 3 bytes", "", func(s *scene) {
			s.has(f, name, "one", true)
			assert.OK(s, os.WriteFile(s.onDisk(f), []byte("\x00\x00\x00"), 0o600))
		}},
		{"clean, of an unknown digest", "synced", "whole v1 3 bytes", "", func(s *scene) { s.hasUndigested() }},
		{"clean, of an unknown digest", "power lost", "none v1 3 bytes", "", func(s *scene) { s.hasUndigested() }},
		{"changed, and gone", "power lost", "none v2 3 bytes", "f a change did not reach the disk before the power was lost", func(s *scene) {
			s.has(f, name, "one", true)
			s.does(func(tx *tree.Tx) { tx.ContentChanged(f, 5, table.Time{}) })
			assert.OK(s, os.Remove(s.onDisk(f)))
		}},
		{"new, and gone", "power lost", "none v1 0 bytes suspect", "f the content did not reach the disk before the power was lost", func(s *scene) {
			s.has(f, name, "one", false)
			assert.OK(s, os.Remove(s.onDisk(f)))
		}},
		{"not synced before", "synced", "whole v1 3 bytes", "", func(s *scene) { s.has(f, name, "one", false) }},
		{"without a name", "killed", "nothing", "", func(s *scene) {
			s.has(f, table.Link{}, "one", false)
			s.does(func(tx *tree.Tx) { tx.SetOrphan(f, true) })
		}},
	} {
		t.Run(c.name+", "+c.ends, func(t *testing.T) {
			s := newScene(t)
			c.run(s)
			s.ends(c.ends)
			assert.Equal(t, s.is(f), c.is)
			assert.Equal(t, strings.Join(s.told, "; "), c.told, "told")
			s.told = nil
			s.ends("synced")
			assert.Equal(t, s.is(f), c.is, "after another end")
			assert.Equal(t, len(s.told), 0, "told again")
		})
	}
}

// However much a killed run leaves open, the next takes it in one update.
func TestRunIsOneUpdate(t *testing.T) {
	s := newScene(t)
	for ino := f; ino < 2*f; ino++ {
		s.has(ino, table.Link{Dir: table.Root, Name: fmt.Sprint("f", ino)}, "one", false)
		s.writes(ino, "two")
	}
	s.updates = 0
	s.ends("killed")
	assert.Equal(t, s.updates, 1, "updates")
	assert.Equal(t, len(s.told), int(f), "told", s.told)
}

// A program of the mount before keeps its descriptor, and not the file.
func TestSurvivor(t *testing.T) {
	s := newScene(t)
	s.has(f, name, "one", false)
	s.writes(f, "two")
	survivor := assert.Of(os.OpenFile(s.onDisk(f), os.O_RDWR, 0)).OK(t)
	defer survivor.Close()
	s.ends("killed")
	assert.OK(t, assert.ErrOf(survivor.WriteAt([]byte("XXX"), 0)))
	got := assert.Of(os.ReadFile(s.onDisk(f))).OK(t)
	assert.Equal(t, string(got), "two")
	assert.OK(t, s.store.EachKept(func(id string) { t.Error("kept:", id) }))
}

// Content to which nothing leads goes after a kill, and is put aside after a loss of power:
// what is at its path stays, and no path leads out.
func TestSweep(t *testing.T) {
	for ends, want := range map[string][]string{"killed": nil, "power lost": {"recovered/d/f.7", "recovered/unknown.8"}} {
		t.Run(ends, func(t *testing.T) {
			s := newScene(t)
			s.has(f, name, "kept", false)
			s.write(7, "d/f", "seven")
			s.write(8, "../../f", "eight")
			s.ends(ends)
			for ino, is := range map[table.Ino]bool{7: false, 8: false, f: true} {
				assert.Equal(t, s.onDisk(ino) != "", is, "on the disk", ino)
			}
			got := assert.Of(Rescued(s.dir)).OK(t)
			assert.Slice(t, got, want, "rescued")
			assert.Equal(t, len(s.told) > 0, want != nil, "told", s.told)
		})
	}
}

// What is written out is safe, and neither overwrites a file nor leaves its directory.
func TestWriteOut(t *testing.T) {
	dir, outside := filepath.Join(t.TempDir(), "out"), t.TempDir()
	assert.OK(t, WriteOut(dir, "d/f", strings.NewReader("one")))
	tier.OnDisk(t, filepath.Join(dir, "d/f"))
	assert.Is(t, WriteOut(dir, "d/f", strings.NewReader("two")), os.ErrExist)
	assert.Equal(t, string(assert.Of(os.ReadFile(filepath.Join(dir, "d/f"))).OK(t)), "one")
	assert.OK(t, os.Symlink(outside, filepath.Join(dir, "link")))
	for _, name := range []string{"../f", "link/f"} {
		assert.False(t, WriteOut(dir, name, strings.NewReader("x")) == nil, "it was written out of the directory:", name)
	}
	assert.Slice(t, assert.Of(os.ReadDir(outside)).OK(t), nil, "outside")
}
