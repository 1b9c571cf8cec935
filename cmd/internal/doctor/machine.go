package doctor

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/cmd/internal/daemon"
	"github.com/wsmount/wsmount/cmd/internal/mountpoint"
	"github.com/wsmount/wsmount/cmd/internal/process"
)

// Limits that are enough for large trees; below them doctor names their effect.
const (
	enoughFiles   = 65536
	enoughWatches = 65536
)

// system is the machine as the checks see it; tests bring their own.
type system struct {
	root    string // before every path
	uid     int
	release string
	files   uint64
	helper  func() (string, error)
	hasName func(uid string) bool
}

func thisSystem() system {
	var u unix.Utsname
	unix.Uname(&u)
	return system{uid: os.Geteuid(), release: unix.ByteSliceToString(u.Release[:]), files: process.FileLimit(), helper: mountpoint.Helper, hasName: hasName}
}

// hasName reports whether a user has a name.
func hasName(uid string) bool {
	_, err := user.LookupId(uid)
	return err == nil || exec.Command("getent", "passwd", uid).Run() == nil // as the C library does, from a file mostly
}

// Machine checks the needs of every mount on this machine.
func Machine() []Check { return thisSystem().checks() }

func (s system) checks() []Check {
	out := []Check{s.device(), s.fusermount(), s.kernel(), s.passthrough(), s.allowOther(), s.openFiles(), s.watches(), s.instances(), s.namespaces(), clock()}
	return append(out, ok("providers", "can mount %s", strings.Join(daemon.MountableProviders(), ", ")))
}

func (s system) device() Check {
	name := s.root + "/dev/fuse"
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return problem("fuse", "load the module (`modprobe fuse`), or give the container the device /dev/fuse", "/dev/fuse is not there")
	case errors.Is(err, fs.ErrPermission):
		return problem("fuse", "make it readable and writable for everybody: `chmod 666 /dev/fuse`", "/dev/fuse cannot be opened: %v", errors.Unwrap(err))
	case err != nil:
		return problem("fuse", "load the module (`modprobe fuse`)", "/dev/fuse cannot be opened: %v", errors.Unwrap(err))
	}
	f.Close()
	return ok("fuse", "/dev/fuse can be opened")
}

func (s system) fusermount() Check {
	bin, err := s.helper()
	switch {
	case s.uid == 0:
		return ok("fusermount", "root mounts without it")
	case err != nil:
		return problem("fusermount", "install the package fuse3", "%v", err)
	}
	fi, err := os.Stat(bin)
	if err != nil || fi.Mode()&os.ModeSetuid == 0 {
		return problem("fusermount", "reinstall the package fuse3, or run `chmod u+s "+bin+"` as root", "%s is not set-user-id root", bin)
	}
	if uid := strconv.Itoa(s.uid); !s.hasName(uid) {
		return problem("fusermount", "give the user a line in /etc/passwd", "user %s has no name, and %s mounts for none such", uid, bin)
	}
	return ok("fusermount", "%s", bin)
}

// version reads the first two numbers of a kernel release.
func version(release string) (major, minor int) {
	if _, err := fmt.Sscanf(release, "%d.%d", &major, &minor); err != nil {
		return 0, 0
	}
	return major, minor
}

func (s system) atLeast(major, minor int) bool {
	haveMajor, haveMinor := version(s.release)
	return haveMajor > major || haveMajor == major && haveMinor >= minor
}

func (s system) kernel() Check {
	if !s.atLeast(5, 10) {
		return note("kernel", "use 5.10 or later, better 6.9 or later", "Linux %s is older than what wsmount is tested on", s.release)
	}
	return ok("kernel", "Linux %s", s.release)
}

func (s system) passthrough() Check {
	switch {
	case !s.atLeast(6, 9):
		return note("passthrough", "Linux 6.9 or later has it", "off: the kernel has none, so that files are read through the daemon")
	case s.uid != 0:
		return note("passthrough", "root has it; repeated reads come from the page cache anyway", "off: it needs root, so that first reads go through the daemon")
	}
	return ok("passthrough", "the kernel reads and writes local files itself")
}

func (s system) allowOther() Check {
	if s.uid == 0 {
		return ok("allow-other", "root may let other users in")
	}
	if mountpoint.AllowsOthers(s.uid, s.root+mountpoint.FuseConf) {
		return ok("allow-other", "allowed by %s", mountpoint.FuseConf)
	}
	return note("allow-other", "add the line user_allow_other to /etc/fuse.conf if other users are to come in", "--allow-other is not allowed")
}

func (s system) openFiles() Check {
	if s.files < enoughFiles {
		return note("files", "raise the hard limit of open files (limits.conf, LimitNOFILE=)", "at most about %d files can be open at once; then EMFILE", s.files)
	}
	return ok("files", "up to %d files can be open at once", s.files)
}

func (s system) number(path string) (uint64, error) {
	b, err := os.ReadFile(s.root + path)
	if err != nil {
		return 0, err
	}
	return strconv.ParseUint(strings.TrimSpace(string(b)), 10, 64)
}

func (s system) watches() Check {
	n, err := s.number("/proc/sys/fs/inotify/max_user_watches")
	if err != nil {
		return note("watches", "changes by others are seen within a second instead of at once", "inotify is not there: %v", err)
	}
	if n < enoughWatches {
		return note("watches", "raise it: `sysctl fs.inotify.max_user_watches=524288`", "at most %d directories are watched; in others changes are seen within a second", n)
	}
	return ok("watches", "up to %d directories are watched for changes by others", n)
}

// enoughInstances is the kernel's default; each mount of a local workspace takes one.
const enoughInstances = 128

func (s system) instances() Check {
	n, err := s.number("/proc/sys/fs/inotify/max_user_instances")
	switch {
	case err != nil:
		return note("instances", "changes by others are seen within a second instead of at once", "inotify is not there: %v", err)
	case n < enoughInstances:
		return note("instances", "raise it: `sysctl fs.inotify.max_user_instances=1024`", "at most %d local workspaces of one user are watched at once; in others changes are seen within a second", n)
	}
	return ok("instances", "up to %d local workspaces of one user are watched at once (fs.inotify.max_user_instances)", n)
}

func (s system) namespaces() Check {
	if n, err := s.number("/proc/sys/user/max_user_namespaces"); err != nil || n == 0 {
		return note("namespaces", "raise user.max_user_namespaces if sandboxes are to run", "user namespaces are off; mounting does not need them")
	}
	for _, switchOff := range []struct{ path, off string }{
		{"/proc/sys/kernel/unprivileged_userns_clone", "0"}, {"/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1"},
	} {
		b, err := os.ReadFile(s.root + switchOff.path)
		if err == nil && strings.TrimSpace(string(b)) == switchOff.off && s.uid != 0 {
			return note("namespaces", "allow them if sandboxes are to run", "user namespaces are restricted (%s); mounting does not need them", switchOff.path)
		}
	}
	return ok("namespaces", "user namespaces are available to sandboxes")
}

// timeError is adjtimex(2)'s TIME_ERROR: no service keeps the clock.
const timeError = 5

func clock() Check {
	var t unix.Timex
	state, err := unix.Adjtimex(&t)
	if err == nil && state == timeError {
		return note("clock", "run a time service (systemd-timesyncd, chrony) if files are shared with other machines", "the clock is not synchronised")
	}
	return ok("clock", "synchronised")
}
