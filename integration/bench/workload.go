package main

import (
	"context"
	"os"
	"path/filepath"
	"slices"
)

// between is what happens between a workload's setup and its run.
type between int

const (
	nothing between = iota
	remount         // a new mount that has looked at nothing; the disk's caches stay
	cold            // the disk's caches are dropped; only root can
)

// A bar is a ratio that must be reached, or a figure that must not be passed.
// Zero is no bar.
type bar struct {
	disk, loopback float64 // wsmount's rate by theirs
	most           float64
	rootOnly       bool
}

// A measurement is made by this program itself.
type measurement func(context.Context, *tree, workload) (float64, error)

// A workload is one row of the table.
type workload struct {
	name   string
	unit   string
	bar    bar
	rounds int // at most this many; 0: as many as asked for

	copyBar *bar // of a working copy: nil is no row for it
	only    bool // only of a working copy

	// In a worker, as the user who is measured: setup is not timed, run returns
	// a rate (more is better).
	setup   func(place) error
	run     func(place) (float64, error)
	between between

	// Or in this program, which may let a worker run.
	measure measurement

	// The file in the workload's directory whose io mode is asserted.
	probe       string
	probeWrites bool
}

// A place is where a worker works.
type place struct {
	dir     string
	program []string // what mounts the tree
	name    string
}

func workloads() []workload {
	return slices.Concat(dataWorkloads(), nameWorkloads(), toolWorkloads(), daemonWorkloads(), copyWorkloads())
}

func workloadNamed(name string) (workload, bool) {
	i := slices.IndexFunc(workloads(), func(w workload) bool { return w.name == name })
	if i < 0 {
		return workload{}, false
	}
	return workloads()[i], true
}

// fresh makes the workload's directory anew and empty.
func (p place) fresh() error {
	if err := os.RemoveAll(p.file("")); err != nil {
		return err
	}
	return os.MkdirAll(p.file(""), 0o755)
}

func (p place) file(name string) string { return filepath.Join(p.dir, p.name, name) }
