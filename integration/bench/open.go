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
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// openFiles files are held open at once, by as many processes as the limit of
// one needs. Fewer is no failure if the answer was EMFILE or ENFILE: then the
// figure is the limit of the daemon, or of the machine.
const openFiles = 100_000

// firstVariable tells a process where to begin.
const firstVariable = "BENCH_FIRST"

const openWorkload = "files open at once of 100 000"

func openMany(ctx context.Context, t *tree, w workload) (float64, error) {
	return t.overMany(ctx, openFiles/1000, func(many *tree) (float64, error) {
		return many.work(ctx, phaseRun, w)
	})
}

// openAll starts processes that open files and keep them, and returns how many
// were open at once.
func (p place) openAll() (float64, error) {
	opened := 0
	for opened < openFiles {
		c := exec.CommandContext(context.Background(), os.Args[0], workerCommand, phaseSetup, openWorkload, p.dir)
		c.Env = append(os.Environ(), fmt.Sprintf("%s=%d", firstVariable, opened))
		c.Stderr = os.Stderr
		release, err := c.StdinPipe()
		if err != nil {
			return 0, err
		}
		answer, err := c.StdoutPipe()
		if err != nil {
			return 0, err
		}
		if err := c.Start(); err != nil {
			return 0, err
		}
		defer func() { release.Close(); _ = c.Wait() }()
		var n int
		var refused bool
		line, err := bufio.NewReader(answer).ReadString('\n')
		if err == nil {
			_, err = fmt.Sscan(strings.TrimSpace(line), &n, &refused)
		}
		if err != nil {
			return 0, fmt.Errorf("after %d files: %w", opened, err)
		}
		if opened += n; refused {
			break
		}
	}
	return float64(opened), nil
}

// openSome opens files from firstVariable on, as many as this process may,
// says how many and whether that was somebody else's limit, and waits.
func (p place) openSome() error {
	var first int
	if _, err := fmt.Sscan(os.Getenv(firstVariable), &first); err != nil {
		return err
	}
	var own unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &own); err != nil {
		return err
	}
	count := min(openFiles-first, int(min(own.Cur, openFiles))-50)
	opened, err := p.openRange(first, first+count)
	refused := errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
	if err != nil && !refused {
		return err
	}
	fmt.Println(opened, refused)
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

func (p place) openRange(first, end int) (opened int, err error) {
	for i := first; i < end; i++ {
		path := filepath.Join(p.dir, fmt.Sprintf("dir-%04d", i/1000), smallName(i%1000))
		if _, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0); err != nil { // closed by the exit
			return opened, err
		}
		opened++
	}
	return opened, nil
}
