package table

import (
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
)

// The figures of the package comment, with WSMOUNT_TABLE_SCALE=10000 for ten
// million files:
//
//	go test -run '^$' -bench . -benchtime 1s ./cache/internal/table
//	go test -run '^$' -bench Scale -benchtime 1x -timeout 1h ./cache/internal/table

// pulled is an inode as a pull makes it, with its name and base.
func pulled(t *Table, dir Ino, name string) Ino {
	ino := t.Alloc()
	v := providers.Version{ETag: fmt.Sprintf("%016x%016x", ino*0x9e3779b97f4a7c15, ino*0xc2b2ae3d27d4eb4f), Modified: int64(ino) * 1e6, Size: int64(ino)}
	birth := int64(1_700_000_000_000_000_000 + ino)
	now := Stamp(birth)
	t.Put(ino, &Inode{
		Mode: syscall.S_IFREG | 0o644, UID: 1000, GID: 1000, Size: v.Size, ContentVersion: 1, AttrGen: 1,
		Atime: now, Mtime: now, Ctime: now, Birth: birth,
	})
	t.SetName(dir, name, Name{Ino: ino, Remote: &Remote{Ino: ino, Kind: providers.KindFile, Version: v, ContentVersion: 1, AttrGen: 1}})
	return ino
}

// fill makes dirs directories of 1000 files, and gives their numbers.
func fill(t testing.TB, tab *Table, dirs int) []Ino {
	directory(tab, 0, "")
	var inos []Ino
	for i := range dirs {
		d := directory(tab, Root, fmt.Sprintf("directory-%05d", i))
		inos = append(inos, d)
		for j := range 1000 {
			pulled(tab, d, fmt.Sprintf("some-file-name-%05d.txt", j))
		}
		commit(t, tab)
	}
	return inos
}

func BenchmarkCreate(b *testing.B) {
	tab := open(b, b.TempDir(), Options{})
	defer tab.Close()
	tab.options.Strict = false
	directory(tab, 0, "")
	dirs := []Ino{}
	for i := range 100 {
		dirs = append(dirs, directory(tab, Root, fmt.Sprint(i)))
	}
	commit(b, tab)
	var whole, commits []time.Duration
	i := 0
	for b.Loop() {
		start := time.Now()
		dir, name := dirs[i%100], "some-file-name-"+strconv.Itoa(i)
		_, ok := tab.Name(dir, name)
		assert.Must(b, !ok, "the name is there")
		ino := tab.Alloc()
		tab.Put(ino, &Inode{Mode: syscall.S_IFREG | 0o644, UID: 1000, ContentVersion: 1, AttrGen: 1, Mtime: Stamp(int64(i)), Ctime: Stamp(int64(i))})
		tab.SetName(dir, name, Name{Ino: ino, Seq: tab.NextSeq()})
		tab.Edit(dir).Mtime = Stamp(int64(i))
		half := time.Now()
		commit(b, tab)
		whole = append(whole, time.Since(start))
		commits = append(commits, time.Since(half))
		i++
	}
	report(b, "create", whole)
	report(b, "commit", commits)
}

// report says how long most took, and how long the slow ones: a mean would
// mostly tell how busy the machine is.
func report(b *testing.B, what string, took []time.Duration) {
	slices.Sort(took)
	b.ReportMetric(took[len(took)/2].Seconds()*1e6, what+"-p50-us")
	b.ReportMetric(took[len(took)*99/100].Seconds()*1e6, what+"-p99-us")
}

