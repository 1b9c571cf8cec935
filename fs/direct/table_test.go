package direct

import (
	"fmt"
	"runtime"
	"testing"

	wsfs "github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/integration/assert"
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
				want := model[slot{tag, num}]
				assert.Must(t, got == want, tag, num, "got", got, "want", want)
			}
		}
		assert.Must(t, x.n == len(model), "n is", x.n, "want", len(model))
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
			was := live[id]
			assert.Must(t, made == (was == 0) && (made || was == ino), id, "got", ino, "made", made, "was", was)
			assert.Must(t, !made || !ever[ino], "number", ino, "given twice")
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
			assert.Must(t, known && n.ident() == id, id, "lost")
			n.unlock()
			got := tab.named(wsfs.RootIno, fmt.Sprint(id.id), 0)
			assert.Must(t, got == ino, "name of", id, "leads to", got, "want", ino)
		}
		got := tab.count()
		assert.Must(t, got == len(live)+1, "count", got, "want", len(live)+1)
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
		assert.Must(t, n.gen <= maxGen, "generation", n.gen, "does not fit")
		assert.Must(t, place != 0 || n.gen > maxGen || n == s.at(0), "retired place given again")
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
	assert.True(t, filled <= shardCount+1 && slots <= shardCount*minIndex*2, filled, "chunks and", slots, "slots are left")
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
