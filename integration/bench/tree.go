package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// kind is what stands between a program and the disk.
type kind string

const (
	disk     kind = "ext4" // the limit: the directory itself, on whatever -dir lies on
	loopback kind = "loopback"
	wsmount  kind = "wsmount"
	service  kind = "memoryd" // no tree: the program that has what a working copy shows

	// Of a bucket.
	rclone   kind = "rclone"
	s3fs     kind = "s3fs"
	possible kind = "limit" // no tree: the SDK alone
)

// A tree is one of the directories that are compared.
type tree struct {
	kind    kind
	s       *session
	store   string // where the bytes lie
	dir     string // where programs see them: the mountpoint, or store
	program []string
	daemon  *exec.Cmd
	ended   chan struct{} // closed when the daemon has exited
	output  string        // file with what the daemon printed
	remote  *remote       // what has the bytes of a working copy
	grace   time.Duration // what the daemon may take to end; 0: stopTime
}

const stopTime = 20 * time.Second

// newTree makes the tree's directories in home, which holds "store" from then on.
func (s *session) newTree(k kind, home string) (*tree, error) {
	t := &tree{kind: k, s: s, store: filepath.Join(home, "store")}
	t.dir = t.store
	if err := s.mkdir(home, t.store); err != nil || k == disk {
		return t, err
	}
	t.dir = filepath.Join(s.home, filepath.Base(home)+"-"+string(k))
	t.output = t.dir + ".log"
	if err := s.mkdir(t.dir); err != nil {
		return nil, err
	}
	if k == loopback {
		t.program = []string{s.b.programs[loopback], t.dir, t.store}
		return t, nil
	}
	manifest := filepath.Join(home, "WORKSPACE.md")
	t.program = []string{s.b.programs[wsmount], "mount", "-f", manifest, t.dir}
	if s.b.o.memoryd != "" {
		return t, t.useService(home, manifest)
	}
	return t, os.WriteFile(manifest, fmt.Appendf(nil, manifestText, t.store), 0o644)
}

const manifestText = `---
schema: workspace/v1
id: "@bench/tree"
version: 1.0.0
name: Benchmark
description: A directory of small and large files to measure.
owner: { type: user, id: bench, slug: bench }
storage:
  inline:
    provider: local-fs
    config: { mount_path: %q }
---
`

// start mounts, and returns when the mount is in place.
func (t *tree) start(ctx context.Context) error {
	if t.kind == disk {
		return nil
	}
	out, err := os.Create(t.output)
	if err != nil {
		return err
	}
	defer out.Close()
	t.daemon = t.s.command(context.WithoutCancel(ctx), t.program...)
	t.daemon.Stdout, t.daemon.Stderr = out, out
	if err := t.daemon.Start(); err != nil {
		return err
	}
	ended := make(chan struct{})
	t.ended = ended
	go func(c *exec.Cmd) { _ = c.Wait(); close(ended) }(t.daemon)
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(2 * time.Millisecond) {
		select {
		case <-t.ended:
			return fmt.Errorf("%s ended: %s", t.kind, t.said())
		default:
		}
		if mounted(t.dir) {
			return nil
		}
		if time.Now().After(deadline) {
			return errors.Join(fmt.Errorf("%s is not mounted after 20 s: %s", t.kind, t.said()), t.stop())
		}
	}
}

// stop unmounts and waits for the daemon. A daemon that does not end is killed
// and reported.
func (t *tree) stop() error {
	if t.daemon == nil {
		return nil
	}
	err := unmount(t.dir)
	select {
	case <-t.ended:
	case <-time.After(cmp.Or(t.grace, stopTime)):
		err = errors.Join(err, fmt.Errorf("%s did not end after its unmount", t.kind), t.daemon.Process.Kill())
		<-t.ended
		_ = unix.Unmount(t.dir, unix.MNT_DETACH)
	}
	t.daemon = nil
	return err
}

func (t *tree) restart(ctx context.Context) error {
	if err := t.stop(); err != nil {
		return err
	}
	return t.start(ctx)
}

// said is the end of what the daemon printed.
func (t *tree) said() string {
	data, _ := os.ReadFile(t.output)
	return strings.TrimSpace(string(data[max(0, len(data)-500):]))
}

// pid is the daemon's process, "0" of none.
func (t *tree) pid() string {
	if t.daemon == nil {
		return "0"
	}
	return strconv.Itoa(t.daemon.Process.Pid)
}

// memory is the daemon's resident memory in MiB: VmRSS, or RssAnon, which is
// without the pages of its program file.
func (t *tree) memory(field string) (float64, error) {
	data, err := os.ReadFile("/proc/" + t.pid() + "/status")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(data)) {
		if rest, ok := strings.CutPrefix(line, field+":"); ok {
			kib, err := strconv.ParseFloat(strings.Fields(rest)[0], 64)
			return kib / 1024, err
		}
	}
	return 0, fmt.Errorf("no %s in /proc", field)
}

// unmount retries for a moment: a program that just ended may still be counted.
func unmount(dir string) error {
	var err error
	for range 100 {
		if os.Geteuid() == 0 {
			err = unix.Unmount(dir, 0)
		} else {
			err = exec.CommandContext(context.Background(), "fusermount3", "-u", dir).Run()
		}
		if err == nil || errors.Is(err, syscall.EINVAL) {
			return nil
		}
		time.Sleep(20 * time.Millisecond)
	}
	return fmt.Errorf("unmount %s: %w", dir, err)
}

func mounted(dir string) bool {
	data, err := os.ReadFile("/proc/self/mounts")
	return err == nil && strings.Contains(string(data), " "+dir+" fuse")
}

func copyProgram(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o755)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, in); err != nil {
		out.Close()
		return err
	}
	return out.Close()
}
