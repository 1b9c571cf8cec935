package sandbox

import (
	"fmt"
	"math"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/cmd/internal/exit"
)

// check refuses limits that this user cannot have.
func (l Limits) check() error {
	if l.Processes > 0 && os.Geteuid() == 0 {
		return exit.New(exit.Failed, "the number of processes of root cannot be limited: the kernel does not count them (RLIMIT_NPROC)").
			Hint("run it as another user, or without this limit")
	}
	return nil
}

// script is run by a shell before it becomes the command: limits that a
// process keeps when it becomes another, and its children have too. Where the
// host has a tighter one already, that stays.
func (l Limits) script() string {
	var lines []string
	set := func(resource int, flags string, n int64) {
		var now unix.Rlimit
		if n == 0 || unix.Getrlimit(resource, &now) == nil && now.Max < uint64(n) {
			return
		}
		unit := int64(1)
		if resource == unix.RLIMIT_AS {
			unit = 1024
		}
		tries := []string{}
		for _, flag := range strings.Fields(flags) {
			tries = append(tries, fmt.Sprintf("ulimit %s %d 2>/dev/null", flag, max(1, n/unit)))
		}
		lines = append(lines, "{ "+strings.Join(tries, " || ")+" || { echo 'wsmount: a limit cannot be set' >&2; exit 125; }; }")
	}
	set(unix.RLIMIT_AS, "-v", l.Memory)
	set(unix.RLIMIT_CPU, "-t", int64(math.Ceil(l.CPU.Seconds())))
	set(unix.RLIMIT_NPROC, "-u -p", int64(l.Processes)) // bash, and dash
	return strings.Join(append(lines, `exec "$@"`), "; ")
}

// PerProcess names the limits that hold for each process and not for all of a
// command together, as rlimits do.
func (l Limits) PerProcess() (names []string) {
	if l.Memory > 0 {
		names = append(names, fmt.Sprintf("memory, %d MiB", l.Memory>>20))
	}
	if l.CPU > 0 {
		names = append(names, fmt.Sprintf("processor time, %s", time.Duration(math.Ceil(l.CPU.Seconds()))*time.Second))
	}
	return names
}
