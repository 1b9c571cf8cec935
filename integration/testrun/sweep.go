package testrun

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// unclaimed is how long a run's directory may be there before its lock is taken.
const unclaimed = time.Minute

// claim says that a run's directory is in use, until the file is closed or the process
// ends.
func claim(dir string) (*os.File, error) {
	f, err := os.OpenFile(lockOf(dir), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := lock(f); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func lockOf(dir string) string { return filepath.Join(dir, "in-use") }

func lock(f *os.File) error {
	return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
}

// sweep ends and removes what runs left below base that were killed together with their
// watchers, and says what that is: their mounts and daemons, and some gigabytes each,
// which in the end fill the disk under the servers of the next run.
func sweep(base string) {
	left, _ := filepath.Glob(filepath.Join(base, prefix+"*"))
	for _, dir := range left {
		info, err := os.Lstat(dir)
		if err == nil && info.IsDir() && time.Since(info.ModTime()) >= unclaimed && abandoned(dir) {
			report(dir, sweepRun(dir))
		}
	}
}

// sweepRun removes the directory of a run that is no more. One in which something stays
// mounted stays: to remove it would be to remove what is mounted.
func sweepRun(dir string) (found []string) {
	for _, pid := range ProcessesOf(dir) {
		found = append(found, fmt.Sprintf("process %d %s", pid, CommandLine(pid)))
		kill(pid)
	}
	for _, at := range MountsBelow(dir) {
		found = append(found, "mount "+at)
		_ = syscall.Unmount(at, syscall.MNT_DETACH)
	}
	if len(MountsBelow(dir)) == 0 {
		os.RemoveAll(dir)
	}
	return found
}

// kill ends a process, and waits for that.
func kill(pid int) {
	await(pid, func(fd int) { _ = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0) })
}

// await waits for the end of a process, for a minute at most.
func await(pid int, first func(fd int)) (ended bool) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return true
	}
	defer unix.Close(fd)
	first(fd)
	for end := time.Now().Add(time.Minute); ; {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(time.Until(end).Milliseconds()))
		if err != unix.EINTR || time.Now().After(end) {
			return n > 0 // in vain if it hangs in the kernel
		}
	}
}

// AwaitProcesses waits for the end of other processes that were started for a directory, or
// have a file in it open, and says which of them have not ended within a minute.
func AwaitProcesses(dir string) (left []string) {
	for _, pid := range append(ProcessesOf(dir), openersBelow(dir)...) {
		if !await(pid, func(int) {}) {
			left = append(left, fmt.Sprintf("process %d %s", pid, CommandLine(pid)))
		}
	}
	return left
}

// abandoned tells a directory whose run has ended.
func abandoned(dir string) bool {
	f, err := os.Open(lockOf(dir))
	if err != nil {
		return os.IsNotExist(err)
	}
	defer f.Close()
	return lock(f) == nil
}
