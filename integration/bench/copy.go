package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/wsmount/wsmount/integration/memoryserver"
	"github.com/wsmount/wsmount/providers"
)

// copyWorkloads are for working copies: what a local directory has no part in.
func copyWorkloads() []workload {
	million := func(w workload) workload {
		w.unit, w.only, w.rounds, w.measure = "ms", true, 1, renameMany
		w.copyBar = &bar{most: 1}
		return w
	}
	return []workload{
		million(workload{name: "rename 1 000 000, not loaded", run: place.renameTop}),
		million(workload{name: "rename 1 000 000, loaded", run: func(p place) (float64, error) {
			if _, err := walkTree(p.dir); err != nil {
				return 0, err
			}
			return p.renameTop()
		}}),
		{name: "memory, 10 000 000 files known", unit: "MiB", only: true, long: true, copyBar: &bar{most: 500}, rounds: 1,
			measure: memoryFor(10_000), run: place.walkAll},
		{name: "create and commit", unit: "files/s", only: true, copyBar: &bar{}, measure: createAndCommit,
			setup: place.fresh, run: place.create},
	}
}

func renameMany(ctx context.Context, t *tree, w workload) (float64, error) {
	return t.overMany(ctx, 1000, func(many *tree) (float64, error) { return many.work(ctx, phaseRun, w) })
}

// renameTop renames the directory that everything lies in, to and fro, and
// returns the median in milliseconds.
func (p place) renameTop() (float64, error) {
	a, b := filepath.Join(p.dir, manyDir), filepath.Join(p.dir, manyDir+".moved")
	if _, err := os.Lstat(a); err != nil {
		return 0, err
	}
	var took []float64
	for range 9 {
		start := time.Now()
		if err := os.Rename(a, b); err != nil {
			return 0, err
		}
		took = append(took, time.Since(start).Seconds()*1000)
		a, b = b, a
	}
	slices.Sort(took)
	return took[len(took)/2], nil
}

// createAndCommit is how fast files that are created get to the service, by the
// time until an unmount after that has ended.
func createAndCommit(ctx context.Context, t *tree, w workload) (float64, error) {
	if _, err := t.work(ctx, phaseSetup, w); err != nil {
		return 0, err
	}
	start := time.Now()
	if _, err := t.work(ctx, phaseRun, w); err != nil {
		return 0, err
	}
	if err := t.stop(); err != nil {
		return 0, err
	}
	rate := smallFiles / time.Since(start).Seconds()
	return rate, t.start(ctx)
}

// A remote is a running service that has the bytes of a working copy.
type remote struct {
	socket  string
	delay   time.Duration
	cmd     *exec.Cmd
	in      io.Closer
	filled  bool
	stopped bool
}

// useService has a tree show a working copy of a service of its own.
func (t *tree) useService(home, manifest string) error {
	t.remote = &remote{socket: filepath.Join(home, "s"), delay: t.s.b.o.delay}
	if err := os.Remove(t.remote.socket); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	c := t.s.command(context.Background(), t.s.b.programs[service], "-socket", t.remote.socket, "-delay", t.remote.delay.String())
	in, err := c.StdinPipe()
	if err != nil {
		return err
	}
	out, err := c.StdoutPipe()
	if err != nil {
		return err
	}
	c.Stderr = os.Stderr
	if err := c.Start(); err != nil {
		return err
	}
	t.remote.cmd, t.remote.in = c, in
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		return fmt.Errorf("memoryd says %q: %w", line, err)
	}
	return t.register(manifest)
}

// register has the host of the tree's user allow the service: a working copy of
// it is for registered manifests only.
func (t *tree) register(manifest string) error {
	dir, id := t.s.home+"/config/wsmount", "copy-"+filepath.Base(filepath.Dir(manifest))
	err := os.WriteFile(manifest, fmt.Appendf(nil, copyManifest, id, t.remote.socket), 0o644)
	err = errors.Join(err, t.s.mkdir(t.s.home+"/config", dir))
	config := fmt.Sprintf("allow_paths: [ %q ]\n", t.s.b.dir)
	err = errors.Join(err, os.WriteFile(dir+"/config.yaml", []byte(config), 0o644))
	if err != nil {
		return err
	}
	return t.s.registryAdd(filepath.Dir(manifest))
}

// registryAdd has the user's host know the workspace in a directory.
func (s *session) registryAdd(dir string) error {
	out, err := s.command(context.Background(), s.b.programs[wsmount], "registry", "add", dir).CombinedOutput()
	if err != nil {
		return fmt.Errorf("registry add: %w: %s", err, out)
	}
	return nil
}

const copyManifest = `---
schema: workspace/v1
id: "@bench/%s"
version: 1.0.0
name: Benchmark
description: A working copy of small and large files to measure.
owner: { type: user, id: bench, slug: bench }
storage:
  inline:
    provider: memory
    config: { socket: %q }
    sync: { mode: pull-push, commit: { on: write, batch_window_ms: 1000 } }
---
`

// end ends the service, which forgets everything.
func (r *remote) end() {
	if r == nil || r.stopped {
		return
	}
	r.stopped = true
	r.in.Close()
	_ = r.cmd.Wait()
}

// manyDir holds all that fill makes.
const manyDir = "many"

// fill puts so many thousand files into the service, at full speed.
func (r *remote) fill(ctx context.Context, thousands int) error {
	if r.filled {
		return nil
	}
	control, err := memoryserver.DialControl(ctx, "unix", r.socket)
	if err != nil {
		return err
	}
	defer control.Close()
	p, err := memoryserver.Dial(ctx, r.socket)
	if err != nil {
		return err
	}
	defer p.Close()
	if err := control.Delay(ctx, 0); err != nil {
		return err
	}
	for d := range thousands {
		var set providers.ChangeSet
		for i := range 1000 {
			l := providers.MustLocator(fmt.Sprintf("%s/dir-%04d/%s", manyDir, d, smallName(i)))
			set.Changes = append(set.Changes, providers.Change{Locator: l, If: providers.IfAbsent(), Body: providers.String("")})
		}
		if _, err := p.Commit(ctx, set); err != nil {
			return err
		}
	}
	r.filled = true
	return control.Delay(ctx, r.delay)
}

// restartNew mounts a working copy that has seen nothing yet.
func (t *tree) restartNew(ctx context.Context) error {
	if err := t.stop(); err != nil {
		return err
	}
	if err := os.RemoveAll(t.s.home + "/state"); err != nil {
		return err
	}
	return t.start(ctx)
}
