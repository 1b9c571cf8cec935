package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
)

// The work is done by a process of its own, as the user who is measured. It
// takes its own time, so that the start of the process does not count.
const workerCommand = "worker"

// phases of a worker.
const (
	phaseSetup = "setup"
	phaseRun   = "run"
	phaseHold  = "hold"
)

// work runs a phase of w in the tree's directory and returns what it measured.
func (t *tree) work(ctx context.Context, phase string, w workload) (float64, error) {
	args := append([]string{t.s.b.programs[""], workerCommand, phase, w.name, t.dir}, t.program...)
	c := t.s.command(ctx, args...)
	if t.s.b.o.clock == "cpu" {
		c.Env = append(c.Env, daemonVariable+"="+t.pid())
	}
	var stdout, stderr bytes.Buffer
	c.Stdout, c.Stderr = &stdout, &stderr
	if err := c.Run(); err != nil {
		return 0, fmt.Errorf("%s on %s, %s: %w: %s", w.name, t.kind, phase, err, strings.TrimSpace(stderr.String()))
	}
	return strconv.ParseFloat(strings.TrimSpace(stdout.String()), 64)
}

func workerMain(args []string) int {
	v, err := runWorker(args)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println(v)
	return 0
}

func runWorker(args []string) (float64, error) {
	if len(args) < 3 {
		return 0, errors.New("a worker needs a phase, a workload and a directory")
	}
	w, ok := workloadNamed(args[1])
	if !ok {
		return 0, fmt.Errorf("no workload %q", args[1])
	}
	p := place{dir: args[2], name: w.where(), files: smallFiles, program: args[3:]}
	switch args[0] {
	case phaseSetup:
		if w.setup == nil {
			return 0, nil
		}
		return 0, w.setup(p)
	case phaseRun:
		return w.run(p)
	}
	return 0, hold(p.file(w.probe), w.probeWrites)
}

// hold keeps a file open until its standard input ends, so that the daemon can
// be asked how the file is read and written.
func hold(path string, writes bool) error {
	flags := os.O_RDONLY
	if writes {
		flags = os.O_RDWR
	}
	f, err := os.OpenFile(path, flags, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	fmt.Println(0)
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}
