package harness

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// unclaimed is how long a root may be there before its lock is taken.
const unclaimed = time.Minute

// claim says that a root is in use, until the file is closed or the process ends.
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

// sweep ends and removes what runs left below dir that were killed, and says what that
// is: their mounts and daemons, and some gigabytes each, which in the end fill the disk
// under the servers of the next run.
func sweep(dir string) {
	left, _ := filepath.Glob(filepath.Join(dir, rootPrefix+"*"))
	for _, root := range left {
		info, err := os.Lstat(root)
		if err != nil || !info.IsDir() || time.Since(info.ModTime()) < unclaimed || !abandoned(root) {
			continue
		}
		found := sweepRoot(root)
		fmt.Fprintf(os.Stderr, "harness: a run that was killed left %s\n", strings.Join(append([]string{root}, found...), ", "))
	}
}

// sweepRoot removes a root that nobody uses. One in which something stays mounted
// stays: to remove it would be to remove what is mounted.
func sweepRoot(root string) (found []string) {
	for _, pid := range processesOf(root) {
		found = append(found, fmt.Sprintf("process %d %s", pid, commandLine(pid)))
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	for _, at := range mountsBelow(root) {
		found = append(found, "mount "+at)
		_ = syscall.Unmount(at, syscall.MNT_DETACH)
	}
	if len(mountsBelow(root)) == 0 {
		os.RemoveAll(root)
	}
	return found
}

// abandoned tells a root whose run has ended.
func abandoned(root string) bool {
	f, err := os.Open(lockOf(root))
	if err != nil {
		return os.IsNotExist(err)
	}
	defer f.Close()
	return lock(f) == nil
}
