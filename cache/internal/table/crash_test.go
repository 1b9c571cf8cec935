package table

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"golang.org/x/sys/unix"
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
	os.Exit(m.Run())
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
}

func startLoad(t *testing.T, dir string) *child {
	t.Helper()
	cmd := exec.CommandContext(context.Background(), "/proc/self/exe")
	cmd.Env = append(os.Environ(), childDir+"="+dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c := &child{cmd: cmd, done: make(chan struct{})}
	first := make(chan struct{})
	go c.listen(bufio.NewScanner(out), first)
	<-first
	return c
}

func (c *child) listen(lines *bufio.Scanner, first chan struct{}) {
	defer close(c.done)
	tell := sync.OnceFunc(func() { close(first) })
	defer tell()
	for lines.Scan() {
		what, number, _ := strings.Cut(lines.Text(), " ")
		n, err := strconv.Atoi(number)
		if err != nil {
			continue // cut off
		}
		if what == "c" {
			c.committed = n
			tell()
		} else {
			c.synced.Store(int64(n))
		}
	}
}

// kill ends the child and waits for all it said.
func (c *child) kill(t *testing.T) {
	t.Helper()
	if err := c.cmd.Process.Kill(); err != nil {
		t.Error(err)
	}
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
	for i := range 20 {
		c := startLoad(t, dir)
		time.Sleep(time.Duration(i*7%50) * time.Millisecond) // anywhere in the load
		c.kill(t)
		tab := open(t, dir, Options{})
		if s := tab.Session(); !s.Killed() {
			t.Errorf("after a kill the session ended as %+v", s)
		}
		n, err := verify(tab)
		if err != nil || n < c.committed || n > c.committed+1 {
			t.Errorf("kill %d: %d commits are there and %d returned: %v", i, n, c.committed, err)
		}
		if err := tab.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestPowerCut: after a power cut under a real file system, the table is as it
// was after some commit, not before the last that was synced.
func TestPowerCut(t *testing.T) {
	image, mnt := filepath.Join(t.TempDir(), "image"), t.TempDir()
	needLoopMounts(t)
	run(t, "truncate", "-s", "64M", image)
	run(t, "mkfs.ext4", "-q", "-F", image)
	t.Cleanup(func() { // of a test that failed half way
		_ = exec.CommandContext(context.Background(), "umount", "-l", mnt).Run()
	})
	lost := 0
	for i := range 12 {
		run(t, "mount", "-o", "loop", image, mnt)
		c := startLoad(t, filepath.Join(mnt, "table"))
		time.Sleep(time.Duration(20+i*37%150) * time.Millisecond) // anywhere in the load
		// An fsync that is under way when ext4 is shut down may succeed and have
		// written nothing; where there is no power nobody hears of that.
		synced := int(c.synced.Load())
		shutdown(t, mnt)
		c.kill(t)
		run(t, "umount", mnt)
		run(t, "mount", "-o", "loop", image, mnt)
		lost += afterCut(t, filepath.Join(mnt, "table"), c, synced, i)
		run(t, "umount", mnt)
		if t.Failed() {
			return
		}
	}
	if lost == 0 {
		t.Error("no cut lost anything: these were no power cuts")
	}
}

// afterCut verifies, and gives the number of steps that were lost.
func afterCut(t *testing.T, dir string, c *child, synced, cut int) int {
	t.Helper()
	tab := open(t, dir, Options{BootID: fmt.Sprint("after cut ", cut)})
	if s := tab.Session(); !s.PowerLost() {
		t.Errorf("after a power cut the session ended as %+v", s)
	}
	n, err := verify(tab)
	if err != nil || n < synced || n > c.committed+1 {
		t.Errorf("cut %d: %d commits are there, %d were synced, %d returned: %v", cut, n, synced, c.committed, err)
	}
	if err := tab.Close(); err != nil {
		t.Error(err)
	}
	return max(0, c.committed-n)
}

// shutdown stops the file system as a power cut does: what is not on the disk
// never will be.
func shutdown(t *testing.T, mnt string) {
	t.Helper()
	const ext4Shutdown, noLogFlush = 0x8004587d, 2
	f, err := os.Open(mnt)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := unix.IoctlSetPointerInt(int(f.Fd()), ext4Shutdown, noLogFlush); err != nil {
		t.Fatal(err)
	}
}

func needLoopMounts(t *testing.T) {
	t.Helper()
	_, err := exec.LookPath("mkfs.ext4")
	_, noLoop := os.Stat("/dev/loop-control")
	if err == nil && noLoop == nil && os.Geteuid() == 0 {
		return
	}
	if r := os.Getenv("WSMOUNT_REQUIRE"); strings.Contains(r, "fuse") || strings.Contains(r, "all") {
		t.Fatal("mounts of loop devices are required and not possible here")
	}
	t.Skip("needs root, mkfs.ext4 and loop devices")
}

func run(t *testing.T, name string, args ...string) {
	t.Helper()
	if out, err := exec.CommandContext(context.Background(), name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %v: %v: %s", name, args, err, out)
	}
}

// TestPowerCutAnywhere cuts the power of a simulated disk after many steps,
// through rotations of the log, and lets some of what was not synced survive
// here and there.
func TestPowerCutAnywhere(t *testing.T) {
	for seed := range uint64(12) {
		disk := vfs.NewCrashableMem()
		tab := open(t, "/t", Options{FS: disk, memTable: 64 << 10, BootID: "before"})
		rng := newRand(seed)
		steps, synced := 1+rng.IntN(900), 0
		for i := 1; i <= steps; i++ {
			if err := step(tab, i); err != nil {
				t.Fatal(err)
			}
			if rng.IntN(100) == 0 {
				if err := tab.Sync(); err != nil {
					t.Fatal(err)
				}
				synced = i
			}
		}
		after := disk.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: rng.IntN(100), RNG: rng})
		if err := tab.Close(); err != nil {
			t.Fatal(err)
		}
		tab = open(t, "/t", Options{FS: after, BootID: "after"})
		if n, err := verify(tab); err != nil || n < synced || n > steps {
			t.Errorf("seed %d: %d of %d commits are there, %d were synced: %v", seed, n, steps, synced, err)
		}
		if err := tab.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
