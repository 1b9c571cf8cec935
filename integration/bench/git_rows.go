package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// barFiles is how many files a repository has for which most bars are.
const barFiles = 100_000

// gitRow is one thing that takes time, with wsmount and with the git program.
type gitRow struct {
	name      string
	ours, git time.Duration
	ratio     float64       // the bar: ours is to be so much of git's at most; 0: none
	most      time.Duration // the bar, where git has nothing like it; 0: none
	size      float64       // in MiB, where it is no time
	sizeMost  float64
	files     int // the bar is for repositories of so many at least; 0: barFiles
}

// judged reports whether the bar is for repositories of so many files.
func (r *gitRow) judged(files int) bool {
	if r.files > 0 {
		return files >= r.files
	}
	return files >= barFiles
}

func (r *gitRow) missed() bool {
	switch {
	case r.ratio > 0:
		return r.ours.Seconds() > r.ratio*r.git.Seconds()
	case r.most > 0:
		return r.ours > r.most
	}
	return r.sizeMost > 0 && r.size > r.sizeMost
}

// measure goes through the life of a workspace.
func (g *gitTrees) measure(ctx context.Context) ([]*gitRow, error) {
	var rows []*gitRow
	for _, part := range []func(context.Context) ([]*gitRow, error){g.starts, g.commits, g.pulls, g.looks, g.crowds} {
		more, err := part(ctx)
		rows = append(rows, more...)
		if err != nil {
			return rows, err
		}
	}
	return rows, nil
}

// repeat measures work of both, in turn, and gives the medians.
func (g *gitTrees) repeat(row *gitRow, ours, git func() (time.Duration, error)) ([]*gitRow, error) {
	var a, b []time.Duration
	for range g.o.rounds {
		took, err := ours()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", row.name, err)
		}
		a = append(a, took)
		if git == nil {
			continue
		}
		if took, err = git(); err != nil {
			return nil, fmt.Errorf("%s: %w", row.name, err)
		}
		b = append(b, took)
	}
	row.ours, row.git = medianTime(a), medianTime(b)
	return []*gitRow{row}, nil
}

// starts is what a first mount and a later one take.
func (g *gitTrees) starts(ctx context.Context) (rows []*gitRow, err error) {
	first := filepath.Join(g.mount(), gitPath(g.files/2))
	mount := func(then func() error) func() (time.Duration, error) {
		return func() (time.Duration, error) {
			if g.mounted() {
				if err := g.forget(ctx); err != nil {
					return 0, err
				}
			}
			return timed(func() error {
				if err := g.wsmount(ctx, "mount", gitWorkspace, g.mount()); err != nil {
					return err
				}
				return then()
			})
		}
	}
	clone := func(then func() error, flags ...string) func() (time.Duration, error) {
		return func() (time.Duration, error) {
			if err := g.remove("clone"); err != nil {
				return 0, err
			}
			return timed(func() error {
				args := append(append([]string{"clone", "-q"}, flags...), g.server.URL+"/"+gitRepo+".git", g.clone())
				if err := g.git(ctx, g.dir, args...); err != nil {
					return err
				}
				return then()
			})
		}
	}
	all := func(root string) func() error {
		return func() error {
			n, err := walkFiles(root)
			if err == nil && n != g.files {
				err = fmt.Errorf("%d files instead of %d", n, g.files)
			}
			return err
		}
	}
	one := func() error { _, err := os.ReadFile(first); return err }
	if rows, err = g.filtered(ctx, mount, clone, one, all); err != nil {
		return rows, err
	}
	more, err := g.repeat(&gitRow{name: "start to first file read", ratio: 1.2}, mount(one), clone(func() error { return nil }, "--bare"))
	if rows = append(rows, more...); err != nil {
		return rows, err
	}
	more, err = g.repeat(&gitRow{name: "start to ls -R done", ratio: 0.5}, mount(all(g.mount())), clone(all(g.clone())))
	if rows = append(rows, more...); err != nil {
		return rows, err
	}
	rows = append(rows, g.memory("resident, mounted", 200))
	more, err = g.repeat(&gitRow{name: "remount to first ls", most: 300 * time.Millisecond}, func() (time.Duration, error) {
		if err := g.wsmount(ctx, "umount", g.mount()); err != nil {
			return 0, err
		}
		return timed(func() error {
			if err := g.wsmount(ctx, "mount", gitWorkspace, g.mount()); err != nil {
				return err
			}
			_, err := os.ReadDir(g.mount())
			return err
		})
	}, nil)
	if rows = append(rows, more...); err != nil {
		return rows, err
	}
	more, err = g.sandboxes(ctx)
	return append(rows, more...), err
}

