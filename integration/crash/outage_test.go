package crash

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/internal/harness"
)

// outages are ways not to be reached.
var outages = map[string]func(*stage){
	"refused": func(s *stage) { s.store.Switches().Cut(false) },
	"hangs":   func(s *stage) { s.store.Switches().Cut(true) },
}

// While the storage cannot be reached names go on as on a local disk, whoever
// waits for it can be killed, and all goes on without a new mount when it is
// back.
func TestOutage(t *testing.T) {
	t.Parallel()
	for mode, sync := range map[string]string{"canonical": syncCanonical, "pull-push": syncSoon} {
		for name, begin := range outages {
			t.Run(mode+" "+name, func(t *testing.T) {
				t.Parallel()
				s := newStage(t, sync)
				for i := range 20 {
					s.tamper(fmt.Sprintf("known/f%d", i), []byte("there"))
				}
				s.mount("--patience", harness.Hangs.String()) // as long as all of it may take
				treeLines(t, s.m.Dir)
				open := []*os.File{s.writable("known/f10"), s.writable("known/f11")}
				begin(s)
				blocked := s.waits(mode == "canonical")
				s.names("at first", 0, open[0])
				time.Sleep(1100 * time.Millisecond) // what was known is not fresh any more
				s.names("later", 1, open[1])
				s.ends(blocked)
				s.store.Switches().Clear()
				s.settle()
				s.converged()
			})
		}
	}
}

// waits starts a program whose close waits for the storage, if closes do.
func (s *stage) waits(wait bool) *exec.Cmd {
	s.t.Helper()
	cmd := exec.Command("cp", s.w.Write("new", "new\n", 0o644), filepath.Join(s.m.Dir, "blocked"))
	assert.OK(s.t, cmd.Start())
	harness.Eventually(s.t, "something is unsaved", func() bool { return s.unsent().Queue > 0 })
	if !wait {
		assert.Is(s.t, cmd.Wait(), nil)
		return nil
	}
	harness.Eventually(s.t, "a close waits for the storage", func() bool { return closing(cmd) })
	return cmd
}

// closing says that a program is in a close.
func closing(cmd *exec.Cmd) bool { return harness.IsIn(cmd.Process.Pid, syscall.SYS_CLOSE) }

// ends kills a program that still waits, which must not wait any longer then.
func (s *stage) ends(cmd *exec.Cmd) {
	s.t.Helper()
	if cmd == nil {
		return
	}
	assert.True(s.t, closing(cmd), "after all that, a close waits for the storage")
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	assert.Is(s.t, cmd.Process.Signal(syscall.SIGKILL), nil)
	select {
	case <-ended:
	case <-time.After(harness.Hangs):
		s.t.Fatal("a program that waits for the storage does not die")
	}
}

// writable opens a file, while the storage can be reached: later that works for as long as
// what was known is served, which a slow machine may be over with.
func (s *stage) writable(name string) *os.File {
	s.t.Helper()
	f := assert.Of(os.OpenFile(filepath.Join(s.m.Dir, name), os.O_RDWR, 0)).OK(s.t)
	return f
}

// names does all that must not wait, some times, and writes to another file, which it closes.
func (s *stage) names(when string, series int, other *os.File) {
	s.t.Helper()
	known := filepath.Join(s.m.Dir, "known")
	defer func() { // its close may wait for the storage
		go other.Close()
	}()
	file := func(what string, i int) string { return filepath.Join(known, fmt.Sprint(what, series, "-", i)) }
	for _, op := range []struct {
		name string
		do   func(i int) error
	}{
		{"mv", func(i int) error {
			return os.Rename(filepath.Join(known, fmt.Sprint("f", 3*series+i)), file("moved", i))
		}},
		{"ls", func(int) error { _, err := os.ReadDir(known); return err }},
		{"ls of the root", func(int) error { _, err := os.ReadDir(s.m.Dir); return err }},
		{"stat", func(i int) error { _, err := os.Stat(file("moved", i)); return err }},
		{"mkdir", func(i int) error { return os.Mkdir(file("dir", i), 0o755) }},
		{"rm", func(i int) error { return os.Remove(file("moved", i)) }},
		{"touch of a new file", func(i int) error {
			fd, err := syscall.Open(file("new", i), syscall.O_CREAT|syscall.O_WRONLY, 0o644)
			if err == nil {
				err = syscall.Close(fd)
			}
			return err
		}},
		{"touch", func(i int) error {
			return os.Chtimes(filepath.Join(known, fmt.Sprint("f", 12+i)), time.Now(), time.Now())
		}},
		{"write", func(i int) error { _, err := other.WriteAt([]byte("changed"), int64(7*i)); return err }},
	} {
		for i := range 3 {
			done := make(chan error, 1)
			go func() { done <- op.do(i) }()
			select {
			case err := <-done:
				assert.Is(s.t, err, nil, when, op.name)
			case <-time.After(harness.Hangs):
				s.t.Fatalf("%s, %s waits for the storage", when, op.name)
			}
		}
	}
}
