package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
)

// Many sandboxes that write into one mount at once, against one that writes as much.
const (
	sandboxes    = 500
	sandboxFiles = 100
)

func sandboxWorkloads() []workload {
	return []workload{{name: "500 sandboxes by one writer", unit: "ratio", rounds: 1, bar: bar{least: 0.8}, copyBar: &bar{least: 0.8},
		setup: place.crowdSetup, run: place.crowd}}
}

// crowdSetup makes a directory for each writer, in a part for each of the two runs.
func (p place) crowdSetup() error {
	if err := p.fresh(); err != nil {
		return err
	}
	for _, part := range []string{"one", "crowd"} {
		for i := range sandboxes {
			if err := os.MkdirAll(p.file(fmt.Sprintf("%s/%d", part, i)), 0o755); err != nil {
				return err
			}
		}
	}
	return nil
}

// crowd is how much faster the sandboxes are than the one: 1 is as fast.
func (p place) crowd() (float64, error) {
	one, err := p.writers("one", [][]int{upTo(sandboxes)})
	if err != nil {
		return 0, err
	}
	var each [][]int
	for i := range sandboxes {
		each = append(each, []int{i})
	}
	all, err := p.writers("crowd", each)
	if err == nil {
		err = p.allThere("crowd")
	}
	return one / all, err
}

func upTo(n int) (all []int) {
	for i := range n {
		all = append(all, i)
	}
	return all
}

// writers has a sandbox for each list of directories write files into them, all from
// one moment on, and says how many seconds it takes.
func (p place) writers(part string, dirs [][]int) (seconds float64, err error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	gate, open, err := os.Pipe()
	if err != nil {
		return 0, err
	}
	defer gate.Close()
	var started []*exec.Cmd
	var ready []io.Reader
	for _, list := range dirs {
		script := fmt.Sprintf("echo; cat >/dev/null; for d in %s; do i=0; while [ $i -lt %d ]; do echo file $i >$d/$i || exit 1; i=$((i+1)); done; done",
			strings.Trim(fmt.Sprint(list), "[]"), sandboxFiles)
		c := exec.CommandContext(ctx, "bwrap", "--unshare-all", "--die-with-parent", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc",
			"--tmpfs", "/tmp", "--bind", p.file(part), "/mnt", "--chdir", "/mnt", "sh", "-c", script)
		c.Stdin = gate
		said, err := c.StdoutPipe()
		if err == nil {
			err = c.Start()
		}
		if err != nil {
			open.Close()
			return 0, errors.Join(err, waitAll(cancel, started))
		}
		started, ready = append(started, c), append(ready, said)
	}
	for _, r := range ready {
		if _, err := io.ReadFull(r, make([]byte, 1)); err != nil {
			open.Close()
			return 0, errors.Join(fmt.Errorf("a sandbox does not start: %w", err), waitAll(cancel, started))
		}
	}
	watch := startWatch()
	open.Close() // and all begin
	err = waitAll(func() {}, started)
	return watch.seconds(), err
}

func waitAll(end func(), started []*exec.Cmd) (err error) {
	end()
	for _, c := range started {
		err = errors.Join(err, c.Wait())
	}
	return err
}

// allThere counts the files.
func (p place) allThere(part string) error {
	for i := range sandboxes {
		names, err := os.ReadDir(p.file(fmt.Sprintf("%s/%d", part, i)))
		if err != nil {
			return err
		}
		if len(names) != sandboxFiles {
			return fmt.Errorf("writer %d left %d files, not %d", i, len(names), sandboxFiles)
		}
	}
	return nil
}
