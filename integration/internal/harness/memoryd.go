package harness

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
)

// A Service is a running memoryd: storage that outlives the mounts of it. Its
// package comment says how a test controls it.
type Service struct {
	Socket string
	t      testing.TB
	cmd    *exec.Cmd
}

// Service starts a memoryd with flags beside -socket, as the world's user, and
// ends it with the test.
func (w *World) Service(flags ...string) *Service {
	w.t.Helper()
	program, err := buildService()
	if err != nil {
		w.t.Fatal(err)
	}
	dir, err := os.MkdirTemp(w.Dir, "memoryd-")
	if err != nil {
		w.t.Fatal(err)
	}
	w.own(dir, 0o700)
	s := &Service{t: w.t, Socket: filepath.Join(dir, "s")}
	s.cmd = exec.CommandContext(context.Background(), program, append([]string{"-socket", s.Socket}, flags...)...)
	s.cmd.Stderr = os.Stderr
	if w.o.UID != 0 {
		s.cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: w.o.UID, Gid: w.o.UID}}
	}
	in, err := s.cmd.StdinPipe()
	if err != nil {
		w.t.Fatal(err)
	}
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		w.t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { // what it held is gone
		in.Close()
		if err := s.cmd.Wait(); err != nil {
			w.t.Errorf("memoryd: %v", err)
		}
	})
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
		w.t.Fatalf("memoryd says %q, %v", line, err)
	}
	return s
}

// Storage is the storage block of a workspace that lies there; more is further
// YAML of its config, such as "clone: a".
func (s *Service) Storage(more string) string {
	if more != "" {
		more = ", " + more
	}
	return fmt.Sprintf("storage: {inline: {provider: memory, config: {socket: %q%s}}}", s.Socket, more)
}

// Escaper builds the program that tries to get out of sandboxes, and returns
// where it is. It needs nothing of the host that it does not carry itself.
func Escaper(t testing.TB) string {
	t.Helper()
	program, err := buildEscaper()
	if err != nil {
		t.Fatal(err)
	}
	return program
}

var buildEscaper = sync.OnceValues(func() (string, error) {
	program := filepath.Join(root, "bin", "escaper")
	// With the flags of a release, its parts are those of the program, and built already.
	cmd := exec.CommandContext(context.Background(), "go", "build", "-trimpath", "-o", program, "github.com/wsmount/wsmount/integration/internal/escaper")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building escaper: %w\n%s", err, out)
	}
	return program, nil
})

// buildService builds memoryd, once.
var buildService = sync.OnceValues(func() (string, error) {
	program := filepath.Join(root, "bin", "memoryd")
	args := []string{"build", "-o", program}
	if Race {
		args = append(args, "-race")
	}
	out, err := exec.CommandContext(context.Background(), "go", append(args, "github.com/wsmount/wsmount/integration/internal/memoryd")...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("building memoryd: %w\n%s", err, out)
	}
	return program, nil
})