// filtered is what a first mount takes where the server leaves contents out.
func (g *gitTrees) filtered(ctx context.Context, mount func(func() error) func() (time.Duration, error),
	clone func(func() error, ...string) func() (time.Duration, error), one func() error, all func(string) func() error) (rows []*gitRow, err error) {
	if err := g.filter(ctx, "true"); err != nil {
		return nil, err
	}
	rows, err = g.repeat(&gitRow{name: "first file, server filters", most: 600 * time.Millisecond}, mount(one), nil)
	if err != nil {
		return rows, err
	}
	more, err := g.repeat(&gitRow{name: "ls -R done, server filters", ratio: 0.5}, mount(all(g.mount())), clone(all(g.clone())))
	rows = append(append(rows, more...), g.memory("resident, cloned", 300))
	return rows, errors.Join(err, g.filter(ctx, "false"))
}

// filter has the server leave contents out for who asks for that, or not.
func (g *gitTrees) filter(ctx context.Context, on string) error {
	return errors.Join(g.git(ctx, g.bare(), "config", "uploadpack.allowFilter", on), g.git(ctx, g.bare(), "config", "uploadpack.allowAnySHA1InWant", on))
}

// sandboxes is what a sandbox adds to a command, in a mount that is there and with
// one of its own, whose working copy is warm.
func (g *gitTrees) sandboxes(ctx context.Context) (rows []*gitRow, err error) {
	if bwrap, _ := exec.LookPath("bwrap"); bwrap == "" {
		return nil, nil
	}
	command := func() (time.Duration, error) {
		return timed(func() error { return g.wsmount(ctx, "exec", gitWorkspace, "--", "true") })
	}
	const most = 200 * time.Millisecond
	rows, err = g.repeat(&gitRow{name: "exec true, mounted", most: most}, command, nil)
	if err != nil {
		return rows, err
	}
	if err := g.wsmount(ctx, "umount", g.mount()); err != nil {
		return rows, err
	}
	more, err := g.repeat(&gitRow{name: "exec true, mount to unmount", most: most}, command, nil)
	return append(rows, more...), errors.Join(err, g.wsmount(ctx, "mount", gitWorkspace, g.mount()))
}

func (g *gitTrees) mounted() bool {
	_, err := os.Stat(filepath.Join(g.mount(), ".wsmount"))
	return err == nil
}

// daemon is the process that serves a mount.
func (g *gitTrees) daemon(mnt string) (pid string, err error) {
	out, err := g.command(context.Background(), "/", g.o.wsmount, "status", mnt, "--json").Output()
	_, after, _ := strings.Cut(string(out), `"pid": `)
	pid, _, _ = strings.Cut(after, ",")
	return pid, err
}

// memory is what the daemon has resident.
func (g *gitTrees) memory(name string, most float64) *gitRow {
	row := &gitRow{name: name + ", MiB", sizeMost: most}
	pid, err := g.daemon(g.mount())
	if err != nil {
		return row
	}
	status, err := os.ReadFile(filepath.Join("/proc", pid, "status"))
	if err != nil {
		return row
	}
	for line := range strings.Lines(string(status)) {
		if kib, is := strings.CutPrefix(line, "VmRSS:"); is {
			n, _ := strconv.Atoi(strings.Fields(kib)[0])
			row.size = float64(n) / 1024
		}
	}
	return row
}

// commits is what a commit and a push take, as commands. Those of the git program
// do not outlive a loss of power.
func (g *gitTrees) commits(ctx context.Context) (rows []*gitRow, err error) {
	for _, c := range []struct {
		name    string
		changes int
		ratio   float64
		most    time.Duration
	}{{"commit of 1 change", 1, 0, 15 * time.Millisecond}, {"commit of 1 000 changes", 1000, 1, 0}} {
		if c.changes > g.files {
			continue
		}
		more, err := g.repeat(&gitRow{name: c.name, ratio: c.ratio, most: c.most}, func() (time.Duration, error) {
			if err := g.change(g.mount(), c.changes); err != nil {
				return 0, err
			}
			return timed(func() error { return g.wsmount(ctx, "commit", g.mount()) })
		}, func() (time.Duration, error) {
			if err := g.change(g.clone(), c.changes); err != nil {
				return 0, err
			}
			return timed(func() error { return g.git(ctx, g.clone(), "commit", "-qam", "changes") })
		})
		if rows = append(rows, more...); err != nil {
			return rows, err
		}
	}
	// Both push to the same branch, so each takes up what the other pushed first.
	more, err := g.repeat(&gitRow{name: "push of one commit", ratio: 1.2}, func() (time.Duration, error) {
		return g.pushed(g.mount(), func() error { return g.wsmount(ctx, "pull", g.mount()) },
			func() error { return g.wsmount(ctx, "commit", g.mount()) }, func() error { return g.wsmount(ctx, "push", g.mount()) })
	}, func() (time.Duration, error) {
		return g.pushed(g.clone(), func() error { return g.git(ctx, g.clone(), "pull", "-q", "--rebase", "-X", "theirs") },
			func() error { return g.git(ctx, g.clone(), "commit", "-qam", "one") }, func() error { return g.git(ctx, g.clone(), "push", "-q") })
	})
	return append(rows, more...), err
}

