package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// listAll is `ls -lR`, in seconds.
func (p place) listAll() (float64, error) {
	watch := startWatch()
	n, err := walkTree(p.file(""))
	took := watch.seconds()
	if want := 1 + bucketDirs + bucketFiles; err == nil && n != want {
		err = fmt.Errorf("%d names listed, want %d", n, want)
	}
	return took, err
}

// walkMany is find(1) through many directories, in seconds.
func (p place) walkMany() (float64, error) {
	watch := startWatch()
	n, err := walkNames(p.file(""))
	took := watch.seconds()
	if want := 1 + manyDirs + manyFiles; err == nil && n != want {
		err = fmt.Errorf("%d names found, want %d", n, want)
	}
	return took, err
}

func (p place) walkManyFirst() error {
	_, err := p.walkMany()
	return err
}

// grepAll is `grep -r` for what no small file has, in seconds.
func (p place) grepAll() (float64, error) {
	watch := startWatch()
	out, err := exec.CommandContext(context.Background(), "grep", "-r", "-F", "no file has this", p.file("")).CombinedOutput()
	took := watch.seconds()
	var end *exec.ExitError
	switch {
	case errors.As(err, &end) && end.ExitCode() == 1 && len(out) == 0: // nothing was found
		return took, nil
	case err == nil:
		err = errors.New("something was found")
	}
	return took, fmt.Errorf("grep: %w: %s", err, out)
}

// grepAllFirst brings every small file.
func (p place) grepAllFirst() error {
	_, err := p.grepAll()
	return err
}

// readSmall reads every small file once, nobody having listed them.
func (p place) readSmall() (float64, error) {
	watch := startWatch()
	err := inParallel(bucketFiles, bucketThreads, func(i int) error { return readExactly(p.file(bucketName(i)), smallSize) })
	return watch.rate(bucketFiles), err
}

// readExactly reads a file in blocks, and finds so many bytes.
func readExactly(path string, size int64) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	buf := make([]byte, min(size+1, block))
	var n int64
	for {
		m, err := f.Read(buf)
		n += int64(m)
		switch {
		case errors.Is(err, io.EOF) && n == size:
			return nil
		case errors.Is(err, io.EOF):
			return fmt.Errorf("%s: %d bytes read, want %d", path, n, size)
		case err != nil:
			return err
		}
	}
}

func (p place) readLarge() (float64, error) {
	blocks, err := largeBlocks()
	if err != nil {
		return 0, err
	}
	watch := startWatch()
	err = readExactly(p.file(largeName), int64(blocks)*block)
	return watch.rate(blocks), err
}

func (p place) readLargeFirst() error {
	_, err := p.readLarge()
	return err
}

// warmTime is well within what stores are believed for.
const warmTime = 500 * time.Millisecond

func (p place) readWarm() (float64, error) {
	buf := make([]byte, smallSize+1)
	return p.warm("", func(path string) error { return readFile(path, buf) })
}

func (p place) missWarm() (float64, error) {
	return p.warm(".missing", func(path string) error {
		if err := stat(path); !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("a file that does not exist: %w", err)
		}
		return nil
	})
}

// warm does something to the files of one directory until all of it is known,
// and then takes the time of it until that would not be believed any more.
func (p place) warm(suffix string, do func(path string) error) (float64, error) {
	var paths []string
	for i := 0; i < bucketFiles; i += bucketDirs {
		paths = append(paths, p.file(bucketName(i)+suffix))
	}
	done := 0
	pass := func() error {
		for _, path := range paths {
			if err := do(path); err != nil {
				return err
			}
			done++
		}
		return nil
	}
	if err := errors.Join(pass(), pass()); err != nil {
		return 0, err
	}
	done = 0
	watch := startWatch()
	for end := time.Now().Add(warmTime); time.Now().Before(end); {
		if err := pass(); err != nil {
			return 0, err
		}
	}
	return watch.rate(done), nil
}

// writeLargeFile counts until the file is closed.
func (p place) writeLargeFile() (float64, error) {
	blocks, err := largeBlocks()
	if err != nil {
		return 0, err
	}
	buf := make([]byte, block)
	watch := startWatch()
	f, err := os.Create(p.file(largeName))
	if err != nil {
		return 0, err
	}
	for i := 0; i < blocks && err == nil; i++ {
		largeBlock(buf, i)
		_, err = f.Write(buf)
	}
	err = errors.Join(err, f.Sync(), f.Close())
	return watch.rate(blocks), err
}

// createSmall makes files in one directory, with so many threads.
func createSmall(threads int) func(place) (float64, error) {
	return func(p place) (float64, error) {
		contents := make([][]byte, bucketFiles)
		for i := range contents {
			contents[i] = smallContent(i)
		}
		watch := startWatch()
		err := inParallel(bucketFiles, threads, func(i int) error { return os.WriteFile(p.file(smallName(i)), contents[i], 0o644) })
		return watch.rate(bucketFiles), err
	}
}

// The repository of gitSmallSetup.
const (
	cloneCommits = 10
	cloneFiles   = 25 // of each commit
)

func (p place) gitSmallSetup() error {
	return errors.Join(p.fresh(), gitRepository(p.outside(), cloneCommits, cloneFiles))
}

func (p place) gitCloneTime() (float64, error) {
	watch := startWatch()
	_, err := p.gitClone()
	return watch.seconds(), err
}

const (
	sqliteName    = "base.db"
	sqliteCommits = 50
)

// sqliteCommits is one run of sqlite3 that commits each row by itself.
func (p place) sqliteCommits() (float64, error) {
	c := exec.CommandContext(context.Background(), "sqlite3", "-batch", p.file(sqliteName))
	c.Dir = filepath.Dir(p.dir)
	c.Stdin = strings.NewReader("create table t(a);\n" + strings.Repeat("insert into t values(randomblob(100));\n", sqliteCommits))
	watch := startWatch()
	out, err := c.CombinedOutput()
	if err != nil || len(out) > 0 {
		err = fmt.Errorf("sqlite3: %w: %s", err, out)
	}
	return watch.seconds(), err
}
