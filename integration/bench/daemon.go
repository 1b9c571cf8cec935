package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

func daemonWorkloads() []workload {
	return []workload{
		{name: "mount to first ls", unit: "ms", bar: bar{most: 150}, copyBar: &bar{}, run: place.mountTime, measure: measureMount},
		{name: "idle, own memory", unit: "MiB", bar: bar{most: 30}, rounds: 1, measure: measureIdle},
		{name: "memory, 100 000 files known", unit: "MiB", rounds: 1, measure: memoryFor(100), run: place.walkAll},
		{name: "memory, 1 000 000 files known", unit: "MiB", bar: bar{most: 250}, copyBar: &bar{most: 250}, rounds: 1, measure: memoryFor(1000), run: place.walkAll},
		{name: openWorkload, unit: "files", rounds: 1, measure: openMany, run: place.openAll, setup: place.openSome},
	}
}

// measureMount takes the tree away and lets a worker mount it.
func measureMount(ctx context.Context, t *tree, w workload) (float64, error) {
	if err := t.stop(); err != nil {
		return 0, err
	}
	ms, err := t.work(ctx, phaseRun, w)
	return ms, errors.Join(err, t.start(ctx))
}

// measureIdle looks at a daemon that has just been started.
func measureIdle(ctx context.Context, t *tree, _ workload) (float64, error) {
	if err := t.restart(ctx); err != nil {
		return 0, err
	}
	return t.memory("RssAnon")
}

// mountTime starts the program and lists the mount, in milliseconds. wsmount
// goes to the background when it is ready; loopback is waited for.
func (p place) mountTime() (float64, error) {
	args := slices.DeleteFunc(slices.Clone(p.program), func(a string) bool { return a == "-f" })
	c := exec.CommandContext(context.Background(), args[0], args[1:]...)
	background := len(args) < len(p.program)
	start := time.Now()
	if background {
		if out, err := c.CombinedOutput(); err != nil {
			return 0, fmt.Errorf("%w: %s", err, out)
		}
	} else if err := c.Start(); err != nil {
		return 0, err
	}
	err := p.listWhenMounted(start.Add(20 * time.Second))
	took := time.Since(start)
	if background {
		return took.Seconds() * 1000, errors.Join(err, command("/", args[0], "umount", p.dir))
	}
	if err = errors.Join(err, unmount(p.dir)); err != nil {
		err = errors.Join(err, c.Process.Kill())
	}
	_ = c.Wait() // loopback's exit status says nothing of its mount
	return took.Seconds() * 1000, err
}

func (p place) listWhenMounted(deadline time.Time) error {
	for ; time.Now().Before(deadline); time.Sleep(200 * time.Microsecond) {
		var st unix.Statfs_t
		if unix.Statfs(p.dir, &st) == nil && st.Type == unix.FUSE_SUPER_MAGIC {
			_, err := os.ReadDir(p.dir)
			return err
		}
	}
	return errors.New("not mounted after 20 s")
}

// memoryFor is the daemon's resident memory once so many thousand files have
// been looked up.
func memoryFor(thousands int) measurement {
	return func(ctx context.Context, t *tree, w workload) (float64, error) {
		return t.overMany(ctx, thousands, func(many *tree) (float64, error) {
			n, err := many.work(ctx, phaseRun, w)
			if err == nil && int(n) < thousands*1000 {
				err = fmt.Errorf("%s: %d names seen", w.name, int(n))
			}
			if err != nil {
				return 0, err
			}
			return many.memory("VmRSS")
		})
	}
}

// walkAll looks at every name of the tree.
func (p place) walkAll() (float64, error) {
	n, err := walkTree(p.dir)
	return float64(n), err
}

// overMany measures a further mount, of a store of so many thousand files that
// all trees share, but those that are working copies.
func (t *tree) overMany(ctx context.Context, thousands int, measure func(*tree) (float64, error)) (float64, error) {
	home := filepath.Join(t.s.b.dir, fmt.Sprintf("many-%d", thousands))
	if t.remote != nil { // a service of its own, whose working copy must not be that of an earlier one
		t.s.services++
		home += fmt.Sprintf("-%d", t.s.services)
	}
	many, err := t.s.newTree(t.kind, home)
	if err != nil {
		return 0, err
	}
	if many.remote != nil {
		if err := many.remote.fill(ctx, thousands); err != nil {
			return 0, err
		}
		defer many.remote.end()
	} else if _, err := os.Stat(many.store + "/complete"); errors.Is(err, fs.ErrNotExist) {
		err = errors.Join(makeTree(many.store, thousands, 1000), os.WriteFile(many.store+"/complete", nil, 0o644))
		if err != nil {
			return 0, err
		}
	}
	if err := many.start(ctx); err != nil {
		return 0, err
	}
	v, err := measure(many)
	return v, errors.Join(err, many.stop())
}

// absent stands for a figure that does not exist.
var absent = math.NaN()
