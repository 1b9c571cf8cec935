package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// A bench is one run of this program: a directory and copies of the programs
// in it, since an unprivileged user may not reach them where they were built.
type bench struct {
	o        options
	dir      string
	programs map[kind]string // "" as kind: this program, for workers
}

func newBench(o options) (*bench, error) {
	dir, err := os.MkdirTemp(o.dir, "wsmount-bench-")
	if err != nil {
		return nil, err
	}
	b := &bench{o: o, dir: dir, programs: map[kind]string{}}
	self, err := os.Executable()
	err = errors.Join(err, os.Chmod(dir, 0o755))
	for name, from := range map[kind]string{"": self, loopback: o.loopback, wsmount: o.wsmount, service: o.memoryd} {
		if from == "" {
			continue
		}
		to := filepath.Join(dir, "program-"+string(name))
		err = errors.Join(err, copyProgram(from, to))
		b.programs[name] = to
	}
	if err != nil {
		b.close()
		return nil, err
	}
	return b, nil
}

func (b *bench) close() { os.RemoveAll(b.dir) }

// A session is all work of one user.
type session struct {
	b     *bench
	user  string
	root  bool
	cred  *syscall.Credential // nil: the user who started this program
	home  string
	trees []*tree
	env   []string // more than a worker and a daemon always have

	services int // working copies that were made beside the trees
}

// session is a user's, with the trees that are compared.
func (b *bench) session(name string) (*session, error) {
	s, err := b.empty(name)
	if err != nil {
		return nil, err
	}
	for _, k := range []kind{wsmount, loopback, disk} {
		if k != disk && b.programs[k] == "" {
			continue
		}
		t, err := s.newTree(k, filepath.Join(s.home, string(k)))
		if err != nil {
			return nil, err
		}
		s.trees = append(s.trees, t)
	}
	return s, nil
}

// empty is a session without trees.
func (b *bench) empty(name string) (*session, error) {
	s := &session{b: b, user: name, root: name == "root", home: filepath.Join(b.dir, name)}
	if name != currentUser() {
		cred, err := credential(name)
		if err != nil {
			return nil, err
		}
		s.cred = cred
	}
	return s, s.mkdir(s.home)
}

func (s *session) close() {
	for _, t := range s.trees {
		if err := t.stop(); err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
		}
		t.remote.end()
	}
}

func currentUser() string {
	u, err := user.Current()
	if err != nil {
		return strconv.Itoa(os.Getuid())
	}
	return u.Username
}

func credential(name string) (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, fmt.Errorf("only root can work as %s", name)
	}
	u, err := user.Lookup(name)
	if err != nil {
		return nil, err
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, err
}

// mkdir makes directories that the session's user owns.
func (s *session) mkdir(dirs ...string) error {
	for _, dir := range dirs {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		if err := s.own(dir); err != nil {
			return err
		}
	}
	return nil
}

// own gives a path to the session's user.
func (s *session) own(path string) error {
	if s.cred == nil {
		return nil
	}
	return os.Chown(path, int(s.cred.Uid), int(s.cred.Gid))
}

// command runs a program as the session's user, with an environment that names
// nothing of whoever started the benchmark.
func (s *session) command(ctx context.Context, args ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, args[0], args[1:]...)
	c.Dir = s.home
	c.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + s.home, "LC_ALL=C",
		"XDG_CONFIG_HOME=" + s.home + "/config", "XDG_STATE_HOME=" + s.home + "/state",
		"XDG_RUNTIME_DIR=" + s.home + "/run", "WSMOUNT_STATE_DIR=" + s.home + "/state",
		"GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=b", "GIT_AUTHOR_EMAIL=b@bench.test",
		"GIT_COMMITTER_NAME=b", "GIT_COMMITTER_EMAIL=b@bench.test"}
	c.Env = append(c.Env, s.env...)
	c.SysProcAttr = &syscall.SysProcAttr{Credential: s.cred, Setpgid: true}
	// What it has started ends with it: a tool in a mount would keep that busy.
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
	return c
}

// dropCaches makes the next read come from the disk. Only root can.
func dropCaches() error {
	unix.Sync()
	return os.WriteFile("/proc/sys/vm/drop_caches", []byte("3"), 0)
}
