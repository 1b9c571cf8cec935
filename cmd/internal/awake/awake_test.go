package awake

import (
	"bufio"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wsmount/wsmount/integration/assert"
)

func TestMain(m *testing.M) {
	if os.Getenv("WSMOUNT_TEST_AWAKE") == "" {
		os.Exit(m.Run())
	}
	os.Stdout.WriteString("begun\n")
	comes := make(chan bool)
	go func() {
		for range looks / 10 {
			time.Sleep(limit / looks)
		}
		close(comes)
	}()
	if _, came := Within(limit, comes); !came {
		os.Exit(1)
	}
}

const limit = time.Second

// What comes in time is given, and what does not is not waited for.
func TestWithin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, after := range []time.Duration{0, limit - 1, 2 * limit} {
			comes := make(chan time.Duration, 1)
			time.AfterFunc(after, func() { comes <- after })
			began := time.Now()
			got, came := Within(limit, comes)
			assert.Equal(t, came, after < limit, after, "came")
			assert.Equal(t, time.Since(began), min(after, limit), after, "waited")
			assert.True(t, !came || got == after, after, "got", got)
			time.Sleep(2 * limit)
		}
	})
}

// A time in which the machine stands still, or only this process does, is none.
func TestStandstill(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), "WSMOUNT_TEST_AWAKE=1")
	out, err := cmd.StdoutPipe()
	assert.OK(t, err)
	assert.OK(t, cmd.Start())
	_, err = bufio.NewReader(out).ReadString('\n')
	assert.OK(t, err)
	assert.OK(t, cmd.Process.Signal(syscall.SIGSTOP))
	time.Sleep(2 * limit)
	assert.OK(t, cmd.Process.Signal(syscall.SIGCONT))
	assert.OK(t, cmd.Wait(), "what came after a standstill of twice the limit, and a tenth of it")
}
