package direct

import (
	"fmt"
	"runtime"
	"testing"

	wsfs "github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/integration/tier"
	"pgregory.net/rapid"
)

// The index behaves as a set of pairs, whatever the tags; few tags make many
// collisions.
func TestIndexIsASet(t *testing.T) {
	tier.Check(t, func(t *rapid.T) {
		var x index
		model := map[slot]bool{}
		for range rapid.IntRange(0, 300).Draw(t, "steps") {
			p := slot{rapid.Uint32Range(0, 40).Draw(t, "tag"), rapid.Uint32Range(0, 60).Draw(t, "num")}
			switch {
			case !model[p]:
				x.put(p.tag, p.ref)
				model[p] = true
			case rapid.Bool().Draw(t, "del"):
				x.del(p.tag, p.ref)
				delete(model, p)
			}
			x.del(1000, 1000) // not there
		}
		for tag := range uint32(41) {
			for num := range uint32(61) {
				_, got := x.find(tag, func(n uint32) bool { return n == num })
				if want := model[slot{tag, num}]; got != want {
					t.Fatalf("%d,%d: got %v, want %v", tag, num, got, want)
				}
			}
		}
		if x.n != len(model) {
			t.Fatalf("n is %d, want %d", x.n, len(model))
		}
	})
}

// Numbers are found as long as they are in use, and never come again.
func TestNumbersAreNeverUsedAgain(t *testing.T) {
	tier.Check(t, func(t *rapid.T) {
		var tab table
		tab.init()
		tab.root(ident{2, 1}, nil)
		live := map[ident]wsfs.Ino{}
		ever := map[wsfs.Ino]bool{wsfs.RootIno: true}
		for range rapid.IntRange(0, 600).Draw(t, "steps") {
			id := ident{rapid.Uint64Range(1, 400).Draw(t, "id"), 7}
			n, made := tab.intern(id)
			ino := n.ino
			if was := live[id]; made != (was == 0) || !made && was != ino {
				t.Fatalf("%v: got %d made %v, was %d", id, ino, made, was)
			}
			if made && ever[ino] {
				t.Fatalf("number %d given twice", ino)
			}
			ever[ino], live[id] = true, ino
			n.setName(wsfs.RootIno, fmt.Sprint(id.id))
			if rapid.Bool().Draw(t, "drop") {
				n.drop()
				delete(live, id)
			}
			n.unlock()
		}
		for id, ino := range live {
			n, known := tab.lock(ino)
			if !known || n.ident() != id {
				t.Fatalf("%v lost", id)
			}
			n.unlock()
			if got := tab.named(wsfs.RootIno, fmt.Sprint(id.id), 0); got != ino {
				t.Fatalf("name of %v leads to %d, want %d", id, got, ino)
			}
		}
		if got := tab.count(); got != len(live)+1 {
			t.Fatalf("count %d, want %d", got, len(live)+1)
		}
	})
}

// A place that has had all its generations is retired.
func TestGenerationsEnd(t *testing.T) {
	var s shard
	n, place := s.alloc()
	for i := range s.chunks[0].recs {
		s.chunks[0].recs[i].gen = maxGen
	}
	s.free(n, place)
	for range chunkLen * 2 {
		n, place = s.alloc()
		if n.gen > maxGen {
			t.Fatalf("generation %d does not fit", n.gen)
		}
		if place == 0 && n.gen <= maxGen && n != s.at(0) {
			t.Fatal("retired place given again")
		}
	}
}

// Memory of a chunk goes when a million inodes go.
func TestMemoryComesBack(t *testing.T) {
	var tab table
	tab.init()
	tab.root(ident{2, 1}, nil)
	const many = 200_000
	inos := make([]wsfs.Ino, many)
	for i := range inos {
		n, _ := tab.intern(ident{uint64(i) + 10, 1})
		n.unlock()
		inos[i] = n.ino
	}
	for _, ino := range inos {
		n, _ := tab.lock(ino)
		n.drop()
		n.unlock()
	}
	filled, slots := 0, 0
	for i := range tab.shards {
		for _, c := range tab.shards[i].chunks {
			if c.recs != nil {
				filled++
			}
		}
		slots += len(tab.shards[i].ids.slots)
	}
	if filled > shardCount+1 || slots > shardCount*minIndex*2 {
		t.Errorf("%d chunks and %d slots are left", filled, slots)
	}
}

func TestFoldedNumbers(t *testing.T) {
	for _, c := range []struct{ in, want uint64 }{
		{12, 12},
		{1<<48 - 1, 1<<48 - 1},
		{1 << 48, 1 << 24},
		{0xffff<<48 | 5, 0xffff<<24 | 5},
	} {
		if got := foldIno(c.in); got != wsfs.Ino(c.want) {
			t.Errorf("foldIno(%#x) = %#x, want %#x", c.in, got, c.want)
		}
	}
}

func memoryPerInode() float64 {
	const many = 200_000
	var tab table
	tab.init()
	tab.root(ident{2, 1}, nil)
	before := heap()
	for i := range many {
		n, _ := tab.intern(ident{uint64(i) + 10, 1})
		n.setName(wsfs.RootIno, fmt.Sprintf("file-%06d", i))
		n.refs++
		n.unlock()
	}
	used := heap() - before
	runtime.KeepAlive(&tab)
	return float64(used) / many
}

func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// The bar of 150 bytes per inode is a promise: see the package comment.
func TestMemoryPerInode(t *testing.T) {
	if got := memoryPerInode(); got > 150 || got < 72 {
		t.Errorf("%.0f bytes per inode, want at most 150", got)
	}
}
