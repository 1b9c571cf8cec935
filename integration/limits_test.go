package integration

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/internal/harness"
	"github.com/wsmount/wsmount/integration/tier"
)

// manyOpen is how many files are held open at once, by as many processes as
// the limits of one make necessary.
var manyOpen = tier.Pick(4000, 100_000)

// holdEnv makes the test binary a program that holds files open: "DIR FROM TO".
const holdEnv = "WSMOUNT_TEST_HOLD"

// Very many files can be held open, or open fails with EMFILE or
// ENFILE at a limit that doctor names; the mount lives on.
func TestManyOpenFiles(t *testing.T) {
	t.Parallel()
	w := harness.New(t, harness.Options{})
	ws := w.Workspace("@acme/x", "")
	mkdirAll(t, ws+"/many")
	for i := range manyOpen {
		if i%1000 == 0 { // a file has at most so many links
			write(t, fmt.Sprintf("%s/seed%d", ws, i/1000), fmt.Sprint("seed ", i/1000))
		}
		assert.Is(t, os.Link(fmt.Sprintf("%s/seed%d", ws, i/1000), fmt.Sprintf("%s/many/%d", ws, i)), nil, "link")
	}
	m := w.Mount(ws)
	opened := 0
	for each := perProcess(t); opened < manyOpen; {
		n, release := holdOpen(t, m.Dir+"/many", opened, min(opened+each, manyOpen))
		defer release()
		if opened += n; n < each && opened < manyOpen {
			break
		}
	}
	assert.Is(t, assert.ErrOf(os.Stat(m.Dir+"/seed3")), nil, "stat with", opened, "files open")
	assert.Equal(t, len(assert.Of(os.ReadDir(m.Dir)).OK(t)), manyOpen/1000+2, "list with", opened, "files open")
	if opened == manyOpen {
		return
	}
	doctor := w.Run("doctor")
	named := openLimit(doctor.Out)
	assert.True(t, named >= opened && named <= opened+opened/10, opened, "files could be opened, doctor names", named, "as the limit:", doctor.Out)
}

// openLimit is the number of open files that doctor names.
func openLimit(doctor string) int {
	for line := range strings.Lines(doctor) {
		if fields := strings.Fields(line); len(fields) > 2 && fields[1] == "files" {
			for _, f := range fields[2:] {
				if n, err := strconv.Atoi(f); err == nil {
					return n
				}
			}
		}
	}
	return 0
}

// perProcess is how many files one process may hold open, with some to spare.
func perProcess(t *testing.T) int {
	t.Helper()
	var limit unix.Rlimit
	assert.Is(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &limit), nil, "getrlimit")
	return int(min(limit.Max, uint64(manyOpen)+200)) - 200
}

// holdOpen starts a process that opens files of a directory and holds them
// until it is released.
func holdOpen(t *testing.T, dir string, from, to int) (opened int, release func()) {
	t.Helper()
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s %d %d", holdEnv, dir, from, to))
	in := assert.Of(cmd.StdinPipe()).OK(t, "pipe")
	out := assert.Of(cmd.StdoutPipe()).OK(t, "pipe")
	assert.OK(t, cmd.Start(), "start")
	var failure string
	assert.OK(t, assert.ErrOf(fmt.Fscanln(out, &opened, &failure)), "the process that holds files")
	assert.False(t, failure != "none" && failure != "EMFILE" && failure != "ENFILE", "open: got", failure, "want EMFILE or ENFILE at most")
	return opened, func() {
		assert.Is(t, in.Close(), nil, "release")
		assert.Is(t, cmd.Wait(), nil, "wait")
	}
}

// hold is the program that holds files open: it prints how many it could open
// and the errno that stopped it, and ends with its input.
func hold(job string) {
	var dir string
	var from, to int
	if _, err := fmt.Sscan(job, &dir, &from, &to); err != nil {
		panic(err)
	}
	opened, failure := 0, "none"
	for i := from; i < to; i++ {
		if _, err := unix.Open(fmt.Sprintf("%s/%d", dir, i), unix.O_RDONLY|unix.O_CLOEXEC, 0); err != nil {
			failure = unix.ErrnoName(err.(syscall.Errno))
			break
		}
		opened++
	}
	fmt.Println(opened, failure)
	io.Copy(io.Discard, os.Stdin)
}

// A full disk is ENOSPC at the write; what was written before stays, deletes
// work, and then there is room again.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	tier.RequireRoot(t)
	w := harness.New(t, harness.Options{})
	ws := w.Workspace("@acme/full", "")
	manifest, err := os.ReadFile(ws + "/WORKSPACE.md")
	assert.OK(t, err, "read")
	assert.Is(t, unix.Mount("tmpfs", ws, "tmpfs", 0, "size=4m"), nil, "mount a small disk")
	t.Cleanup(func() { unmountInside(t, ws) })
	write(t, ws+"/WORKSPACE.md", string(manifest))
	m := w.Mount(ws)
	write(t, m.Dir+"/kept", "kept")
	fd := assert.Of(unix.Open(m.Dir+"/big", unix.O_WRONLY|unix.O_CREAT|unix.O_CLOEXEC, 0o644)).OK(t, "open")
	written := 0
	for err == nil && written < 8<<20 {
		var n int
		n, err = unix.Write(fd, bytes.Repeat([]byte("x"), 1<<16))
		written += max(n, 0)
	}
	assert.Is(t, err, syscall.ENOSPC, "write to a full disk")
	assert.Is(t, unix.Close(fd), nil, "close")
	assert.Is(t, allocate(m.Dir+"/more", 1<<22), syscall.ENOSPC, "fallocate")
	checkContent(t, m.Dir+"/kept", "kept")
	assert.Equal(t, assert.Of(os.Stat(m.Dir+"/big")).OK(t).Size(), int64(written), "big", written)
	assert.Is(t, os.Remove(m.Dir+"/big"), nil, "delete")
	awaitSpace(t, m.Dir, 2<<20)
	write(t, m.Dir+"/again", strings.Repeat("y", 1<<20))
	checkContent(t, ws+"/again", strings.Repeat("y", 1<<20))
}

