package table

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"pgregory.net/rapid"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/tier"
	"github.com/wsmount/wsmount/providers"
)

// machine is a table beside its model, on a disk that can lose power.
type machine struct {
	t       *Table
	disk    *vfs.MemFS
	boot    int
	now     *shadow
	commits []*shadow // from the last that is surely on the disk to the last
	given   map[uint64]bool
	seqs    uint64
	last    Session // how the sessions before ended
	used    bool    // this one has a commit
	ended   int     // the boot in which the last one that has ran
}

func (m *machine) open(r *rapid.T) {
	var err error
	// So few inodes stay in memory that most are read.
	m.t, err = Open("/t", Options{FS: m.disk, BootID: fmt.Sprint("boot", m.boot), Resident: 3, Strict: true})
	assert.OK(r, err, "open")
	m.last.SameBoot = m.last.First || m.ended == m.boot
	got := m.t.Session()
	assert.Must(r, got == m.last, "the last session ended as", got, "not", m.last)
	m.used = false
}

func (m *machine) inos() []Ino { return slices.Sorted(maps.Keys(m.now.inodes)) }

func (m *machine) pick(r *rapid.T, what string, ok func(*Inode) bool) Ino {
	var inos []Ino
	for _, ino := range m.inos() {
		if ok(m.now.inodes[ino]) {
			inos = append(inos, ino)
		}
	}
	if len(inos) == 0 {
		return 0
	}
	return rapid.SampledFrom(inos).Draw(r, what)
}

func anyInode(*Inode) bool { return true }

var (
	genText    = rapid.SampledFrom([]string{"", "a", "sha256:00ff", strings.Repeat("long", 100), "\x00\xff"})
	genInt     = rapid.OneOf(rapid.Int64(), rapid.Int64Range(-3, 3))
	genUint    = rapid.OneOf(rapid.Uint64(), rapid.Uint64Range(0, 3))
	genName    = rapid.SampledFrom([]string{"a", "b", "c", "\xff", "\xff\xff", "a\x00", strings.Repeat("x", 255)})
	genVersion = rapid.Custom(func(r *rapid.T) providers.Version {
		return providers.Version{ETag: genText.Draw(r, "etag"), Modified: genInt.Draw(r, "modified"), Size: genInt.Draw(r, "size")}
	})
	genTime = rapid.Custom(func(r *rapid.T) Time {
		return TimeOf(time.Unix(rapid.OneOf(rapid.Int64(), rapid.Int64Range(-1e11, 1e12)).Draw(r, "second"), rapid.Int64Range(0, 1e9-1).Draw(r, "nanosecond")))
	})
	genInode = rapid.Custom(func(r *rapid.T) *Inode {
		n := &Inode{
			Mode: rapid.SampledFrom([]uint32{syscall.S_IFREG | 0o644, syscall.S_IFDIR | 0o755}).Draw(r, "mode"),
			Size: genInt.Draw(r, "size"), Mtime: genTime.Draw(r, "mtime"), Atime: genTime.Draw(r, "atime"), Birth: genInt.Draw(r, "birth"),
		}
		changeInode(r, n)
		return n
	})
)

// changeInode changes some of what belongs to callers.
func changeInode(r *rapid.T, n *Inode) {
	n.UID, n.Rdev = rapid.Uint32().Draw(r, "uid"), rapid.Uint32().Draw(r, "rdev")
	n.GID = rapid.Uint32().Draw(r, "gid")
	n.Blocks, n.Ctime, n.Listed = genInt.Draw(r, "blocks"), genTime.Draw(r, "ctime"), genInt.Draw(r, "listed")
	n.Loaded, n.Writing, n.Suspect = rapid.Bool().Draw(r, "loaded"), rapid.Bool().Draw(r, "writing"), rapid.Bool().Draw(r, "suspect")
	n.AttrsUnknown, n.Pulled = rapid.Bool().Draw(r, "vague"), rapid.Bool().Draw(r, "pulled")
	n.From, n.Target = genText.Draw(r, "from"), genText.Draw(r, "target")
	n.ContentVersion, n.AttrGen, n.Synced = genUint.Draw(r, "gen"), genUint.Draw(r, "attrgen"), genUint.Draw(r, "synced")
	n.State = State(rapid.Uint8Range(0, 2).Draw(r, "state"))
	n.Origin = Origin{genVersion.Draw(r, "origin"), genText.Draw(r, "digest"), genUint.Draw(r, "origin gen")}
	n.Xattrs = rapid.MapOfN(genText, rapid.SliceOfN(rapid.Byte(), 0, 9), 0, 2).Draw(r, "xattrs")
	n.Metadata = rapid.MapOfN(genText, genText, 0, 2).Draw(r, "metadata")
	n.LostName = nil
	if rapid.Bool().Draw(r, "claim") {
		n.LostName = &Link{genUint.Draw(r, "claim dir"), genText.Draw(r, "claim name")}
	}
}

