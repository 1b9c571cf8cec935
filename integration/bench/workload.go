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
	limit          float64 // of a bucket's: wsmount's rate by what is possible
	most, least    float64
	rootOnly       bool
}

// A measurement is made by this program itself.
type measurement func(context.Context, *tree, workload) (float64, error)

// A workload is one row of the table.
type workload struct {
	name   string
	dir    string // below the tree; empty: the name
	unit   string
	bar    bar
	rounds int  // at most this many; 0: as many as asked for
	less   bool // the figure is a time, and its ratio turned over: above 1 is faster

	copyBar *bar // of a working copy: nil is no row for it
	only    bool // only of a working copy
	long    bool // takes so long that it has to be named

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
	name    string   // of the directory that the workload has
	files   int      // small ones in it
}

func workloads() []workload {
	return slices.Concat(dataWorkloads(), nameWorkloads(), toolWorkloads(), daemonWorkloads(), registryWorkloads(), sandboxWorkloads(), copyWorkloads())
}

func workloadNamed(name string) (workload, bool) {
	all := workloads()
	for _, w := range bucketWorkloads() {
		all = append(all, w.workload)
	}
	i := slices.IndexFunc(all, func(w workload) bool { return w.name == name })
	if i < 0 {
		return workload{}, false
	}
	return all[i], true
}

// where is the workload's directory below the tree.
func (w workload) where() string {
	if w.dir != "" {
		return w.dir
	}
	return w.name
}

// fresh makes the workload's directory anew and empty.
func (p place) fresh() error {
	if err := os.RemoveAll(p.file("")); err != nil {
		return err
	}
	return os.MkdirAll(p.file(""), 0o755)
}

func (p place) file(name string) string { return filepath.Join(p.dir, p.name, name) }