// BenchmarkRead reads from 200 000 files; the database is larger than what is
// kept of it in memory.
func BenchmarkRead(b *testing.B) {
	dir := b.TempDir()
	tab := open(b, dir, Options{})
	dirs := fill(b, tab, 200)
	assert.OK(b, tab.Close())
	tab = open(b, dir, Options{})
	defer tab.Close()
	tab.options.Strict = false
	name := func() (Ino, string) {
		return dirs[rand.IntN(len(dirs))], fmt.Sprintf("some-file-name-%05d.txt", rand.IntN(1000))
	}
	b.Run("InodeHot", func(b *testing.B) {
		for b.Loop() {
			tab.Inode(dirs[7])
		}
	})
	has := func(dir Ino, name string) bool {
		_, ok := tab.Name(dir, name)
		return ok
	}
	for _, c := range []struct {
		name string
		do   func() bool // whether it found what it looked for
		want bool
	}{
		{"InodeCold", func() bool {
			ino := Ino(rand.IntN(200_000)) + 2
			tab.inodes.drop(ino)
			return tab.Inode(ino) != nil
		}, true},
		{"NameHit", func() bool { return has(name()) }, true},
		{"NameHitOneDirectory", func() bool { return has(dirs[3], "some-file-name-00500.txt") }, true},
		{"NameMiss", func() bool { dir, name := name(); return has(dir, name+"x") }, false},
		{"NameMissOneDirectory", func() bool { return has(dirs[3], "some-file-name-00500.txu") }, false},
	} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				if c.do() != c.want {
					b.Fatal("there is", !c.want)
				}
			}
		})
	}
	b.Run("Next1000", func(b *testing.B) {
		for b.Loop() {
			n := 0
			dir := dirs[rand.IntN(len(dirs))]
			for e, ok := tab.Next(dir, 0); ok; e, ok = tab.Next(dir, e.Cookie) {
				n++
			}
			assert.Must(b, n == 1000, n)
		}
	})
}

// BenchmarkScale reports what a thousand directories of a thousand files cost.
func BenchmarkScale(b *testing.B) {
	dirs := 1000
	if s := os.Getenv("WSMOUNT_TABLE_SCALE"); s != "" {
		dirs, _ = strconv.Atoi(s)
	}
	for b.Loop() {
		dir := b.TempDir()
		idle := rss(b)
		tab := open(b, dir, Options{})
		b.ReportMetric(rss(b)-idle, "empty-MiB")
		tab.options.Strict = false
		start := time.Now()
		inos := fill(b, tab, dirs)
		b.ReportMetric(time.Since(start).Seconds()*1e6/float64(dirs)/1000, "us/pulled")
		b.ReportMetric(rss(b), "filled-MiB")
		for range 2_000_000 {
			dir := inos[rand.IntN(len(inos))]
			n, _ := tab.Name(dir, fmt.Sprintf("some-file-name-%05d.txt", rand.IntN(1000)))
			tab.Inode(n.Ino)
		}
		b.ReportMetric(rss(b), "read-MiB")
		start = time.Now()
		for range 100_000 {
			tab.Name(inos[rand.IntN(len(inos))], fmt.Sprintf("some-file-name-%05d.txt", rand.IntN(1000)))
		}
		b.ReportMetric(time.Since(start).Seconds()*10, "us/hit")
		start = time.Now()
		for range 100_000 {
			tab.Name(inos[rand.IntN(len(inos))], fmt.Sprintf("some-file-name-%05d.txx", rand.IntN(1000)))
		}
		b.ReportMetric(time.Since(start).Seconds()*10, "us/miss")
		b.ReportMetric(float64(tab.db.Metrics().DiskSpaceUsage())/(1<<20), "disk-MiB")
		start = time.Now()
		assert.OK(b, tab.Close())
		tab = open(b, dir, Options{})
		b.ReportMetric(time.Since(start).Seconds()*1000, "ms/reopen")
		assert.OK(b, tab.Close())
	}
}

// rss is the memory of this process that is not a file's, in MiB.
func rss(t testing.TB) float64 {
	runtime.GC()
	status, err := os.ReadFile("/proc/self/status")
	assert.Is(t, err, nil)
	for _, line := range strings.Split(string(status), "\n") {
		if rest, ok := strings.CutPrefix(line, "RssAnon:"); ok {
			n, _ := strconv.Atoi(strings.Fields(rest)[0])
			return float64(n) / 1024
		}
	}
	return 0
}
