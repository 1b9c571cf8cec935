package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/wsmount/wsmount/integration/gitserver"
)

// gitTrees are a repository at a server, a mount of it, and a clone that the git
// program made: what is compared is what a person waits for who wants the same.
type gitTrees struct {
	o      options
	dir    string
	files  int
	server *gitserver.Server
	round  int // counts what was changed, so that no change is made twice
}

const (
	gitWorkspace = "@bench/site"
	gitRepo      = "acme/site"
	dirFiles     = 100 // in each directory
)

func (g *gitTrees) mount() string { return filepath.Join(g.dir, "mnt") }
func (g *gitTrees) clone() string { return filepath.Join(g.dir, "clone") }
func (g *gitTrees) other() string { return filepath.Join(g.dir, "other") }
func (g *gitTrees) bare() string  { return filepath.Join(g.dir, "server", gitRepo+".git") }

// compareGit measures repositories of each size and prints a table for each.
func compareGit(ctx context.Context, o options) (err error) {
	var missed []string
	for _, files := range o.git {
		rows, err := compareRepository(ctx, o, files)
		if err != nil {
			return fmt.Errorf("%d files: %w", files, err)
		}
		printGit(os.Stdout, o, files, rows)
		for _, r := range rows {
			if r.judged(files) && r.missed() {
				missed = append(missed, fmt.Sprintf("%s, %d files", r.name, files))
			}
		}
	}
	if o.strict && len(missed) > 0 {
		return fmt.Errorf("bars missed: %s", strings.Join(missed, "; "))
	}
	return nil
}

func compareRepository(ctx context.Context, o options, files int) (_ []*gitRow, err error) {
	dir, err := os.MkdirTemp(o.dir, "wsmount-bench-")
	if err != nil {
		return nil, err
	}
	g := &gitTrees{o: o, dir: dir, files: files}
	if g.o.wsmount, err = filepath.Abs(o.wsmount); err != nil {
		return nil, err
	}
	defer func() {
		g.umount(context.WithoutCancel(ctx))
		err = errors.Join(err, os.RemoveAll(dir))
	}()
	if g.server, err = gitserver.Launch(filepath.Join(dir, "server")); err != nil {
		return nil, err
	}
	defer g.server.Stop()
	if err := g.setUp(ctx); err != nil {
		return nil, err
	}
	return g.measure(ctx)
}

// setUp makes the repository and the workspace.
func (g *gitTrees) setUp(ctx context.Context) error {
	for _, dir := range []string{g.mount(), filepath.Join(g.dir, "config"), filepath.Join(g.dir, "ws"), filepath.Dir(g.bare())} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	err := errors.Join(
		g.git(ctx, g.dir, "init", "-q", "--bare", "-b", "main", g.bare()), g.git(ctx, g.bare(), "config", "http.receivepack", "true"), g.fill(ctx),
		os.WriteFile(filepath.Join(g.dir, "config", "token"), []byte("no server asks for it"), 0o600),
		os.WriteFile(filepath.Join(g.dir, "config", "config.yaml"), fmt.Appendf(nil, "allow_endpoints: [ \"%[1]s 127.0.0.1\" ]\n"+
			"allow_overlap: [ { from: \"@bench/*\", to: \"@bench/*\" } ]\nproviders: { github: { base_url: %[1]q } }\nsecrets: { github-token: { file: %[2]q, allow: [\"@bench/*\"] } }\n",
			g.server.URL, filepath.Join(g.dir, "config", "token")), 0o600),
		os.WriteFile(filepath.Join(g.dir, "ws", "WORKSPACE.md"), []byte(gitManifest), 0o600))
	if err != nil {
		return err
	}
	return g.wsmount(ctx, "registry", "add", filepath.Join(g.dir, "ws"))
}

const gitManifest = `---
schema: workspace/v1
id: "` + gitWorkspace + `"
version: 1.0.0
name: Benchmark
description: A repository to measure.
owner: { type: user, id: bench, slug: bench }
identity: [ { name: Bench, email: bench@acme.test } ]
storage:
  inline:
    provider: github
    config: { repo: ` + gitRepo + `, branch: main }
    auth: { state: { env: [GITHUB_TOKEN] } }
    sync: { pull: { on: turn-start }, commit: { on: manual }, push: { on: manual } }
sandbox: { inline: { provider: local, config: {}, mounts: [ { source: workspace, at: /workspace } ] } }
---
`

