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
	"time"
)

const (
	crowd     = 100    // workspaces of one repository, each mounted
	crowdMost = 20_000 // files of a repository that so many mount at once
)

// crowds is what each of many mounts of one repository takes that is not the first:
// time, packs that the server is asked for, and memory, where what several have is
// counted once for all.
func (g *gitTrees) crowds(ctx context.Context) (rows []*gitRow, err error) {
	if g.files > crowdMost {
		return nil, nil
	}
	var took []time.Duration
	var mounts []string
	defer func() {
		for _, mnt := range mounts {
			err = errors.Join(err, g.wsmount(context.WithoutCancel(ctx), "umount", mnt))
		}
		err = errors.Join(err, g.remove("crowd"))
	}()
	g.server.Requests()
	for i := range crowd {
		name := strings.Replace(gitWorkspace, "site", "site"+strconv.Itoa(i), 1)
		dir, mnt := filepath.Join(g.dir, "crowd", "ws"+strconv.Itoa(i)), filepath.Join(g.dir, "crowd", "mnt"+strconv.Itoa(i))
		err := errors.Join(os.MkdirAll(dir, 0o700), os.MkdirAll(mnt, 0o700),
			os.WriteFile(filepath.Join(dir, "WORKSPACE.md"), []byte(strings.ReplaceAll(gitManifest, gitWorkspace, name)), 0o600))
		if err == nil {
			err = g.wsmount(ctx, "registry", "add", dir)
		}
		if err != nil {
			return rows, err
		}
		each, err := timed(func() error {
			if err := g.wsmount(ctx, "mount", name, mnt); err != nil {
				return err
			}
			mounts = append(mounts, mnt)
			_, err := os.ReadDir(mnt)
			return err
		})
		if err != nil {
			return rows, err
		}
		took = append(took, each)
	}
	packs := 0
	for _, r := range g.server.Requests() {
		if strings.HasPrefix(r, "POST ") && strings.HasSuffix(r, "/git-upload-pack") {
			packs++
		}
	}
	if packs > 1 {
		return rows, fmt.Errorf("%d mounts of one repository asked for %d packs", crowd, packs)
	}
	var sizes []float64
	for _, mnt := range mounts {
		size, err := g.proportional(mnt)
		if err != nil {
			return rows, err
		}
		sizes = append(sizes, size)
	}
	slices.Sort(sizes)
	return []*gitRow{
		{name: fmt.Sprintf("one of %d mounts to first ls", crowd), ours: medianTime(took[1:]), most: 300 * time.Millisecond, files: crowdMost},
		{name: fmt.Sprintf("resident, one of %d mounts, MiB", crowd), size: sizes[len(sizes)/2], sizeMost: 15, files: crowdMost},
	}, nil
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
