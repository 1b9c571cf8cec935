package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

const (
	smallFiles = 3000 // in one directory, when it is measured
	treeDirs   = 200  // of treeFiles each
	treeFiles  = 200
)

func nameWorkloads() []workload {
	return []workload{
		{name: "create, write, close 4 KiB", unit: "files/s", bar: bar{loopback: 1.2}, copyBar: &bar{disk: 0.6}, probe: "probe", probeWrites: true,
			setup: place.emptyWithProbe, run: place.create},
		{name: "stat, hot", unit: "stats/s", bar: bar{disk: 0.5}, copyBar: &bar{disk: 0.5}, setup: place.small, run: place.statHot},
		{name: "stat after read", unit: "files/s", copyBar: &bar{}, setup: place.small, run: place.statAfterRead},
		{name: "repeated misses", unit: "stats/s", bar: bar{disk: 0.5}, copyBar: &bar{disk: 0.5}, setup: place.small, run: place.misses},
		{name: "list a tree with stat, cold", unit: "names/s", bar: bar{loopback: 1.2}, copyBar: &bar{}, between: remount,
			setup: place.deep, run: place.walk},
		{name: "rename", unit: "files/s", copyBar: &bar{}, setup: place.small, run: place.rename},
		{name: "unlink", unit: "files/s", copyBar: &bar{}, setup: place.smallAnew, run: place.unlink},
	}
}

func (p place) small() error {
	if _, err := os.Stat(p.file(smallName(p.files - 1))); err == nil {
		return nil
	}
	return p.smallAnew()
}

func (p place) smallAnew() error {
	if err := p.fresh(); err != nil {
		return err
	}
	_, err := p.create()
	return err
}

func (p place) emptyWithProbe() error {
	return errors.Join(p.fresh(), os.WriteFile(p.file("probe"), []byte("probe"), 0o644))
}

func smallName(i int) string { return fmt.Sprintf("file-%05d", i) }

func (p place) create() (float64, error) {
	data := make([]byte, 4096)
	watch := startWatch()
	for i := range p.files {
		if err := os.WriteFile(p.file(smallName(i)), data, 0o644); err != nil {
			return 0, err
		}
	}
	return watch.rate(p.files), nil
}

// each does something to the small files, so often, and returns files a second.
func (p place) each(times int, do func(path string) error) (float64, error) {
	paths := make([]string, p.files)
	for i := range paths {
		paths[i] = p.file(smallName(i))
	}
	watch := startWatch()
	for range times {
		for _, path := range paths {
			if err := do(path); err != nil {
				return 0, err
			}
		}
	}
	return watch.rate(times * p.files), nil
}

func stat(path string) error {
	_, err := os.Lstat(path)
	return err
}

func (p place) statHot() (float64, error) {
	if _, err := p.each(1, stat); err != nil {
		return 0, err
	}
	return p.each(40, stat)
}

func (p place) statAfterRead() (float64, error) {
	buf := make([]byte, 4096)
	return p.each(2, func(path string) error { return errors.Join(readFile(path, buf), stat(path)) })
}

func (p place) misses() (float64, error) {
	miss := func(path string) error {
		if err := stat(path + ".missing"); !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("a file that does not exist: %w", err)
		}
		return nil
	}
	if _, err := p.each(1, miss); err != nil {
		return 0, err
	}
	return p.each(40, miss)
}

// rename gives every file another name, and its own again.
func (p place) rename() (float64, error) {
	done, err := p.each(1, func(path string) error { return os.Rename(path, path+".new") })
	if err != nil {
		return 0, err
	}
	_, err = p.each(1, func(path string) error { return os.Rename(path+".new", path) })
	return done, err
}

func (p place) unlink() (float64, error) { return p.each(1, os.Remove) }

// deep makes a tree of treeDirs times treeFiles, unless it exists.
func (p place) deep() error {
	if _, err := os.Stat(p.file("complete")); err == nil {
		return nil
	}
	if err := errors.Join(p.fresh(), makeTree(p.file(""), treeDirs, treeFiles)); err != nil {
		return err
	}
	return os.WriteFile(p.file("complete"), nil, 0o644)
}

func makeTree(root string, dirs, files int) error {
	for d := range dirs {
		dir := filepath.Join(root, fmt.Sprintf("dir-%04d", d))
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		for i := range files {
			f, err := os.Create(filepath.Join(dir, smallName(i)))
			if err != nil {
				return err
			}
			f.Close()
		}
	}
	return nil
}

// walk lists every directory and asks for the attributes of every name, as
// `ls -lR` does.
func (p place) walk() (float64, error) {
	watch := startWatch()
	n, err := walkTree(p.file(""))
	return watch.rate(n), err
}

// walkNames finds what is below a directory, and asks for nothing but names.
func walkNames(root string) (names int, err error) {
	err = filepath.WalkDir(root, func(_ string, _ fs.DirEntry, err error) error {
		names++
		return err
	})
	return names, err
}

func walkTree(root string) (names int, err error) {
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		names++
		_, err = d.Info()
		return err
	})
	return names, err
}