func (g *gitTrees) pushed(root string, level, commit, push func() error) (time.Duration, error) {
	for _, work := range []func() error{level, push, func() error { return g.change(root, 1) }, commit} {
		if err := work(); err != nil {
			return 0, err
		}
	}
	return timed(push)
}

// pulls is what it takes to hear of changes, and to have them.
func (g *gitTrees) pulls(ctx context.Context) (rows []*gitRow, err error) {
	ours := func() error { return g.wsmount(ctx, "pull", g.mount()) }
	git := func() error { return g.git(ctx, g.clone(), "pull", "-q", "--ff-only") }
	for _, level := range []func() error{ours, git} {
		if err := level(); err != nil {
			return nil, err
		}
	}
	more, err := g.repeat(&gitRow{name: "pull with nothing new", ratio: 1}, func() (time.Duration, error) { return timed(ours) },
		func() (time.Duration, error) { return timed(git) })
	if rows = append(rows, more...); err != nil {
		return rows, err
	}
	if err := g.git(ctx, g.dir, "clone", "-q", g.server.URL+"/"+gitRepo+".git", g.other()); err != nil {
		return rows, err
	}
	more, err = g.repeat(&gitRow{name: "pull of 100 changed files", ratio: 1}, func() (time.Duration, error) {
		err := g.change(g.other(), min(100, g.files))
		for _, args := range [][]string{{"commit", "-qam", "theirs"}, {"push", "-q"}} {
			if err == nil {
				err = g.git(ctx, g.other(), args...)
			}
		}
		if err != nil {
			return 0, err
		}
		return timed(ours)
	}, func() (time.Duration, error) { return timed(git) })
	return append(rows, more...), err
}

// looks is what the git program takes in the mount and on the disk.
func (g *gitTrees) looks(ctx context.Context) (rows []*gitRow, err error) {
	for _, root := range []string{g.mount(), g.clone()} {
		if err := g.change(root, 3); err != nil {
			return nil, err
		}
	}
	for i, what := range [][]string{{"status"}, {"diff", "--stat", "HEAD"}, {"log", "-5", "--stat"}} {
		row := &gitRow{name: "git " + what[0] + ", 3 changes"}
		if i == 0 {
			row.ratio = 2
		}
		in := func(root string) func() (time.Duration, error) {
			return func() (time.Duration, error) { return timed(func() error { return g.git(ctx, root, what...) }) }
		}
		more, err := g.repeat(row, in(g.mount()), in(g.clone()))
		if rows = append(rows, more...); err != nil {
			return rows, err
		}
	}
	return rows, g.git(ctx, g.mount(), "diff", "--quiet", "--cached")
}

// printGit writes the table of one size.
func printGit(w io.Writer, o options, files int, rows []*gitRow) {
	fmt.Fprintf(w, "\na repository of %d files, served by git http-backend on this machine, %d rounds, Linux %s, %d processors, load %s\n\n",
		files, o.rounds, kernel(), runtime.NumCPU(), load())
	fmt.Fprintf(w, "%-28s %10s %10s %6s  %s\n", "what", "wsmount", "git", "ratio", "bar")
	for _, r := range rows {
		ours, git, ratio, bar := ms(r.ours), ms(r.git), "-", "-"
		if r.git > 0 {
			ratio = fmt.Sprintf("%.2f", r.ours.Seconds()/r.git.Seconds())
		}
		if r.sizeMost > 0 {
			ours = fmt.Sprintf("%.0f", r.size)
		}
		switch {
		case !r.judged(files):
		case r.sizeMost > 0:
			bar = fmt.Sprintf("%.0f", r.sizeMost)
		case r.ratio > 0:
			bar = fmt.Sprintf("%.1f of git", r.ratio)
		case r.most > 0:
			bar = ms(r.most)
		}
		if r.judged(files) && r.missed() {
			bar += " !"
		}
		fmt.Fprintf(w, "%-28s %10s %10s %6s  %s\n", r.name, ours, git, ratio, bar)
	}
}

func ms(d time.Duration) string {
	if d == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f ms", float64(d.Microseconds())/1000)
}
