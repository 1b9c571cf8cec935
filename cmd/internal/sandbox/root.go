package sandbox

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// systemLinks are directories of programs and libraries beside /usr, which on
// most hosts are links into it.
var systemLinks = []string{"/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"}

// etcFiles are the files of the host's /etc that programs need and that are the
// same for every user.
var etcFiles = []string{"/etc/ld.so.cache", "/etc/alternatives", "/etc/localtime", "/etc/ssl/certs", "/etc/ca-certificates", "/etc/mime.types"}

// shownDirs are the directories of the host that a sandbox shows.
func shownDirs() []string {
	dirs := []string{"/usr"}
	for _, dir := range systemLinks {
		if info, err := os.Lstat(dir); err == nil && info.IsDir() {
			dirs = append(dirs, dir)
		}
	}
	return append(dirs, etcFiles...)
}

// tempSize bounds the files of a command in its /tmp and /dev/shm, which are
// memory, without a limit of their own.
const tempSize = 1 << 30

// arguments are those of bwrap, without the command. Files that it reads are
// entered in f. The order matters: later arguments cover earlier ones, and
// the root is made read-only last.
func (s *Spec) arguments(f *files) ([]string, error) {
	args := []string{
		"--unshare-user", "--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup",
		"--disable-userns",  // no namespace in which a command has capabilities
		"--cap-drop", "ALL", // bwrap sets no_new_privs by itself
		"--new-session",         // a terminal of another session takes no TIOCSTI
		"--die-with-parent",     //
		"--hostname", "sandbox", //
		"--uid", strconv.Itoa(os.Getuid()), "--gid", strconv.Itoa(os.Getgid()),
		"--ro-bind", "/usr", "/usr",
	}
	for _, dir := range systemLinks {
		if target, err := os.Readlink(dir); err == nil {
			args = append(args, "--symlink", target, dir)
		} else if _, err := os.Lstat(dir); err == nil {
			args = append(args, "--ro-bind", dir, dir)
		}
	}
	args = append(args, "--perms", "0755", "--dir", "/etc")
	for _, file := range etcFiles {
		args = append(args, "--ro-bind-try", file, file)
	}
	// A command of root owns the kernel's settings in /proc, and would need no
	// capability to change those that are not of a namespace.
	args = append(args, "--proc", "/proc", "--remount-ro", "/proc", "--dev", "/dev",
		"--size", strconv.Itoa(tempSize), "--perms", "1777", "--tmpfs", "/dev/shm",
		"--size", strconv.Itoa(tempSize), "--perms", "1777", "--tmpfs", "/tmp")
	for _, file := range etcTexts() {
		n, err := f.content(file[0], []byte(file[1]))
		if err != nil {
			return nil, err
		}
		args = append(args, "--perms", "0444", "--ro-bind-data", n, file[0])
	}
	for _, m := range s.Mounts {
		how := "--bind-fd"
		if m.ReadOnly {
			how = "--ro-bind-fd"
		}
		args = append(args, "--dir", m.At, how, f.add(m.Dir), m.At)
	}
	filter, err := f.content("seccomp", keyFilter())
	if err != nil {
		return nil, err
	}
	args = append(args, "--remount-ro", "/", "--seccomp", filter, "--chdir", s.workDir(), "--clearenv")
	return append(args, s.environment()...), nil
}

func (s *Spec) workDir() string {
	switch {
	case s.Dir != "":
		return s.Dir
	case len(s.Mounts) > 0:
		return s.Mounts[0].At
	}
	return "/tmp"
}

func (s *Spec) environment() (args []string) {
	for _, v := range append([][2]string{{"PATH", "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"}, {"HOME", "/tmp"}, {"LANG", "C.UTF-8"}}, s.Env...) {
		args = append(args, "--setenv", v[0], v[1])
	}
	return args
}

// etcTexts are files of /etc that a host has of its own, and a sandbox gets
// without their facts about the host.
func etcTexts() [][2]string {
	uid, gid := os.Getuid(), os.Getgid()
	return [][2]string{
		{"/etc/passwd", fmt.Sprintf("agent:x:%d:%d:agent:/tmp:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n", uid, gid)},
		{"/etc/group", fmt.Sprintf("agent:x:%d:\nnogroup:x:65534:\n", gid)},
		{"/etc/hosts", "127.0.0.1 localhost sandbox\n::1 localhost\n"},
		{"/etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files\n"},
	}
}

// files are the descriptors that bwrap inherits beside its standard ones.
type files struct{ list []*os.File }

const firstFile = 3

// add enters a file, and returns the number of its descriptor in bwrap.
func (f *files) add(file *os.File) string {
	f.list = append(f.list, file)
	return strconv.Itoa(firstFile + len(f.list) - 1)
}

// content enters a file in memory with some content.
func (f *files) content(name string, b []byte) (string, error) {
	fd, err := unix.MemfdCreate(strings.TrimPrefix(name, "/"), unix.MFD_CLOEXEC)
	if err != nil {
		return "", fmt.Errorf("sandbox: memfd: %w", err)
	}
	file := os.NewFile(uintptr(fd), name)
	n := f.add(file)
	if _, err = file.Write(b); err == nil {
		_, err = file.Seek(0, 0)
	}
	if err != nil {
		return "", fmt.Errorf("sandbox: %s: %w", name, err)
	}
	return n, nil
}
