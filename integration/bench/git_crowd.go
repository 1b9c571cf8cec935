package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// crowdSizes are how many workspaces of one repository are mounted at once, and the
// most files of a repository that so many mount.
var crowdSizes = []struct{ mounts, files int }{{100, 20_000}, {500, 1_000}}

const (
	crowdAlone  = 20 // of those of each size are mounted one after the other, and measured
	crowdAtOnce = 4  // of the others
)

// A gitCrowd is many mounts of one repository.
type gitCrowd struct {
	g     *gitTrees
	there []bool // by number: it is mounted
}

// crowds is what each of many mounts of one repository takes that is not the first:
// time, packs that the server is asked for, and memory, where what several have is
// counted once for all.
func (g *gitTrees) crowds(ctx context.Context) (rows []*gitRow, err error) {
	c := &gitCrowd{g: g}
	defer func() { err = errors.Join(err, c.leave(context.WithoutCancel(ctx)), g.remove("crowd")) }()
	g.server.Requests()
	for _, size := range crowdSizes {
		if g.files > size.files {
			continue
		}
		took, err := c.grow(ctx, size.mounts)
		if err != nil {
			return rows, err
		}
		resident, err := c.resident()
		if err != nil {
			return rows, err
		}
		rows = append(rows,
			&gitRow{name: fmt.Sprintf("one of %d mounts to first ls", size.mounts), ours: took, most: 300 * time.Millisecond, files: size.files},
			&gitRow{name: fmt.Sprintf("resident, one of %d mounts, MiB", size.mounts), size: resident, sizeMost: 15, files: size.files})
	}
	packs := 0
	for _, r := range g.server.Requests() {
		if strings.HasPrefix(r, "POST ") && strings.HasSuffix(r, "/git-upload-pack") {
			packs++
		}
	}
	if packs > 1 {
		return rows, fmt.Errorf("%d mounts of one repository asked for %d packs", len(c.there), packs)
	}
	return rows, nil
}

// grow mounts until there are so many, the last of them alone, and returns how long
// one of these took.
func (c *gitCrowd) grow(ctx context.Context, mounts int) (time.Duration, error) {
	before := max(1, len(c.there))
	first := len(c.there) == 0
	c.there = append(c.there, make([]bool, mounts-len(c.there))...)
	if first { // it brings what all share
		if _, err := c.mount(ctx, 0); err != nil {
			return 0, err
		}
	}
	err := atOnce(before, mounts-crowdAlone, func(i int) error {
		_, err := c.mount(ctx, i)
		return err
	})
	var took []time.Duration
	for i := mounts - crowdAlone; i < mounts && err == nil; i++ {
		var each time.Duration
		each, err = c.mount(ctx, i)
		took = append(took, each)
	}
	if err != nil {
		return 0, err
	}
	return medianTime(took), nil
}

func (c *gitCrowd) at(i int) string {
	return filepath.Join(c.g.dir, "crowd", "mnt"+strconv.Itoa(i))
}

// mount mounts one more, and returns how long that and the first listing took.
func (c *gitCrowd) mount(ctx context.Context, i int) (time.Duration, error) {
	name := strings.Replace(gitWorkspace, "site", "site"+strconv.Itoa(i), 1)
	dir, mnt := filepath.Join(c.g.dir, "crowd", "ws"+strconv.Itoa(i)), c.at(i)
	err := errors.Join(os.MkdirAll(dir, 0o700), os.MkdirAll(mnt, 0o700),
		os.WriteFile(filepath.Join(dir, "WORKSPACE.md"), []byte(strings.ReplaceAll(gitManifest, gitWorkspace, name)), 0o600))
	if err == nil {
		err = c.g.wsmount(ctx, "registry", "add", dir)
	}
	if err != nil {
		return 0, err
	}
	return timed(func() error {
		if err := c.g.wsmount(ctx, "mount", name, mnt); err != nil {
			return err
		}
		c.there[i] = true
		_, err := os.ReadDir(mnt)
		return err
	})
}

// leave unmounts all that came to be mounted.
func (c *gitCrowd) leave(ctx context.Context) error {
	return atOnce(0, len(c.there), func(i int) error {
		if !c.there[i] {
			return nil
		}
		return c.g.wsmount(ctx, "umount", c.at(i))
	})
}

// atOnce calls f for each number, a few at a time.
func atOnce(from, to int, f func(i int) error) error {
	errs := make([]error, max(to-from, 0))
	next := make(chan int)
	var all sync.WaitGroup
	for range crowdAtOnce {
		all.Go(func() {
			for i := range next {
				errs[i-from] = f(i)
			}
		})
	}
	for i := from; i < to; i++ {
		next <- i
	}
	close(next)
	all.Wait()
	return errors.Join(errs...)
}

// resident is the median of what the daemons of the last mounts have in memory, in
// MiB.
func (c *gitCrowd) resident() (float64, error) {
	var sizes []float64
	for i := len(c.there) - crowdAlone; i < len(c.there); i++ {
		size, err := c.g.proportional(c.at(i))
		if err != nil {
			return 0, err
		}
		sizes = append(sizes, size)
	}
	slices.Sort(sizes)
	return sizes[len(sizes)/2], nil
}

// proportional is the memory of a daemon in MiB, with its share of what others have
// too.
func (g *gitTrees) proportional(mnt string) (float64, error) {
	pid, err := g.daemon(mnt)
	if err != nil {
		return 0, err
	}
	text, err := os.ReadFile(filepath.Join("/proc", pid, "smaps_rollup"))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if kib, is := strings.CutPrefix(line, "Pss:"); is {
			n, err := strconv.Atoi(strings.Fields(kib)[0])
			return float64(n) / 1024, err
		}
	}
	return 0, fmt.Errorf("process %s does not say what it has", pid)
}
