package sandbox

import (
	"os/exec"
	"strconv"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
)

// A signal that ends the sandbox before there is a command, as that of a time limit may, is how
// the command ended, and no sandbox that could not be made.
func TestResult(t *testing.T) {
	three := 3
	for _, c := range []struct {
		what    string
		exit    int  // of bwrap
		code    *int // that it reports of the command
		expired bool
		want    int
		says    string
	}{
		{"a command that ended", 3, &three, false, 3, ""},
		{"a time limit before there was a command", 143, nil, true, 143, ""},
		{"a signal before there was a command", 130, nil, false, 130, ""},
		{"a sandbox that could not be made", 1, nil, false, 0, "the sandbox could not be made"},
	} {
		w := &watcher{code: c.code, expired: c.expired, ended: make(chan struct{}), stopped: make(chan struct{})}
		close(w.ended)
		close(w.stopped)
		cmd := exec.Command("/bin/sh", "-c", "exit "+strconv.Itoa(c.exit))
		_ = cmd.Run()
		got, err := w.result(cmd.ProcessState)
		assert.Equal(t, got, Result{c.want, c.expired}, c.what)
		if c.says == "" {
			assert.OK(t, err, c.what)
		} else {
			assert.Contains(t, err.Error(), c.says, c.what)
		}
	}
}
