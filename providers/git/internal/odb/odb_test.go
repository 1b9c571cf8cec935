package odb_test

import (
	"bytes"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/gitserver"
	"github.com/wsmount/wsmount/integration/tier"
	"github.com/wsmount/wsmount/providers/git/internal/odb"
	"github.com/wsmount/wsmount/providers/git/internal/space"
)

func open(t *testing.T, dir string) *odb.Store {
	t.Helper()
	s := assert.Of(odb.Open(filepath.Join(dir, "objects"), filepath.Join(dir, "wsmount"), space.Disk{})).OK(t)
	t.Cleanup(func() { s.Close() })
	return s
}

// repacked is a repository with content that git stores as deltas of both kinds
// of bases, and what it has: id to content.
func repacked(t *testing.T) (repo *gitserver.Repo, want map[string]string) {
	t.Helper()
	server := gitserver.Start(t)
	repo = server.Create(t, "r")
	work := repo.Clone(filepath.Join(t.TempDir(), "w"))
	r := rand.New(rand.NewPCG(1, 2))
	lines := make([]string, 1000)
	for i := range lines {
		lines[i] = fmt.Sprintf("line %d of %d", i, r.Uint64())
	}
	want = map[string]string{}
	for round := range 4 {
		length := 20_000
		if round == 2 {
			length = 170_000 // more than comes out of a pack in one piece
		}
		lines[r.IntN(len(lines))] = fmt.Sprintf("changed in round %d", round)
		files := map[string]string{
			"long": strings.Join(lines, "\n"), "short": fmt.Sprint(round), "empty": "", "dir/large": numbers(round, length),
		}
		work.Write(files)
		work.Commit("main", fmt.Sprint("round ", round))
		for _, content := range files {
			sum := sha1.Sum(fmt.Appendf(nil, "blob %d\x00%s", len(content), content))
			want[fmt.Sprintf("%x", sum)] = content
		}
	}
	repo.Git("repack", "-adfq", "--depth=10", "--window=10")
	return repo, want
}

// numbers is long, and nowhere the same.
func numbers(from, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintln(&b, from+i)
	}
	return b.String()
}

// holds compares what a store has with what it must have, from many readers, each of
// which begins elsewhere in an object.
func holds(t *testing.T, s *odb.Store, want map[string]string) {
	t.Helper()
	var wg sync.WaitGroup
	for from := range 3 {
		wg.Go(func() {
			for name, content := range want {
				at := idOf(name)
				size, err := s.Size(at)
				assert.True(t, err == nil && size == int64(len(content)), "size of", name, size, err, "want", len(content))
				off := []int64{0, size / 2, size + 10}[from]
				r, err := s.Open(at, off)
				if err != nil {
					t.Errorf("open of %s: %v", name, err)
					return
				}
				got, err := io.ReadAll(r)
				r.Close()
				if err != nil || string(got) != content[min(off, size):] {
					t.Errorf("%s from %d on: %d bytes, %v, want %d", name, off, len(got), err, size-off)
				}
			}
		})
	}
	wg.Wait()
}

func idOf(text string) (id odb.ID) {
	if _, err := hex.Decode(id[:], []byte(text)); err != nil {
		panic(err)
	}
	return id
}

// A pack is read the same whether git has indexed it or Receive, and sizes are
// the same whether they were kept or found again.
func TestPacksOfGit(t *testing.T) {
	repo, want := repacked(t)
	theirs := open(t, repo.Dir)
	holds(t, theirs, want)

	packs := assert.Of(filepath.Glob(filepath.Join(repo.Dir, "objects/pack/*.pack"))).OK(t)
	assert.Must(t, len(packs) == 1, packs)
	f := assert.Of(os.Open(packs[0])).OK(t)
	defer f.Close()
	dir := t.TempDir()
	ours := open(t, dir)
	assert.OK(t, ours.Receive(f))
	holds(t, ours, want)
	made := assert.Of(filepath.Glob(filepath.Join(dir, "objects/pack/*.idx"))).OK(t)
	assert.Must(t, len(made) == 1, made)
	got, _ := os.ReadFile(made[0])
	index, _ := os.ReadFile(strings.TrimSuffix(packs[0], ".pack") + ".idx")
	assert.True(t, bytes.Equal(got, index), "the index is not the one that git makes")
	holds(t, open(t, dir), want)
	assert.OK(t, os.RemoveAll(filepath.Join(dir, "wsmount")))
	holds(t, open(t, dir), want)
}

