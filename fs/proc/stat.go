// Package proc reads the state of processes and threads from Linux's /proc.
package proc

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"syscall"
)

// Stat is the part of proc_pid_stat(5) about the life of a process or thread.
type Stat struct {
	State   byte   // 'R', 'S', 'Z', ...
	Flags   uint64 // PF_* of include/linux/sched.h
	Started uint64 // clock ticks since boot
	Pending uint64 // signals pending for it, as a set
}

// pfForkNoExec is PF_FORKNOEXEC.
const pfForkNoExec = 0x40

// pfExiting is PF_EXITING: it is ending, and releases its resources.
const pfExiting = 0x4

// Read reads the file stat in a directory of /proc. A process that is gone is an error.
func Read(dir string) (Stat, error) {
	text, err := os.ReadFile(dir + "/stat")
	if err != nil {
		return Stat{}, err
	}
	// The command's name, in parentheses, may hold anything.
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	if len(fields) < 29 {
		return Stat{}, fmt.Errorf("%s/stat: %d fields behind the name", dir, len(fields))
	}
	number := func(i int) uint64 {
		n, _ := strconv.ParseUint(string(fields[i]), 10, 64) // the others are signed
		return n
	}
	return Stat{State: fields[0][0], Flags: number(6), Started: number(19), Pending: number(28)}, nil
}

// Dead reports whether only its number is left, for its parent to collect.
func (s Stat) Dead() bool { return s.State == 'Z' || s.State == 'X' || s.State == 'x' }

// Stopped reports whether a signal has stopped it, so that it does nothing until another signal
// continues it.
func (s Stat) Stopped() bool { return s.State == 'T' }

// Exiting reports whether it is ending.
func (s Stat) Exiting() bool { return s.Flags&pfExiting != 0 }

// Forked reports whether it has executed no program since it was forked: it has its parent's
// files open.
func (s Stat) Forked() bool { return s.Flags&pfForkNoExec != 0 }

// Killed reports whether a SIGKILL is pending for it: it had no processor since.
func (s Stat) Killed() bool { return s.Pending&(1<<(syscall.SIGKILL-1)) != 0 }