// fill commits all files, of some hundred bytes that do not compress well.
func (g *gitTrees) fill(ctx context.Context) error {
	c := g.command(ctx, g.bare(), "git", "fast-import", "--quiet")
	in, err := c.StdinPipe()
	if err != nil {
		return err
	}
	if err := c.Start(); err != nil {
		return err
	}
	fmt.Fprint(in, "commit refs/heads/main\ncommitter Ann <ann@acme.test> 1700000000 +0000\ndata 5\nbegin\n")
	for i := range g.files {
		text := gitContent(i, 0)
		fmt.Fprintf(in, "M 100644 inline %s\ndata %d\n%s\n", gitPath(i), len(text), text)
	}
	return errors.Join(in.Close(), c.Wait())
}

func gitPath(i int) string {
	dir := i / dirFiles
	return fmt.Sprintf("d%02d/e%03d/f%06d.txt", dir%20, dir/20, i)
}

func gitContent(i, round int) string {
	var b strings.Builder
	for line := range 12 {
		fmt.Fprintf(&b, "line %d of file %d in round %d: %x\n", line, i, round, (i+1)*(line+7)*2654435761)
	}
	return b.String()
}

// change writes n files of a tree anew, none of which it has written before.
func (g *gitTrees) change(root string, n int) error {
	g.round++
	for i := range n {
		at := (i*(g.files/n) + g.round) % g.files
		if err := os.WriteFile(filepath.Join(root, gitPath(at)), []byte(gitContent(at, g.round)), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// walkFiles looks at every name of a tree but git's own, and counts the files.
func walkFiles(root string) (n int, err error) {
	err = filepath.WalkDir(root, func(_ string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.Name() == ".git" && d.IsDir():
			return filepath.SkipDir
		case d.Type().IsRegular() && d.Name() != ".git":
			n++
		}
		return nil
	})
	return n, err
}

func (g *gitTrees) command(ctx context.Context, dir, program string, args ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, program, args...)
	c.Dir = dir
	c.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + g.dir, "LC_ALL=C", "GIT_CONFIG_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0",
		"GIT_AUTHOR_NAME=Ann", "GIT_AUTHOR_EMAIL=ann@acme.test", "GIT_COMMITTER_NAME=Ann", "GIT_COMMITTER_EMAIL=ann@acme.test",
		"WSMOUNT_CONFIG=" + filepath.Join(g.dir, "config", "config.yaml"), "WSMOUNT_STATE_DIR=" + filepath.Join(g.dir, "state")}
	return c
}

func (g *gitTrees) run(c *exec.Cmd) error {
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(c.Args, " "), err, out)
	}
	return nil
}

// git runs the git program, which says how long what it pushes is: CGI wants to
// know.
func (g *gitTrees) git(ctx context.Context, dir string, args ...string) error {
	return g.run(g.command(ctx, dir, "git", append([]string{"-c", "http.postBuffer=536870912"}, args...)...))
}

func (g *gitTrees) wsmount(ctx context.Context, args ...string) error {
	return g.run(g.command(ctx, "/", g.o.wsmount, args...)) // a configuration is not read from below the working directory
}

func (g *gitTrees) umount(ctx context.Context) {
	if err := g.wsmount(ctx, "umount", g.mount()); err != nil {
		_ = g.wsmount(ctx, "umount", "--force", "--lazy", g.mount())
	}
}

// forget makes the next mount the first.
func (g *gitTrees) forget(ctx context.Context) error {
	if err := g.wsmount(ctx, "umount", g.mount()); err != nil {
		return err
	}
	return g.remove("state", "clone")
}

func (g *gitTrees) remove(names ...string) error {
	var errs []error
	for _, name := range names {
		errs = append(errs, os.RemoveAll(filepath.Join(g.dir, name)))
	}
	return errors.Join(errs...)
}

// timed is how long work takes.
func timed(work func() error) (time.Duration, error) {
	start := time.Now()
	err := work()
	return time.Since(start), err
}

func medianTime(list []time.Duration) time.Duration {
	if len(list) == 0 {
		return 0
	}
	list = slices.Sorted(slices.Values(list))
	return list[len(list)/2]
}
