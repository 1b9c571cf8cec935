package direct

import (
	"os"
	"runtime"
	"syscall"

	wsfs "github.com/wsmount/wsmount/fs"
	"golang.org/x/sys/unix"
)

// creds are the privileges of this process to act for other users.
type creds struct {
	uid, gid uint32
	become   bool // create files for any user
	admin    bool // CAP_SYS_ADMIN: offer descriptors to the kernel
	all      [2]unix.CapUserData
	create   [2]unix.CapUserData // while creating for another user
}

// createCaps are the capabilities kept while the file system user is another. The kernel has
// checked the caller (with groups that we cannot see) against the parent, so the parent's
// permissions must not stop us a second time; it has cleared set-group-id where it should, so
// that must not be cleared again. CAP_SYS_RESOURCE is not among them: quota and the reserve of
// a full disk bind the user.
const createCaps = 1<<unix.CAP_DAC_OVERRIDE | 1<<unix.CAP_FSETID | 1<<unix.CAP_MKNOD

func readCreds() creds {
	c := creds{uid: uint32(os.Geteuid()), gid: uint32(os.Getegid())}
	hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	if unix.Capget(&hdr, &c.all[0]) != nil {
		return c
	}
	has := func(cap uint) bool { return c.all[cap/32].Effective&(1<<(cap%32)) != 0 }
	c.admin = has(unix.CAP_SYS_ADMIN)
	c.become = c.uid == 0 && has(unix.CAP_SETUID) && has(unix.CAP_SETGID) && has(unix.CAP_DAC_OVERRIDE)
	c.create = c.all
	c.create[0].Effective &= createCaps
	c.create[1].Effective = 0
	return c
}

// as runs f, which creates a file, as the caller of op, if that is another user than this
// process and this process is privileged. File system ids belong to a thread, and no other
// goroutine uses the thread meanwhile. A chown afterwards would cost the same; this way quota,
// the parent's set-group-id and its default ACL follow the kernel's own rules, and the file is
// root's at no moment.
func (c *creds) as(op *wsfs.Op, f func() error) error {
	if !c.become || (op.UID == c.uid && op.GID == c.gid) || op.UID == ^uint32(0) {
		return f()
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer c.restore(op)
	setfs(unix.SYS_SETFSGID, op.GID)
	if op.UID != c.uid {
		setfs(unix.SYS_SETFSUID, op.UID) // takes the file capabilities away
		if err := setcaps(&c.create); err != nil {
			return err
		}
	}
	return f()
}

// restore gives the thread its own ids and capabilities back. That cannot fail for a process
// with real user id 0; if it does the process must exit, for the next request on this thread
// would run as another user.
func (c *creds) restore(op *wsfs.Op) {
	if op.UID != c.uid {
		setfs(unix.SYS_SETFSUID, c.uid)
		if setcaps(&c.all) != nil {
			os.Exit(70)
		}
	}
	setfs(unix.SYS_SETFSGID, c.gid)
	if setfs(unix.SYS_SETFSUID, ^uint32(0)) != c.uid || setfs(unix.SYS_SETFSGID, ^uint32(0)) != c.gid {
		os.Exit(70)
	}
}

// setfs returns the id that was in place.
func setfs(call uintptr, id uint32) uint32 {
	old, _, _ := syscall.RawSyscall(call, uintptr(id), 0, 0)
	return uint32(old)
}

// setcaps concerns the calling thread only.
func setcaps(d *[2]unix.CapUserData) error {
	hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	return unix.Capset(&hdr, &d[0])
}
