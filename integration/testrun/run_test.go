package testrun

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
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
	if os.Getenv(killedEnv) != "" {
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

// What a killed run leaves ends, with its watcher or, where that was killed too, by the
// next run. Each says what it was.
func TestKilledRun(t *testing.T) {
	tier.RequireRoot(t)
	for _, both := range []bool{false, true} {
		t.Run(fmt.Sprintf("with its watcher %v", both), func(t *testing.T) {
			base := t.TempDir()
			run := exec.CommandContext(t.Context(), os.Args[0])
			run.Env = append(os.Environ(), killedEnv+"=1", "WSMOUNT_TEST_DIR="+base)
			out, err := run.StdoutPipe()
			assert.OK(t, err)
			said, err := run.StderrPipe()
			assert.OK(t, err)
			assert.OK(t, run.Start())
			line, err := bufio.NewReader(out).ReadString('\n')
			assert.OK(t, err)
			var sleeper, watcher int
			var dir string
			_, err = fmt.Sscan(line, &sleeper, &watcher, &dir)
			assert.OK(t, err)
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
				b, err := next.CombinedOutput()
				assert.OK(t, err)
				report = string(b)
			}
			for _, part := range []string{dir, "mount " + dir + "/mnt", fmt.Sprintf("process %d sleep 600", sleeper)} {
				assert.Contains(t, report, part)
			}
			if left := MountsBelow(base); len(left) > 0 {
				t.Errorf("still mounted: %q", left)
			}
			if left, _ := os.ReadDir(base); len(left) > 0 {
				t.Errorf("still there: %v", left)
			}
			if left := ProcessesOf(dir); len(left) > 0 {
				t.Errorf("still running: %v", left)
			}
		})
	}
}