// A file of sizes that was damaged is not believed.
func TestDamagedSizes(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	made := put(t, s, strings.Repeat("content ", 100))
	files := assert.Of(filepath.Glob(filepath.Join(dir, "wsmount/sizes/*"))).OK(t)
	assert.Must(t, len(files) == 1, files)
	b := assert.Of(os.ReadFile(files[0])).OK(t)
	b[len(b)-6] ^= 1
	assert.OK(t, os.WriteFile(files[0], b, 0o600))
	assert.Of(open(t, dir).Size(made)).Equal(t, 800, "size")
}

func put(t *testing.T, s *odb.Store, content string) odb.ID {
	t.Helper()
	b := assert.Of(s.NewBatch()).OK(t)
	made := assert.Of(b.Add(odb.Blob, []byte(content))).OK(t)
	assert.OK(t, b.Finish())
	return made
}

// The disk has objects when they are seen, whether they were made here or received.
func TestPacksReachTheDisk(t *testing.T) {
	made, received := t.TempDir(), t.TempDir()
	put(t, open(t, made), numbers(0, 20_000))
	pack := packsOnDisk(t, made)
	content := assert.Of(os.ReadFile(pack)).OK(t)
	assert.OK(t, open(t, received).Receive(bytes.NewReader(content)))
	packsOnDisk(t, received)
}

// packsOnDisk checks that a loss of power takes nothing of the only pack.
func packsOnDisk(t *testing.T, dir string) (pack string) {
	t.Helper()
	for _, ending := range []string{"idx", "pack"} {
		found := assert.Of(filepath.Glob(filepath.Join(dir, "objects/pack/*."+ending))).OK(t)
		assert.Equal(t, len(found), 1, "files", ending)
		pack = found[0]
		tier.OnDisk(t, pack)
	}
	return pack
}

// A pack that broke off, was changed on the way, or is no pack, leaves nothing.
func TestBrokenPacks(t *testing.T) {
	from := open(t, t.TempDir())
	b := assert.Of(from.NewPack()).OK(t)
	for i := range 20 {
		assert.OK(t, assert.ErrOf(b.Add(odb.Blob, []byte(strings.Repeat(fmt.Sprint(i), 100)))))
	}
	r := assert.Of(b.Pack()).OK(t)
	good, err := io.ReadAll(r)
	r.Close()
	assert.OK(t, err)
	changed := bytes.Clone(good)
	changed[len(changed)/2] ^= 0x40
	other := bytes.Clone(good)
	other[len(other)-1] ^= 1
	dir := t.TempDir()
	s := open(t, dir)
	for what, pack := range map[string][]byte{
		"cut": good[:len(good)/2], "changed": changed, "of another sum": other, "empty": {}, "text": []byte("error: something is wrong here, and that is no pack"),
	} {
		assert.Is(t, s.Receive(bytes.NewReader(pack)), odb.ErrCorrupt, what)
	}
	for _, sub := range []string{"objects/pack", "wsmount/tmp"} {
		left, _ := os.ReadDir(filepath.Join(dir, sub))
		assert.True(t, len(left) == 0, sub, "has", left)
	}
	for range 2 { // the second time it is here already
		assert.OK(t, s.Receive(bytes.NewReader(good)))
	}
}

// The smallest pack that has something: less than a header may be is behind its
// one object.
func TestSmallestPack(t *testing.T) {
	pack := []byte("PACK\x00\x00\x00\x02\x00\x00\x00\x01\x30\x78\x9c\x03\x00\x00\x00\x00\x01")
	sum := sha1.Sum(pack)
	s := open(t, t.TempDir())
	var came [2]int
	s.OnReceive(func(done, total int) { came = [2]int{done, total} })
	assert.OK(t, s.Receive(bytes.NewReader(append(pack, sum[:]...))))
	assert.Equal(t, came, [2]int{1, 1}, "objects that came, of all")
	holds(t, s, map[string]string{"e69de29bb2d1d6434b8b29ae775ad8c2e48c5391": ""})
}

