package crasher

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/integration/assert"
)

// env makes the test binary a client.
const env = "WSMOUNT_TEST_CRASHER"

// IsClient says that this process was started by Start.
func IsClient() bool { return os.Getenv(env) != "" }

// Main is a client's main function.
func Main() {
	var o Options
	err := json.Unmarshal([]byte(os.Getenv(env)), &o)
	if err == nil {
		debug.SetPanicOnFault(true) // a mapping of a dead file system faults
		err = work(o)
	}
	if err != nil {
		fmt.Println("failed", strings.ReplaceAll(err.Error(), "\n", " "))
		os.Exit(1)
	}
}

// An opened file may be mapped as well.
type opened struct {
	fd     int
	mapped []byte
}

type client struct {
	o     Options
	log   *os.File
	in    *bufio.Reader
	c     chooser
	files map[int]*opened
	old   []*opened // of dead mounts
}

func work(o Options) error {
	log, err := os.OpenFile(o.Log, os.O_WRONLY|os.O_CREATE|os.O_APPEND|unix.O_DSYNC, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	m := NewModel(o.Files)
	c := &client{o: o, log: log, in: bufio.NewReader(os.Stdin), files: map[int]*opened{},
		c: chooser{Rand: rand.New(rand.NewPCG(o.Seed, 2)), m: m}}
	for n := 0; ; n++ {
		if o.Stop > 0 && n == o.Stop {
			_, _ = c.in.ReadString('\n') // until the test is over
			return nil
		}
		op := c.c.next()
		line, err := json.Marshal(op)
		if err != nil {
			return err
		}
		if err := c.note(string(line)); err != nil {
			return err
		}
		switch err := c.do(op); {
		case err == nil:
			m.Apply(op)
			if err := c.note(acked); err != nil {
				return err
			}
		case o.Power || !dead(err) || c.alive():
			return fmt.Errorf("%v: %w", op, err)
		default:
			if done, err := c.survive(op); done || err != nil {
				return err
			}
		}
	}
}

// Lines of the log behind an operation. An operation that is the last line, or
// has lost behind it, failed for good.
const (
	acked  = "ok"
	done   = "done" // failed, and has happened
	undone = "undone"
)

func (c *client) note(line string) error {
	_, err := c.log.WriteString(line + "\n")
	return err
}

// dead says that an error is the file system's death.
func dead(err error) bool {
	return errors.Is(err, unix.ENOTCONN) || errors.Is(err, unix.ECONNABORTED) || errors.Is(err, unix.EIO) || errors.Is(err, errFault)
}

// alive says whether the file system still answers. It may take a while to die.
func (c *client) alive() bool {
	var s unix.Statfs_t
	return !assert.Await(func() bool { return unix.Statfs(c.o.Dir, &s) != nil })
}

// survive waits for the new mount and then goes on. end: there will be none.
func (c *client) survive(op Op) (end bool, err error) {
	fmt.Println("dead")
	line, _ := c.in.ReadString('\n') // an end without a line is no answer
	switch line {
	case done + "\n":
		c.c.m.Apply(op)
	case undone + "\n":
	default:
		return true, nil // the test is over
	}
	if err := c.note(strings.TrimSpace(line)); err != nil {
		return true, err
	}
	c.c.m.Apply(Op{Do: "dead"})
	c.old = slices.AppendSeq(c.old, maps.Values(c.files))
	clear(c.files)
	for _, f := range c.old {
		if _, err := unix.Pwrite(f.fd, []byte("stale"), 0); err == nil {
			return true, errors.New("a file of the dead mount took a write")
		}
		if f.mapped != nil {
			_ = store(f.mapped, 0, []byte("stale")) // may fault, must not arrive
		}
	}
	if len(c.old) > 3*maxOpen {
		for _, f := range c.old {
			f.close()
		}
		c.old = nil
	}
	return false, nil
}

func (f *opened) close() error {
	if f.mapped != nil {
		_ = unix.Munmap(f.mapped)
	}
	return unix.Close(f.fd)
}

func (c *client) path(p string) string { return filepath.Join(c.o.Dir, p) }

// do does an operation.
func (c *client) do(o Op) error {
	switch a := c.path(o.A); o.Do {
	case "create":
		return c.open(o, unix.O_CREAT|unix.O_EXCL)
	case "open":
		return c.open(o, 0)
	case "opentrunc":
		return c.open(o, unix.O_TRUNC)
	case "write":
		n, err := unix.Pwrite(c.files[o.H].fd, o.Bytes(), o.Off)
		if err == nil && n != o.Len {
			err = fmt.Errorf("wrote %d of %d bytes", n, o.Len)
		}
		return err
	case "store":
		return c.store(o)
	case "fsync":
		return unix.Fsync(c.files[o.H].fd)
	case "close":
		err := c.files[o.H].close()
		delete(c.files, o.H) // closed, whatever it says
		return err
	case "truncate":
		return unix.Truncate(a, int64(o.Len))
	case "chmod":
		return unix.Chmod(a, o.Mode)
	case "mkdir":
		return unix.Mkdir(a, 0o755)
	case "symlink":
		return unix.Symlink(o.B, a)
	case "unlink":
		return unix.Unlink(a)
	case "rmdir":
		return unix.Rmdir(a)
	case "link":
		return unix.Link(a, c.path(o.B))
	case "rename":
		return unix.Rename(a, c.path(o.B))
	case "exchange":
		return unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, c.path(o.B), unix.RENAME_EXCHANGE)
	}
	return fmt.Errorf("no such operation")
}

func (c *client) open(o Op, flags int) error {
	fd, err := unix.Open(c.path(o.A), unix.O_RDWR|unix.O_CLOEXEC|flags, 0o644)
	if err == nil {
		c.files[o.H] = &opened{fd: fd}
	}
	return err
}

// store writes through a mapping, which stays.
func (c *client) store(o Op) (err error) {
	f := c.files[o.H]
	if f.mapped == nil {
		if f.mapped, err = unix.Mmap(f.fd, 0, maxSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED); err != nil {
			return err
		}
	}
	return store(f.mapped, int(o.Off), o.Bytes())
}

var errFault = errors.New("a mapping faults")

func store(mapped []byte, off int, b []byte) (err error) {
	defer func() {
		if recover() != nil {
			err = errFault
		}
	}()
	copy(mapped[off:], b)
	return unix.Msync(mapped[off/page*page:off/page*page+page], unix.MS_SYNC)
}
