package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// The rates of real tools are runs a minute, so that more is better here too.
func toolWorkloads() []workload {
	return []workload{
		{name: "git clone, 2000 files", unit: "runs/min", setup: place.gitSetup, run: place.gitClone},
		{name: "tar x, 3000 files", unit: "runs/min", setup: place.tarSetup, run: place.tarExtract},
		{name: "node_modules, make", unit: "runs/min", setup: place.fresh, run: place.modulesMake},
		{name: "node_modules, resolve", unit: "runs/min", between: remount, setup: place.modulesSetup, run: place.modulesResolve},
	}
}

// outside is a place for a tool's input that is on no tree: beside the user's
// trees, shared by them.
func (p place) outside() string {
	return filepath.Join(os.Getenv("HOME"), "input-"+strings.Fields(p.name)[0])
}

func command(dir, name string, args ...string) error {
	c := exec.CommandContext(context.Background(), name, args...)
	c.Dir = dir
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", name, err, bytes.TrimSpace(out))
	}
	return nil
}

// gitSetup makes a repository of 2000 files in 20 commits, once.
func (p place) gitSetup() error {
	if err := p.fresh(); err != nil {
		return err
	}
	return gitRepository(p.outside(), 20, 100)
}

// gitRepository makes a repository, unless it exists.
func gitRepository(repo string, commits, files int) error {
	if _, err := os.Stat(repo); err == nil {
		return nil
	}
	if err := command("/", "git", "init", "-q", "--bare", "-b", "main", repo); err != nil {
		return err
	}
	var stream bytes.Buffer
	for c := range commits {
		fmt.Fprintf(&stream, "commit refs/heads/main\ncommitter b <b@bench.test> %d +0000\ndata 1\nc\n", 1_700_000_000+c)
		for i := range files {
			text := gitText(c, i)
			fmt.Fprintf(&stream, "M 100644 inline %s\ndata %d\n%s\n", gitName(c, i, files), len(text), text)
		}
	}
	imported := exec.CommandContext(context.Background(), "git", "-C", repo, "fast-import", "--quiet")
	imported.Stdin = &stream
	return imported.Run()
}

// gitName and gitText are the i-th file of a commit that has so many.
func gitName(commit, i, files int) string {
	return fmt.Sprintf("dir-%02d/%s", i%10, smallName(commit*files+i))
}

func gitText(commit, i int) string {
	return strings.Repeat(fmt.Sprintf("line %d of %d\n", i, commit), 40+i)
}

func (p place) gitClone() (float64, error) {
	watch := startWatch()
	err := command(p.file(""), "git", "clone", "-q", "--no-local", p.outside(), "clone")
	return watch.perMinute(), err
}

// tarSetup packs 3000 files of 2 KiB in 30 directories, once.
func (p place) tarSetup() error {
	if err := p.fresh(); err != nil {
		return err
	}
	archive := p.outside()
	if _, err := os.Stat(archive); err == nil {
		return nil
	}
	from := archive + ".dir"
	for d := range 30 {
		dir := filepath.Join(from, fmt.Sprint(d))
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		for i := range 100 {
			if err := os.WriteFile(filepath.Join(dir, smallName(i)), make([]byte, 2048), 0o644); err != nil {
				return err
			}
		}
	}
	return command(from, "tar", "-cf", archive, ".")
}

func (p place) tarExtract() (float64, error) {
	watch := startWatch()
	err := command(p.file(""), "tar", "-xf", p.outside())
	return watch.perMinute(), err
}

// A tree like node_modules: many small packages, each with a few files, and a
// program that looks for each of them at several places that do not exist.
const packages = 400

func packageName(i int) string { return fmt.Sprintf("package-%03d", i) }

func (p place) modulesMake() (float64, error) {
	watch := startWatch()
	for i := range packages {
		lib := p.file("node_modules/" + packageName(i) + "/lib/internal")
		if err := os.MkdirAll(lib, 0o755); err != nil {
			return 0, err
		}
		for _, name := range []string{"../../package.json", "../../README.md", "../index.js", "util.js", "../types.d.ts"} {
			if err := os.WriteFile(filepath.Join(lib, name), make([]byte, 900), 0o644); err != nil {
				return 0, err
			}
		}
	}
	return watch.perMinute(), nil
}

func (p place) modulesSetup() error {
	if _, err := os.Stat(p.file("node_modules/" + packageName(packages-1) + "/lib/types.d.ts")); err == nil {
		return nil
	}
	err := p.fresh()
	if err == nil {
		_, err = p.modulesMake()
	}
	return err
}

// modulesResolve lets every tenth package require every other tenth, the way
// node looks for them: from the nearest node_modules to the outermost.
func (p place) modulesResolve() (float64, error) {
	buf := make([]byte, 4096)
	watch := startWatch()
	for from := 0; from < packages; from += 10 {
		inner := p.file("node_modules/" + packageName(from))
		for to := range packages {
			name := packageName(to)
			for _, dir := range []string{inner + "/lib/internal", inner + "/lib", inner} {
				_ = stat(dir + "/node_modules/" + name)
			}
			module := p.file("node_modules/" + name)
			err := errors.Join(readFile(module+"/package.json", buf), stat(module+"/lib/index.js"))
			if err != nil {
				return 0, err
			}
		}
	}
	return watch.perMinute(), nil
}