// What a batch refuses leaves no trace in its pack, and what is here is not
// added again.
func TestBatch(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	first := put(t, s, "first")
	b, err := s.NewBatch()
	assert.OK(t, err)
	broken := errors.New("broken")
	if _, err := b.Put(odb.Blob, 1000, func(w io.Writer) error {
		w.Write(make([]byte, 500))
		return broken
	}); !errors.Is(err, broken) {
		t.Fatalf("put of what breaks: %v", err)
	}
	assert.Of(b.Add(odb.Blob, []byte("first"))).Equal(t, first)
	second := assert.Of(b.Add(odb.Blob, []byte("second"))).OK(t)
	assert.False(t, s.Has(second), "it is seen before it is safe")
	assert.OK(t, b.Finish())
	assert.Of(s.Get(second, odb.Blob)).Equal(t, []byte("second"))
	holds(t, open(t, dir), map[string]string{first.String(): "first", second.String(): "second"})
	packs, _ := filepath.Glob(filepath.Join(dir, "objects/pack/*.pack"))
	for _, name := range packs {
		pack, err := os.ReadFile(name)
		if err == nil {
			err = open(t, t.TempDir()).Receive(bytes.NewReader(pack))
		}
		assert.Is(t, err, nil, "another database does not take the pack")
	}
}

// Many small packs become one, with deltas and all, that the git program finds sound, while
// others read; what a crash leaves of it does no harm.
func TestRepack(t *testing.T) {
	repo, want := repacked(t)
	s := open(t, repo.Dir)
	for i := range 66 {
		b := assert.Of(s.NewBatch()).OK(t)
		for j := range 3 {
			content := fmt.Sprintf("content %d of %d", j, i)
			id := assert.Of(b.Add(odb.Blob, []byte(content))).OK(t)
			want[id.String()] = content
		}
		assert.OK(t, b.Finish())
		if i == 32 {
			reading, stop := sync.WaitGroup{}, make(chan struct{})
			reading.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
						holds(t, s, want)
					}
				}
			})
			assert.OK(t, s.Repack(t.Context()))
			close(stop)
			reading.Wait()
		}
	}
	before, _ := filepath.Glob(filepath.Join(repo.Dir, "objects", "pack", "*.pack"))
	kept := repo.Dir + ".kept" // on the file system of the repository, so that packs can be linked
	assert.OK(t, os.Mkdir(kept, 0o755))
	for _, name := range before {
		for _, end := range []string{".pack", ".idx"} {
			from := strings.TrimSuffix(name, ".pack") + end
			assert.OK(t, os.Link(from, filepath.Join(kept, filepath.Base(from))))
		}
	}
	assert.OK(t, s.Repack(t.Context()))
	holds(t, s, want)
	now, _ := filepath.Glob(filepath.Join(repo.Dir, "objects", "pack", "*.pack"))
	assert.True(t, len(before) <= 36 && len(now) <= 3, "there were", len(before), "packs, and are", len(now))
	repo.Git("fsck", "--strict", "--no-dangling")
	all := assert.Of(filepath.Glob(filepath.Join(repo.Dir, "objects", "pack", "*.idx"))).OK(t)
	assert.Contains(t, repo.Git(append([]string{"verify-pack", "-s"}, all...)...), "chain length = 1:", "no delta has come along")

	// The process ended before it had removed what it could, and in the middle of it.
	assert.OK(t, s.Close())
	for i, name := range before {
		for _, end := range []string{".pack", ".idx"} {
			base := strings.TrimSuffix(filepath.Base(name), ".pack") + end
			if i%3 > 0 || end == ".pack" {
				_ = os.Link(filepath.Join(kept, base), filepath.Join(repo.Dir, "objects", "pack", base))
			}
		}
	}
	s = open(t, repo.Dir)
	holds(t, s, want)
	for _, name := range before {
		if _, err := os.Stat(strings.TrimSuffix(name, ".pack") + ".idx"); err == nil {
			continue
		}
		if _, err := os.Stat(name); err == nil {
			t.Errorf("%s is there without an index", filepath.Base(name))
		}
	}
	assert.OK(t, s.Repack(t.Context()))
	holds(t, s, want)
}