// awaitSpace waits until a disk has n bytes free. The kernel tells a FUSE mount
// of a close after the program has gone on, so the space of a file that was
// closed and deleted comes back a moment later.
func awaitSpace(t *testing.T, dir string, n uint64) {
	t.Helper()
	harness.Eventually(t, fmt.Sprint(n, " bytes are free after the delete"), func() bool {
		var st unix.Statfs_t
		assert.Is(t, unix.Statfs(dir, &st), nil, "statfs")
		return st.Bavail*uint64(st.Bsize) >= n
	})
}

func allocate(path string, n int64) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return unix.Fallocate(int(f.Fd()), 0, 0, n)
}

// A sandbox mounts the tree into itself and a memory disk below it; changes
// made behind the mount must not take that away.
func TestSandbox(t *testing.T) {
	t.Parallel()
	tier.RequireTools(t, "bwrap")
	m, behind := flavours[0].mount(t)
	mkdirAll(t, behind+"/dir/scratch")
	write(t, behind+"/dir/f", "old")
	w := harness.New(t, harness.Options{})
	script := `cat /ws/dir/f; echo; echo scratch > /ws/dir/scratch/x; echo made > /ws/made; echo ready
read line; cat /ws/dir/f; echo; cat /ws/dir/scratch/x /ws/dir/new; ls /ws/dir/scratch`
	cmd := w.Command(t.Context(), "bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/mnt",
		"--bind", m.Dir, "/mnt", "--tmpfs", "/mnt/dir/scratch", "sh", "-c", strings.ReplaceAll(script, "/ws", "/mnt"))
	in := assert.Of(cmd.StdinPipe()).OK(t, "pipe")
	var out safeBuffer
	cmd.Stdout, cmd.Stderr = &out, &out
	assert.OK(t, cmd.Start(), "start")
	harness.Eventually(t, "the sandbox is ready", func() bool { return strings.Contains(out.String(), "ready") })
	write(t, behind+"/dir/new", "new")
	write(t, behind+"/dir/scratch/hidden", "x")
	write(t, behind+"/tmp", "replaced")
	assert.OK(t, os.Rename(behind+"/tmp", behind+"/dir/f"), "rename")
	harness.Eventually(t, "the change shows", func() bool { return reads(m.Dir+"/dir/f", "replaced") && exists(m.Dir+"/dir/new") })
	fmt.Fprintln(in, "go on")
	if err := cmd.Wait(); err != nil || out.String() != "old\nready\nreplaced\nscratch\nnewx\n" {
		t.Errorf("sandbox: %v, got\n%s", err, out.String())
	}
	checkContent(t, behind+"/made", "made\n")
	assert.False(t, exists(behind+"/dir/scratch/x"), "the sandbox's scratch file is in the workspace")
}

// A safeBuffer is a buffer that a process writes and a test reads.
type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// Many programs at once, in one tree: every file ends with what its last
// writer wrote, and nothing deadlocks.
func TestManyPrograms(t *testing.T) {
	t.Parallel()
	m, behind := flavours[0].mount(t)
	var failed atomic.Int64
	var done sync.WaitGroup
	for i := range 16 {
		done.Go(func() {
			for n := range 50 {
				if err := busy(filepath.Join(m.Dir, fmt.Sprint("p", i%4)), i, n); err != nil {
					failed.Add(1)
					t.Error(err)
					return
				}
			}
		})
	}
	done.Wait()
	for i := range 16 {
		checkContent(t, fmt.Sprintf("%s/p%d/own%d", behind, i%4, i), "49")
	}
}

// busy does what programs do to a directory that they share.
func busy(dir string, i, n int) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	tmp, own := fmt.Sprintf("%s/tmp%d", dir, i), fmt.Sprintf("%s/own%d", dir, i)
	if err := os.WriteFile(tmp, []byte(fmt.Sprint(n)), 0o644); err != nil {
		return err
	}
	if err := os.Rename(tmp, own); err != nil {
		return err
	}
	if _, err := os.ReadDir(dir); err != nil {
		return err
	}
	got, err := os.ReadFile(own)
	if err == nil && string(got) != fmt.Sprint(n) {
		err = fmt.Errorf("%s: got %q, want %d", own, got, n)
	}
	return err
}

// The daemon's descriptors do not grow with what programs did.
func TestDaemonDescriptors(t *testing.T) {
	t.Parallel()
	m, _ := flavours[0].mount(t)
	count := func() int {
		return len(assert.Of(os.ReadDir(fmt.Sprintf("/proc/%d/fd", m.PID))).OK(t, "descriptors of the daemon"))
	}
	work := func() {
		for i := range 100 {
			dir := fmt.Sprintf("%s/d%d", m.Dir, i)
			assert.Is(t, busy(dir, i, i), nil, "work")
			f := assert.Of(os.Open(fmt.Sprintf("%s/own%d", dir, i))).OK(t, "open")
			assert.OK(t, os.RemoveAll(dir), "remove")
			assert.Is(t, f.Close(), nil, "close")
		}
	}
	work()
	first := count()
	for range 3 {
		work()
	}
	harness.Eventually(t, "the daemon closes what it does not need", func() bool { return count() <= first+50 })
}
