package table

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/tier"
)

// The crash tests run a load whose state after each step is known, end it, and
// look for that state.

// keep is how many files the load leaves in its directory.
const keep = 50

// step makes file i and removes file i-keep, in one commit.
func step(t *Table, i int) error {
	if t.Inode(Root) == nil {
		directory(t, 0, "")
	}
	ino := t.Alloc()
	t.Put(ino, &Inode{Mode: syscall.S_IFREG, Size: int64(i), Target: strings.Repeat("x", i%700)})
	t.SetName(Root, fmt.Sprint("f", i), Name{Ino: ino, Seq: t.NextSeq()})
	if old, ok := t.Name(Root, fmt.Sprint("f", i-keep)); ok {
		t.SetName(Root, fmt.Sprint("f", i-keep), Name{})
		t.Drop(old.Ino)
	}
	t.Set("n", []byte(strconv.Itoa(i)))
	return t.Commit()
}

// verify gives the step after which t is, exactly.
func verify(t *Table) (int, error) {
	if err := t.Err(); err != nil {
		return 0, err
	}
	n, _ := strconv.Atoi(string(t.Get("n")))
	want := map[string]int{}
	for i := max(1, n-keep+1); i <= n; i++ {
		want[fmt.Sprint("f", i)] = i
	}
	var err error
	t.Names(Root, "", func(name string, got Name) bool {
		i := t.Inode(got.Ino)
		if i == nil || want[name] == 0 || i.Size != int64(want[name]) || len(i.Target) != want[name]%700 {
			err = fmt.Errorf("after step %d there is %q with %+v", n, name, i)
		}
		delete(want, name)
		return err == nil
	})
	if err == nil && len(want) > 0 {
		err = fmt.Errorf("after step %d there is no %v", n, want)
	}
	return n, errors.Join(err, t.Check())
}

const childDir = "WSMOUNT_TABLE_CHILD"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		if err := load(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	flag.Parse()
	said := false
	flag.Visit(func(f *flag.Flag) { said = said || f.Name == "rapid.checks" })
	if !said {
		flag.Set("rapid.checks", tier.Pick("20", "1000"))
	}
	os.Exit(inScratch(m.Run))
}

// scratchDir is a directory for what several tests begin with.
var scratchDir string

func inScratch(run func() int) int {
	var err error
	if scratchDir, err = os.MkdirTemp("", "table"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(scratchDir)
	return run()
}

// load steps for ever, and says "c N" when step N is committed, and "s N" when
// it is synced.
func load(dir string) error {
	t, err := Open(dir, Options{Strict: true, memTable: 128 << 10})
	if err != nil {
		return err
	}
	n, err := verify(t)
	if err != nil {
		return err
	}
	var mu sync.Mutex
	committed := 0
	go func() {
		for {
			mu.Lock()
			i := committed
			mu.Unlock()
			if i > 0 && t.Sync() == nil {
				say("s", i)
			}
			time.Sleep(5 * time.Millisecond)
		}
	}()
	for {
		n++
		if err := step(t, n); err != nil {
			return err
		}
		say("c", n)
		mu.Lock()
		committed = n
		mu.Unlock()
	}
}

// say is one write, and so either heard or not said.
func say(what string, n int) {
	os.Stdout.WriteString(what + " " + strconv.Itoa(n) + "\n")
}

// child is a process under load.
type child struct {
	cmd       *exec.Cmd
	done      chan struct{}
	committed int          // when done
	synced    atomic.Int64 // so far

	mu    sync.Mutex
	moved *sync.Cond
	first int // the first step of this process
	steps int // committed so far; guarded by mu
	ended bool
}

// reaches waits until a step is committed.
func (c *child) reaches(step int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.steps < step && !c.ended {
		c.moved.Wait()
	}
}

func startLoad(t *testing.T, dir string) *child {
	t.Helper()
	cmd := exec.CommandContext(context.Background(), "/proc/self/exe")
	cmd.Env = append(os.Environ(), childDir+"="+dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	assert.OK(t, err)
	assert.OK(t, cmd.Start())
	c := &child{cmd: cmd, done: make(chan struct{})}
	c.moved = sync.NewCond(&c.mu)
	go c.listen(bufio.NewScanner(out))
	c.reaches(1)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.first = c.steps
	return c
}

func (c *child) listen(lines *bufio.Scanner) {
	defer close(c.done)
	defer c.reached(0, true)
	for lines.Scan() {
		what, number, _ := strings.Cut(lines.Text(), " ")
		n, err := strconv.Atoi(number)
		if err != nil {
			continue // cut off
		}
		if what == "c" {
			c.committed = n
			c.reached(n, false)
		} else {
			c.synced.Store(int64(n))
		}
	}
}

func (c *child) reached(step int, ended bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.steps, c.ended = max(c.steps, step), ended
	c.moved.Broadcast()
}

// kill ends the child and waits for all it said.
func (c *child) kill(t *testing.T) {
	t.Helper()
	assert.Is(t, c.cmd.Process.Kill(), nil)
	<-c.done
	c.cmd.Wait()
	if c.committed == 0 {
		t.Fatal("the load did nothing")
	}
}

// TestKilled: each Commit that returned is there after SIGKILL, and nothing is
// there in part.
func TestKilled(t *testing.T) {
	dir := t.TempDir()
	for i := range tier.Pick(4, 60) {
		c := startLoad(t, dir)
		c.reaches(c.first + i*37%150) // anywhere in the load
		c.kill(t)
		tab := open(t, dir, Options{})
		if s := tab.Session(); !s.Killed() {
			t.Errorf("after a kill the session ended as %+v", s)
		}
		n, err := verify(tab)
		if err != nil || n < c.committed || n > c.committed+1 {
			t.Errorf("kill %d: %d commits are there and %d returned: %v", i, n, c.committed, err)
		}
		assert.OK(t, tab.Close())
	}
}

// TestPowerCutAnywhere cuts the power of a simulated disk after many steps,
// through rotations of the log, and lets some of what was not synced survive
// here and there.
func TestPowerCutAnywhere(t *testing.T) {
	tier.Seeds(t, tier.Pick(4, 40), func(t *testing.T, seed uint64) {
		disk := vfs.NewCrashableMem()
		tab := open(t, "/t", Options{FS: disk, memTable: 64 << 10, BootID: "before"})
		rng := newRand(seed)
		steps, synced := 1+rng.IntN(900), 0
		for i := 1; i <= steps; i++ {
			assert.OK(t, step(tab, i))
			if rng.IntN(100) == 0 {
				assert.OK(t, tab.Sync())
				synced = i
			}
		}
		after := disk.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: rng.IntN(100), RNG: rng})
		assert.OK(t, tab.Close())
		tab = open(t, "/t", Options{FS: after, BootID: "after"})
		if n, err := verify(tab); err != nil || n < synced || n > steps {
			t.Errorf("%d of %d commits are there, %d were synced: %v", n, steps, synced, err)
		}
		assert.OK(t, tab.Close())
	})
}
