// Command escaper tries to get out of a sandbox by system calls that no shell
// makes. Each of its verbs is one attempt: it prints "ESCAPED" and what it has got
// when that works, and in any case why it went no further.
//
//	escaper connect unix @name
//	escaper open /proc/sysrq-trigger
package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

func main() {
	if len(os.Args) < 2 || attempts[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "escaper: which attempt?")
		os.Exit(2)
	}
	got, err := attempts[os.Args[1]](os.Args[2:])
	if err == nil {
		fmt.Println("ESCAPED", got)
	} else {
		fmt.Println("held:", err)
	}
}

var attempts = map[string]func(args []string) (got string, err error){
	"connect":  func(a []string) (string, error) { return "to " + a[1], connect(a[0], a[1]) },
	"open":     func(a []string) (string, error) { return a[0], openForWriting(a[0]) },
	"process":  func(a []string) (string, error) { return "process " + a[0], reach(a[0]) },
	"terminal": func([]string) (string, error) { return "into the terminal", push("x") },
	"key":      func(a []string) (string, error) { return readKey(a[0]) },
	"memory":   func(a []string) (string, error) { return "memory " + a[0], attach(a[0]) },
	"device":   func(a []string) (string, error) { return "a device", unix.Mknod(a[0], unix.S_IFCHR|0o666, 1<<8|5) },
	"root":     func([]string) (string, error) { return "another root", unix.PivotRoot(".", ".") },
}

// connect goes to the directory of a socket first, whose path may be longer than
// an address can be.
func connect(network, address string) error {
	if filepath.IsAbs(address) {
		if err := os.Chdir(filepath.Dir(address)); err != nil {
			return err
		}
		address = filepath.Base(address)
	}
	d := net.Dialer{Timeout: time.Second}
	c, err := d.DialContext(context.Background(), network, address)
	if err != nil {
		return err
	}
	return c.Close()
}

// openForWriting opens what it would be dangerous to write, and does not.
func openForWriting(path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	return f.Close()
}

// reach finds a process by its number on the host. That it may not be traced is
// no comfort: it can be seen.
func reach(number string) error {
	pid, err := strconv.Atoi(number)
	if err != nil {
		return err
	}
	err = unix.PtraceSeize(pid)
	if errors.Is(err, unix.EPERM) {
		return nil
	}
	return err
}

// push puts a byte into the input of the terminal, for whoever reads there next.
func push(text string) error {
	for i := range len(text) {
		b := text[i : i+1]
		if err := unix.IoctlSetPointerInt(0, unix.TIOCSTI, int(b[0])); err != nil {
			return err
		}
	}
	return nil
}

// readKey finds a key in the session's keyring, by its description.
func readKey(description string) (string, error) {
	id, err := unix.KeyctlSearch(unix.KEY_SPEC_SESSION_KEYRING, "user", description, 0)
	if err != nil {
		return "", err
	}
	buf := make([]byte, 64)
	n, err := unix.KeyctlBuffer(unix.KEYCTL_READ, id, buf, 0)
	if err != nil {
		return "", err
	}
	return string(buf[:n]), nil
}

// attach maps a System V segment of the host.
func attach(number string) error {
	id, err := strconv.Atoi(number)
	if err != nil {
		return err
	}
	b, err := unix.SysvShmAttach(id, 0, 0)
	if err != nil {
		return err
	}
	return unix.SysvShmDetach(b)
}