func (m *machine) Put(r *rapid.T) {
	if len(m.now.inodes) > 12 {
		return
	}
	ino := Root
	if m.now.inodes[Root] != nil {
		ino = m.t.Alloc()
		assert.Must(r, !m.given[ino] && ino > Root, "Alloc gave", ino, "again")
		m.given[ino] = true
	}
	n := genInode.Draw(r, "inode")
	if ino == Root {
		n.Mode = syscall.S_IFDIR
	}
	c := n.clone()
	if c.IsDir() {
		c.Cookies = FirstCookie - 1
	}
	m.now.inodes[ino] = c
	m.t.Put(ino, n)
}

func (m *machine) Edit(r *rapid.T) {
	ino := m.pick(r, "ino", anyInode)
	if ino == 0 {
		return
	}
	n := m.t.Edit(ino)
	changeInode(r, n)
	c := n.clone()
	old := m.now.inodes[ino]
	c.Links, c.RemoteLinks, c.Entries, c.Subdirs, c.Cookies = old.Links, old.RemoteLinks, old.Entries, old.Subdirs, old.Cookies
	m.now.inodes[ino] = c
}

func (m *machine) Drop(r *rapid.T) {
	ino := m.pick(r, "ino", func(n *Inode) bool { return len(n.Links)+len(n.RemoteLinks) == 0 })
	if ino <= Root {
		return
	}
	for l := range m.now.names {
		if l.Dir == ino {
			return
		}
	}
	m.t.Drop(ino)
	delete(m.now.inodes, ino)
}

func (m *machine) SetName(r *rapid.T) {
	dir := m.pick(r, "dir", (*Inode).IsDir)
	if dir == 0 {
		return
	}
	l := Link{dir, genName.Draw(r, "name")}
	n := m.now.names[l]
	if rapid.Bool().Draw(r, "ino?") {
		n.Ino = 0
		if rapid.Bool().Draw(r, "to one?") {
			// A directory has one name at most.
			n.Ino = m.pick(r, "to", func(n *Inode) bool { return !n.IsDir() || len(n.Links) == 0 })
		}
	}
	if rapid.Bool().Draw(r, "seq?") {
		n.Seq = 0
		if rapid.Bool().Draw(r, "new seq?") {
			n.Seq = m.t.NextSeq()
			assert.Must(r, n.Seq > m.seqs, "NextSeq gave", n.Seq, "behind", m.seqs)
			m.seqs = n.Seq
		}
	}
	m.changeName(r, &n)
	m.t.SetName(dir, l.Name, n)
	m.now.setName(l, n)
}

func (m *machine) changeName(r *rapid.T, n *Name) {
	if rapid.Bool().Draw(r, "base?") {
		n.Remote = nil
		if rapid.Bool().Draw(r, "new base?") {
			n.Remote = &Remote{
				Kind: providers.Kind(rapid.Uint8().Draw(r, "kind")), Version: genVersion.Draw(r, "version"),
				Digest: genText.Draw(r, "digest"), ContentVersion: genUint.Draw(r, "gen"), AttrGen: genUint.Draw(r, "attrgen"),
			}
			if rapid.Bool().Draw(r, "home?") {
				n.Remote.Ino = m.pick(r, "home", anyInode)
			}
		}
	}
	n.Local = rapid.Bool().Draw(r, "local")
	n.Attempt, n.Held = nil, nil
	if rapid.Bool().Draw(r, "attempt") {
		n.Attempt = &Attempt{genText.Draw(r, "op"), genUint.Draw(r, "gen"), genUint.Draw(r, "attrgen"), rapid.Byte().Draw(r, "kind"), genText.Draw(r, "other")}
	}
	if rapid.Bool().Draw(r, "held") {
		n.Held = &Held{genText.Draw(r, "reason"), rapid.Bool().Draw(r, "conflict"), []byte(genText.Draw(r, "remote"))}
	}
	n.Cookie = genUint.Draw(r, "a cookie that does not matter")
}

