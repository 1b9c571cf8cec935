package testrun

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/moby/sys/mountinfo"
)

// MountsBelow lists the mount points below a directory, the innermost first.
func MountsBelow(dir string) []string {
	below, err := mountinfo.GetMounts(func(m *mountinfo.Info) (skip, stop bool) {
		return !strings.HasPrefix(m.Mountpoint, dir+"/"), false
	})
	if err != nil {
		return []string{err.Error()}
	}
	var found []string
	for _, m := range slices.Backward(below) {
		found = append(found, m.Mountpoint)
	}
	return found
}

// ProcessesOf lists the processes that the run in a directory has started, with their
// children, but not this process and the run's watcher: the directory's name stands in
// what they run, were told, or have in their environment.
func ProcessesOf(dir string) (pids []int) {
	all, _ := filepath.Glob("/proc/[0-9]*")
	for _, proc := range all {
		pid, err := strconv.Atoi(filepath.Base(proc))
		if err != nil || pid == os.Getpid() {
			continue
		}
		exe, _ := os.Readlink(proc + "/exe") // of a process that has ended meanwhile there is nothing
		environment, _ := os.ReadFile(proc + "/environ")
		inIt := strings.HasPrefix(exe, dir+"/") || strings.Contains(CommandLine(pid)+string(environment), dir+"/")
		if inIt && !strings.Contains(string(environment), watchEnv+"="+dir) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// openersBelow lists the other processes that have a file below a directory open. A daemon
// shows nobody its environment, so this is how it is found.
func openersBelow(dir string) (pids []int) {
	all, _ := filepath.Glob("/proc/[0-9]*")
	for _, proc := range all {
		pid, err := strconv.Atoi(filepath.Base(proc))
		if err != nil || pid == os.Getpid() {
			continue
		}
		files, _ := filepath.Glob(proc + "/fd/*")
		if slices.ContainsFunc(files, func(fd string) bool {
			to, _ := os.Readlink(fd)
			return strings.HasPrefix(to, dir+"/")
		}) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// Alive reports whether a process runs, or one of its threads has yet to end: they end one
// by one, and what it has open, such as the mount that it serves, ends with the last. One
// that has ended, and was not waited for, does not live.
func Alive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	threads, _ := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid)) // after it: a thread that has ended does not come back
	_, state, found := bytes.Cut(stat, []byte(") "))
	return err == nil && found && (state[0] != 'Z' || len(threads) > 1)
}

// CommandLine is what a process was started with; empty of one that may not be asked.
func CommandLine(pid int) string {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return strings.ReplaceAll(strings.TrimRight(string(b), "\x00"), "\x00", " ")
}

// Stopped reports whether every thread of a process is stopped. They are one by one, after
// the signal, and until then the process answers.
func Stopped(pid int) bool {
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	for _, stat := range threads {
		b, err := os.ReadFile(stat)
		if _, state, found := strings.Cut(string(b), ") "); err == nil && found && state[0] != 'T' {
			return false
		}
	}
	return len(threads) > 0
}
