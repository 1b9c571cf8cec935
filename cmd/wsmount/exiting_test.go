package main

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
	"golang.org/x/sys/unix"
)

// leaveEnv makes the test's own program one that writes files of that name and
// ends with all of them open: by itself, or with leaveSignal by a signal.
const (
	leaveEnv    = "WSMOUNT_TEST_LEAVES"
	leaveSignal = "signal"
	leaveFiles  = 3
)

func leave(how string) int {
	for i := range leaveFiles {
		f, err := os.Create(fmt.Sprint("mnt/", how, i))
		if err == nil {
			_, err = f.WriteString("of " + how) // 7 or 9 bytes
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	if how == leaveSignal {
		syscall.Kill(os.Getpid(), syscall.SIGTERM)
		for { // until it comes
			_ = unix.Pause()
		}
	}
	return 0
}

// Who ends with files open does not wait for a store that does not answer: no
// signal would end that. What he wrote arrives later. A close of a program that
// goes on waits.
func TestEndOfAProgramWaitsForNoStore(t *testing.T) {
	w, r := mountFiles(t, "mode: canonical", "--patience", hangs.String())
	w.write("mnt/live", "1")
	r.cut(t)
	w.write("new", "22")
	live := exec.Command("cp", w.path("new"), w.path("mnt/live"))
	assert.OK(t, live.Start())
	closed := make(chan error, 1)
	go func() { closed <- live.Wait() }()
	for _, how := range []string{"exit", leaveSignal} {
		cmd := exec.Command("/proc/self/exe")
		cmd.Dir, cmd.Env, cmd.Stderr = w.dir, append(os.Environ(), leaveEnv+"="+how), os.Stderr
		assert.Equal(t, cmd.Run() == nil, how == "exit", how, "ended")
	}
	select {
	case err := <-closed:
		t.Errorf("the close of a program that goes on did not wait: %v", err)
	default:
	}
	r.connect(t)
	assert.Is(t, <-closed, nil, "the close")
	eventually(t, "all to arrive", func() bool {
		all := r.dump(t)
		return strings.Count(all, " file 7 ") == leaveFiles && strings.Count(all, " file 9 ") == leaveFiles
	})
}