func (m *machine) Set(r *rapid.T) {
	k := genText.Draw(r, "key")
	v := []byte(genText.Draw(r, "value"))
	if rapid.Bool().Draw(r, "delete") {
		m.t.Set(k, nil)
		delete(m.now.records, k)
		return
	}
	m.t.Set(k, v)
	m.now.records[k] = v
}

func (m *machine) Commit(r *rapid.T) {
	assert.OK(r, m.t.Commit(), "commit")
	assert.Must(r, reflect.DeepEqual(m.now, m.commits[len(m.commits)-1]) || m.t.session.begun, "a commit that does not begin the session")
	m.used = m.t.session.begun
	m.commits = append(m.commits, m.now.clone())
	if m.used {
		m.last, m.ended = Session{}, m.boot
	}
}

func (m *machine) Abort(*rapid.T) {
	m.t.Abort()
	m.now = m.commits[len(m.commits)-1].clone()
}

func (m *machine) Sync(r *rapid.T) {
	assert.OK(r, m.t.Sync(), "sync")
	m.commits = m.commits[len(m.commits)-1:]
}

func (m *machine) CloseAndOpen(r *rapid.T) {
	assert.OK(r, m.t.Close(), "close")
	m.last.Clean = m.last.Clean || m.used
	m.now = m.commits[len(m.commits)-1].clone()
	m.commits = m.commits[len(m.commits)-1:]
	m.open(r)
}

// Kill goes on with the files as they are, as after SIGKILL.
func (m *machine) Kill(r *rapid.T) {
	m.crash(r, 100)
	m.now = m.commits[len(m.commits)-1].clone()
	m.commits = m.commits[len(m.commits)-1:]
	m.open(r)
}

// PowerCut loses some of what was not synced. What is left is the state after
// one of the commits, none before the last Sync.
func (m *machine) PowerCut(r *rapid.T) {
	m.crash(r, rapid.IntRange(0, 99).Draw(r, "kept percent"))
	m.boot++
	m.open(r)
	inos := m.everyIno()
	for _, state := range slices.Backward(m.commits) {
		if state.differs(m.t, inos) == nil {
			m.now, m.commits = state.clone(), []*shadow{state}
			return
		}
	}
	r.Fatalf("after a power cut: not the state of any of the last %d commits; of the last %v", len(m.commits), m.now.differs(m.t, inos))
}

func (m *machine) crash(r *rapid.T, percent int) {
	rng := rapid.Uint64().Draw(r, "seed")
	disk := m.disk.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: newRand(rng)})
	m.t.Close() // on the old disk
	m.disk = disk
}

func (m *machine) everyIno() []Ino {
	inos := map[Ino]bool{Root: true}
	for _, s := range append(m.commits, m.now) {
		for ino := range s.inodes {
			inos[ino] = true
		}
	}
	return slices.Sorted(maps.Keys(inos))
}

// Check is what must hold after each step.
func (m *machine) Check(r *rapid.T) {
	assert.OK(r, m.now.differs(m.t, m.everyIno()))
	assert.OK(r, m.t.Check())
}

// TestModel runs random operations on the table and on plain maps, with kills
// and power cuts.
func TestModel(t *testing.T) {
	tier.Check(t, func(r *rapid.T) {
		m := &machine{disk: vfs.NewCrashableMem(), now: newShadow(), given: map[uint64]bool{}}
		m.commits = []*shadow{m.now.clone()}
		m.last = Session{First: true, Clean: true}
		m.open(r)
		defer func() { m.t.Close() }()
		actions := rapid.StateMachineActions(m)
		names := actions["SetName"]
		for i := range 6 { // what most calls are
			actions[fmt.Sprint("SetName", i)] = names
		}
		r.Repeat(actions)
	})
}
