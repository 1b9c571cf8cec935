package content

import (
	"bufio"
	"context"
	"fmt"
	"math/rand"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/tier"
)

const (
	killVar   = "WSMOUNT_CONTENT_KILL" // directory of the store, for the child
	killSize  = 64*4096 + 100
	killBlock = 4096
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(killVar); dir != "" {
		victim(dir)
		return
	}
	os.Exit(m.Run())
}

func killOptions() Options { return Options{Block: killBlock, Floor: -1, Ballast: -1} }

// victim changes and fetches a file until it is killed. Of each operation it
// says first what it will be, and then that it is done.
func victim(dir string) {
	s, err := Open(dir, killOptions())
	if err != nil {
		panic(err)
	}
	b := &backend{data: pattern(killSize, 1)}
	f, err := s.Open(7)
	if err != nil {
		if f, err = s.Sparse(7, "", killSize, digestOf(b.data)); err != nil {
			panic(err)
		}
	}
	f.SetSource(b.source)
	r := rand.New(rand.NewSource(int64(os.Getpid())))
	ctx := context.Background()
	for {
		off := r.Int63n(killSize)
		n := 1 + r.Int63n(3*killBlock)
		op := r.Intn(8)
		seed := byte(r.Intn(256))
		if op == 2 {
			off, n = off/killBlock*killBlock, (n+killBlock-1)/killBlock*killBlock
		}
		fmt.Printf("%d %d %d %d\n", op, off, n, seed)
		switch op {
		case 0, 1, 2:
			_, err = f.WriteAt(ctx, pattern(int(n), seed), off)
		case 3:
			err = f.Truncate(ctx, off)
		case 4:
			err = f.Sync()
		case 5:
			f.Prefetch(off, n)
		default:
			err = f.Fetch(ctx, off, n)
		}
		if err != nil {
			panic(err)
		}
		fmt.Println("done")
	}
}

// TestKill kills a process that works on a file, over and over, and looks what
// the next one finds: all that was done, and of the operation that was under
// way nothing, all or a part.
func TestKill(t *testing.T) {
	dir := t.TempDir()
	want := pattern(killSize, 1)
	r := rand.New(rand.NewSource(1))
	for range tier.Pick(3, 60) {
		want = checkKilled(t, dir, want, killOne(t, dir, 20+r.Intn(150)))
	}
}

type killed struct {
	op, seed int
	off, n   int64
	done     bool
}

// killOne kills a child after so many operations, and says what they were.
func killOne(t *testing.T, dir string, after int) []killed {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), killVar+"="+dir)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	assert.OK(t, err)
	assert.OK(t, cmd.Start())
	var all []killed
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if lines.Text() == "done" {
			all[len(all)-1].done = true
		} else {
			var k killed
			if _, err := fmt.Sscan(lines.Text(), &k.op, &k.off, &k.n, &k.seed); err != nil {
				break // cut
			}
			all = append(all, k)
		}
		if len(all) == after {
			assert.OK(t, cmd.Process.Kill())
		}
	}
	_ = cmd.Wait()
	if strings.Contains(stderr.String(), "panic") {
		t.Fatal(stderr.String())
	}
	return all
}

// checkKilled compares the file with what was done to it, and returns what it
// is.
func checkKilled(t *testing.T, dir string, old []byte, ops []killed) []byte {
	want := old
	fetched := make([]bool, killSize/killBlock+1)
	var last []byte
	for _, k := range ops {
		last = want
		want = apply(want, k)
		for i := k.off / killBlock; k.op >= 6 && k.done && i <= (k.off+k.n-1)/killBlock && i < int64(len(fetched)); i++ {
			fetched[i] = true
		}
	}
	if len(ops) > 0 && ops[len(ops)-1].done {
		last = want
	}
	s := openStore(t, dir, killOptions())
	defer s.Close()
	f, err := s.Open(7)
	assert.OK(t, err)
	defer f.Release()
	for i, ok := range fetched {
		if ok && !f.Present(int64(i)*killBlock, killBlock) {
			t.Errorf("block %d was fetched and is gone", i)
		}
	}
	b := &backend{data: pattern(killSize, 1)}
	f.SetSource(b.source)
	got := make([]byte, f.Size())
	assert.OK(t, assert.ErrOf(f.ReadAt(t.Context(), got, 0)))
	for i, c := range got {
		if i < len(want) && c == want[i] || i < len(last) && c == last[i] || i >= len(last) && c == 0 {
			continue
		}
		t.Fatalf("byte %d of %d is %#x; after %d operations, the last %+v", i, len(got), c, len(ops), ops[len(ops)-1])
	}
	if len(got) < min(len(want), len(last)) || len(got) > max(len(want), len(last)) {
		t.Fatalf("size %d, want %d or %d", len(got), len(want), len(last))
	}
	return got
}

func apply(p []byte, k killed) []byte {
	next := append([]byte(nil), p...)
	switch k.op {
	case 0, 1, 2:
		if more := k.off + k.n - int64(len(next)); more > 0 {
			next = append(next, make([]byte, more)...)
		}
		copy(next[k.off:], pattern(int(k.n), byte(k.seed)))
	case 3:
		next = append(next, make([]byte, max(0, k.off-int64(len(next))))...)[:k.off]
	}
	return next
}
