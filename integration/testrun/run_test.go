package testrun

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/tier"
)

// killedEnv makes this test binary a run that starts a process and makes a mount.
const killedEnv = "WSMOUNT_TESTRUN_KILLED"

func TestMain(m *testing.M) {
	switch os.Getenv(killedEnv) {
	case "":
	case "silent":
		_, _ = io.Copy(os.Stdout, os.Stdin)
		os.Exit(0)
	case "its first thread":
		endFirstThread()
	default:
		beKilled()
	}
	os.Exit(Main(m))
}

func beKilled() {
	r, err := Begin()
	if err != nil {
		panic(err)
	}
	at := filepath.Join(r.Dir, "mnt")
	sleeper := exec.Command("sleep", "600")
	sleeper.Env = []string{"WHERE=" + at + "/x"}
	if err := sleeper.Start(); err != nil {
		panic(err)
	}
	if err := os.Mkdir(at, 0o700); err != nil {
		panic(err)
	}
	if err := unix.Mount("testrun", at, "tmpfs", 0, ""); err != nil {
		panic(err)
	}
	fmt.Println(sleeper.Process.Pid, r.watcher.cmd.Process.Pid, r.Dir)
	for { // a "select {}" would end here: Go takes it for a deadlock
		_ = unix.Pause()
	}
}

func init() { runtime.LockOSThread() } // TestMain runs on the first thread

// endFirstThread ends that, while another waits for the end of its input.
func endFirstThread() {
	go func() {
		_, _ = syscall.Read(0, make([]byte, 1))
		os.Exit(0)
	}()
	for {
		_, _, _ = syscall.Syscall(syscall.SYS_EXIT, 0, 0, 0)
	}
}

// A process lives as long as one of its threads, which has open what it had.
func TestAlive(t *testing.T) {
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), killedEnv+"=its first thread")
	in := assert.Of(child.StdinPipe()).OK(t)
	assert.OK(t, child.Start())
	pid := child.Process.Pid
	assert.Eventually(t, "the end of the first thread", func() bool {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		return err == nil && strings.Contains(string(stat), ") Z ")
	})
	assert.True(t, Alive(pid), "a process with a thread that lives has ended")
	assert.OK(t, in.Close())
	assert.Eventually(t, "the end of the last thread", func() bool { return !Alive(pid) }) // though nobody waited for it
	assert.OK(t, child.Wait())
	assert.False(t, Alive(pid), "a process that is gone lives")
}

// What a killed run leaves ends, with its watcher or, where that was killed too, by the
// next run. Each says what it was.
func TestKilledRun(t *testing.T) {
	tier.RequireRoot(t)
	for _, both := range []bool{false, true} {
		t.Run(fmt.Sprintf("with its watcher %v", both), func(t *testing.T) {
			base := t.TempDir()
			run := exec.CommandContext(t.Context(), os.Args[0])
			run.Env = append(os.Environ(), killedEnv+"=1", "WSMOUNT_TEST_DIR="+base)
			out := assert.Of(run.StdoutPipe()).OK(t)
			said := assert.Of(run.StderrPipe()).OK(t)
			assert.OK(t, run.Start())
			line := assert.Of(bufio.NewReader(out).ReadString('\n')).OK(t)
			var sleeper, watcher int
			var dir string
			assert.OK(t, assert.ErrOf(fmt.Sscan(line, &sleeper, &watcher, &dir)))
			if both {
				assert.OK(t, syscall.Kill(watcher, syscall.SIGKILL))
			}
			assert.OK(t, run.Process.Kill())
			text, _ := io.ReadAll(said) // until the run and its watcher have ended
			_ = run.Wait()
			report := string(text)
			if both {
				past := time.Now().Add(-2 * unclaimed)
				assert.OK(t, os.Chtimes(dir, past, past))
				next := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^$")
				next.Env = append(os.Environ(), "WSMOUNT_TEST_DIR="+base, runEnv+"=")
				report = string(assert.Of(next.CombinedOutput()).OK(t))
			}
			for _, part := range []string{dir, "mount " + dir + "/mnt", fmt.Sprintf("process %d sleep 600", sleeper)} {
				assert.Contains(t, report, part)
			}
			left := MountsBelow(base)
			assert.True(t, len(left) == 0, "still mounted:", left)
			if left, _ := os.ReadDir(base); len(left) > 0 {
				t.Errorf("still there: %v", left)
			}
			if left := ProcessesOf(dir); len(left) > 0 {
				t.Errorf("still running: %v", left)
			}
		})
	}
}

// A run whose tests say nothing any more ends: they say where they wait, and if they cannot
// they are killed.
func TestSilentRun(t *testing.T) {
	dir := t.TempDir()
	assert.OK(t, os.Mkdir(filepath.Join(dir, "logs"), 0o700))
	log := filepath.Join(dir, "logs", "stage.json")
	start := func(program string) (said *bytes.Buffer, end func() error) {
		said = new(bytes.Buffer)
		cmd := exec.Command(program)
		cmd.Env = append(os.Environ(), killedEnv+"=silent", "TMPDIR="+dir+"/tmp")
		cmd.Stderr = said
		in, out := assert.Of(cmd.StdinPipe()).OK(t), assert.Of(cmd.StdoutPipe()).OK(t)
		assert.OK(t, cmd.Start())
		assert.OK(t, assert.ErrOf(in.Write([]byte("x"))))
		assert.OK(t, assert.ErrOf(out.Read(make([]byte, 1)))) // it has begun
		return said, func() error { in.Close(); return cmd.Wait() }
	}
	silent := func() { past := time.Now().Add(-time.Hour); assert.OK(t, os.Chtimes(log, past, past)) }

	rouse(dir, time.Minute) // nothing has begun
	assert.OK(t, os.WriteFile(log, nil, 0o600))
	_, end := start(os.Args[0])
	rouse(dir, time.Minute) // something was said just now
	assert.OK(t, end())

	silent()
	_, end = start(os.Args[0])
	compiler := filepath.Join(dir, "go/pkg/tool/compile")
	assert.OK(t, os.MkdirAll(filepath.Dir(compiler), 0o700))
	assert.OK(t, os.WriteFile(compiler, assert.Of(os.ReadFile(assert.Of(exec.LookPath("cat")).OK(t))).OK(t), 0o700))
	_, endBuild := start(compiler)
	rouse(dir, time.Minute) // what will speak next is still built
	assert.OK(t, endBuild())
	assert.OK(t, end())

	said, end := start(os.Args[0])
	_, endOther := start("cat")
	rouse(dir, time.Minute)
	assert.True(t, end() != nil, "it was not ended")
	assert.Contains(t, said.String(), "testrun.TestMain(", "where it hangs")
	assert.OK(t, endOther())

	silent()
	assert.OK(t, os.Chtimes(filepath.Join(dir, "logs", "roused"), time.Now().Add(-time.Hour), time.Now().Add(-time.Hour)))
	_, end = start("cat")
	rouse(dir, time.Minute)
	assert.True(t, end() != nil, "what did not end was not killed")
}
