// Package process makes this process fit for serving others as a daemon: its limits,
// its visibility to others, and the environment that it keeps of the process that started it.
//
//	err := process.Harden()
//	lookup := process.Environment()    // for callers with a grant of the host
//	process.DropEnvironment("/mnt/ws") // before any request is served
package process

import (
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// gcPercent is how much garbage the collector lets gather. The growing part of a
// mount is tables of inodes, which live long, so that the default of 100 keeps
// twice the memory needed. With 200 000 files listed the process held 58 MB at 100,
// 48 at 50 and 40 at 25, and a cold listing cost its user time 2.8, 3.6 and
// 4.2 s. There is no memory limit: below the need of the tables, it would make
// the collector run without end. A user who sets $GOGC knows better.
const gcPercent = 50

// Harden makes the process fit for serving others: its memory, environment and
// descriptors are hidden from others (PR_SET_DUMPABLE, prctl(2)), its umask does not
// touch the modes that clients ask for, and it may hold as many files open as
// the machine allows.
func Harden() error {
	unix.Umask(0)
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	raiseFileLimit()
	// A daemon that was started through /proc/self/exe is called "exe" in ps.
	_ = os.WriteFile("/proc/self/comm", []byte("wsmount"), 0)
	return unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
}

// Environment is the environment as it is now, also for lookups after
// [DropEnvironment]: a daemon may need variables of its host much later.
func Environment() (lookup func(name string) (value string, ok bool)) {
	all := map[string]string{}
	for _, kv := range os.Environ() {
		name, value, _ := strings.Cut(kv, "=")
		all[name] = value
	}
	return func(name string) (string, bool) {
		value, ok := all[name]
		return value, ok
	}
}

// DropEnvironment forgets every variable, for this process and for its children. Only
// the way to systemd stays, and PATH for fusermount3, without relative directories and
// without those in the mount, where a client could put a program.
func DropEnvironment(mountpoint string) {
	var path []string
	notify := os.Getenv("NOTIFY_SOCKET")
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		if filepath.IsAbs(dir) && !strings.HasPrefix(filepath.Clean(dir)+"/", mountpoint+"/") {
			path = append(path, dir)
		}
	}
	os.Clearenv()
	os.Setenv("PATH", strings.Join(path, string(filepath.ListSeparator)))
	if notify != "" {
		os.Setenv("NOTIFY_SOCKET", notify)
	}
}

// raiseFileLimit lifts RLIMIT_NOFILE to its hard limit and, for root, to the
// kernel's (fs.nr_open). A limit that cannot be lifted stays.
func raiseFileLimit() {
	var l unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &l) != nil {
		return
	}
	if most, err := readNumber("/proc/sys/fs/nr_open"); err == nil && most > l.Max {
		if unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: most, Max: most}) == nil {
			return
		}
	}
	l.Cur = l.Max
	_ = unix.Setrlimit(unix.RLIMIT_NOFILE, &l) // the limit stays; FileLimit returns it
}

// FileLimit raises the limit of open files as far as a mount would, and returns
// it: the system does not always give as much as the kernel's own limit promises.
func FileLimit() uint64 {
	raiseFileLimit()
	var l unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &l) != nil {
		return 0
	}
	return l.Cur
}

func readNumber(path string) (uint64, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	return strconv.ParseUint(strings.TrimSpace(string(b)), 10, 64)
}
