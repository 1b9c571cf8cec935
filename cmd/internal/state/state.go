// Package state keeps the data of a mount that wsmount needs outside the mount:
// one directory per working copy, its lock, and the record that tells other
// commands where the mount is, without asking it.
//
//	<root>/<owner>/<slug>/<fingerprint>/   0700
//	    lock          held while a daemon serves it (flock)
//	    mount.json    the Record of the running mount
//	    status.json   its last status
//	    control.sock  its control API
//	    log           its log, unless another place was chosen
//	    storage       the place of the storage whose working copy it is
//	    copy/         names and content of a remote workspace, and unsaved changes
//	<root>/.shared/   shared by mounts, can be fetched again
//	<root>/.discarded/  directories that are being removed
//	<root>/.checkouts/  which checkouts of projects this machine has registered
//	<root>/.acts/     counts for limits of policies, a file for each workspace and principal
//
// It promises that two daemons never hold one directory at the same time, that
// a reader never sees half of a file, and that only the owner may enter.
//
//	dir, err := state.Open(root, "acme", "marketing-ops", fingerprint, nil)
//	defer dir.Close()
//	err = dir.SaveRecord(record)
package state

import (
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/providers/flock"
)

// Names of the files in a working copy's directory.
const (
	lockName   = "lock"
	recordName = "mount.json"
	statusName = "status.json"
	parentName = "parent.json"
	socketName = "control.sock"
	logName    = "log"
	storeName  = "storage"
)

// CopyName is the directory of the files themselves in a working copy's
// directory. Only remote workspaces have one.
const CopyName = "copy"

// CloneName is the directory beside it in which the provider of a repository keeps its clone.
const CloneName = "git"

// parts are the directories with either of which a directory is that of a working copy.
var parts = [...]string{CopyName, CloneName}

// Root returns the state directory: explicit when given, else the user's
// (XDG base directories: $XDG_STATE_HOME, ~/.local/state), and
// /var/lib/wsmount for root, whose home a boot script may not know.
func Root(explicit string, getenv func(string) string) (string, error) {
	switch home, xdg := getenv("HOME"), getenv("XDG_STATE_HOME"); {
	case explicit != "":
		return filepath.Abs(explicit)
	case filepath.IsAbs(xdg):
		return filepath.Join(xdg, "wsmount"), nil
	case os.Geteuid() == 0:
		return "/var/lib/wsmount", nil
	case filepath.IsAbs(home):
		return filepath.Join(home, ".local", "state", "wsmount"), nil
	}
	return "", exit.New(exit.Usage, "no state directory: HOME is not set").Hint("give --state-dir DIR")
}

// Shared returns the directory that mounts share. No owner has its name.
func Shared(root string) string { return filepath.Join(root, ".shared") }

// Acts returns the file of the acts of a principal in a workspace, in whichever working
// copy. Its directory need not exist.
func Acts(root, owner, slug, principal string) string {
	name := fmt.Sprintf("%s+%s+%x.json", owner, slug, sha256.Sum256([]byte(principal)))
	return filepath.Join(root, ".acts", name)
}

// Checkouts returns the directory of the records about checkouts of projects, and makes it if
// that is asked for.
func Checkouts(root string, make bool) (string, error) {
	dir := filepath.Join(root, ".checkouts")
	if !make {
		return dir, nil
	}
	return dir, makePrivate(root, dir)
}

// Dir is one working copy's directory, locked.
type Dir struct {
	path string
	root string
	room Room
	lock *flock.Lock
}

// A LockedError says that another daemon holds the directory.
type LockedError struct {
	Path   string
	Holder *Record // nil when it has not recorded its identity yet
	// At is the place of this workspace in the mount of Holder, which is another workspace's;
	// empty: it is that mount.
	At string
}

func (e *LockedError) Error() string {
	switch {
	case e.Holder == nil:
		return WorkspaceOf(e.Path) + " is in use by a wsmount that is starting, or by a command: " + e.Path
	case e.At != "":
		return fmt.Sprintf("%s is mounted already at %s, as a part of %s, by process %d", WorkspaceOf(e.Path), filepath.Join(e.Holder.Mountpoint, e.At), e.Holder.Workspace, e.Holder.PID)
	}
	return fmt.Sprintf("%s is mounted already at %s by process %d", e.Holder.Workspace, e.Holder.Mountpoint, e.Holder.PID)
}

// Place returns the directory of a working copy, which need not exist. The
// three names come from validated addresses; any other is refused.
func Place(root, owner, slug, fingerprint string) (string, error) {
	for _, name := range []string{owner, slug, fingerprint} {
		if name == "" || name == "." || name == ".." || filepath.Base(name) != name {
			return "", fmt.Errorf("state: %q cannot name a directory", name)
		}
	}
	return filepath.Join(root, owner, slug, fingerprint), nil
}

// Open makes the directory of a working copy if needed and locks it. A second
// Open, by any process, is a *LockedError until the first is closed or dead. While the
// disk is full, every write in the directory gets the space that room frees; nil:
// no space is freed.
func Open(root, owner, slug, fingerprint string, room Room) (*Dir, error) {
	path, err := Place(root, owner, slug, fingerprint)
	if err != nil {
		return nil, err
	}
	var lock *flock.Lock
	err = WhileFull(root, room, func() (err error) {
		if err = makePrivate(root, path); err != nil {
			return err
		}
		if lock, err = flock.Exclusive(filepath.Join(path, lockName)); err != nil {
			err = fmt.Errorf("state: %w", err)
		}
		return err
	})
	if err == nil {
		if err = forgetParent(path); err != nil {
			return nil, errors.Join(err, lock.Close())
		}
		return &Dir{path: path, root: root, room: room, lock: lock}, nil
	}
	if !errors.Is(err, flock.ErrLocked) {
		return nil, err
	}
	locked := &LockedError{Path: path}
	if locked.Holder, err = readRecord(path); err != nil {
		locked.Holder, locked.At = readParent(path)
	}
	return nil, locked
}

// Lock is Open for the directory of an existing working copy.
func Lock(path string) (*Dir, error) {
	fingerprint, slug := filepath.Base(path), filepath.Dir(path)
	return Open(RootOf(path), filepath.Base(filepath.Dir(slug)), filepath.Base(slug), fingerprint, nil)
}

// discardedName is where a discarded directory goes: out of sight at once.
const discardedName = ".discarded"

// Discard removes all that is in the directory, and the lock. A process that is killed in the
// middle of it leaves all or nothing in sight; the next Discard removes the rest.
func (d *Dir) Discard() error {
	aside := filepath.Join(d.root, discardedName)
	if err := os.MkdirAll(aside, 0o700); err != nil {
		return fmt.Errorf("state: %w", err)
	}
	to := filepath.Join(aside, rand.Text())
	if err := os.Rename(d.path, to); err != nil {
		return fmt.Errorf("state: %w", err)
	}
	_ = os.Remove(filepath.Dir(d.path)) // the slug's, if that was the last
	return errors.Join(d.lock.Close(), os.RemoveAll(aside))
}

// makePrivate makes every missing directory down to path with mode 0700, and
// refuses one below root that others own or may write.
func makePrivate(root, path string) error {
	if err := os.MkdirAll(path, 0o700); IsFull(err) {
		return err // for WhileFull
	} else if err != nil {
		return exit.New(exit.Failed, "state directory: %w", err).Hint("give --state-dir a directory that you may write")
	}
	for p := path; ; p = filepath.Dir(p) {
		if err := CheckPrivate(p); err != nil {
			return err
		}
		if p == root || len(p) <= len(root) {
			return os.Chmod(path, 0o700)
		}
	}
}

// CheckPrivate refuses a directory that belongs to another user, or that
// others may write. One that does not exist passes.
func CheckPrivate(path string) error {
	var st unix.Stat_t
	switch err := unix.Lstat(path, &st); {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("state: stat %s: %w", path, err)
	case st.Mode&unix.S_IFMT != unix.S_IFDIR:
		return exit.New(exit.Denied, "state: %s is not a directory", path).Hint("remove it, or give --state-dir another place")
	case int(st.Uid) != os.Geteuid():
		return exit.New(exit.Denied, "state: %s belongs to user %d", path, st.Uid).Hint("give --state-dir a directory of your own")
	case st.Mode&0o022 != 0:
		return exit.New(exit.Denied, "state: others may write %s", path).Hint("run `chmod go-w %s`", path)
	}
	return nil
}

// WhileFull runs do, which writes in the directory, as [WhileFull] does.
func (d *Dir) WhileFull(do func() error) error { return WhileFull(d.root, d.room, do) }

// WorkspaceOf is the address of the workspace of the working copy in a directory.
func WorkspaceOf(dir string) string {
	slug := filepath.Dir(dir)
	return "@" + filepath.Base(filepath.Dir(slug)) + "/" + filepath.Base(slug)
}

// Path returns the directory itself.
func (d *Dir) Path() string { return d.path }

// SocketPath returns where the control API listens.
func (d *Dir) SocketPath() string { return filepath.Join(d.path, socketName) }

// LogPath returns where the log goes unless another place was chosen.
func (d *Dir) LogPath() string { return filepath.Join(d.path, logName) }

// Close removes the record of the mount and gives the directory free. The last
// status stays, for later readers.
func (d *Dir) Close() error {
	err := os.Remove(filepath.Join(d.path, recordName))
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return errors.Join(err, forgetParent(d.path), d.lock.Close())
}

// fileSystems that lose their content with the machine, by statfs(2) magic.
var volatile = map[int64]string{
	unix.TMPFS_MAGIC:           "tmpfs",
	unix.RAMFS_MAGIC:           "ramfs",
	unix.OVERLAYFS_SUPER_MAGIC: "overlayfs",
}

// Volatile names the file system of a directory, or of its nearest existing
// parent, when its content does not outlive the machine or the container.
func Volatile(path string) (fsName string, is bool) {
	var st unix.Statfs_t
	for p := path; ; p = filepath.Dir(p) {
		if err := unix.Statfs(p, &st); err == nil {
			fsName, is = volatile[int64(st.Type)] // int32 on some architectures
			return fsName, is
		}
		if p == filepath.Dir(p) {
			return "", false
		}
	}
}

// Held reports whether a daemon, or a command, has the directory of a working
// copy locked. A call keeps no other process from locking it.
func Held(path string) bool {
	name := filepath.Join(path, lockName)
	if _, err := os.Lstat(name); err != nil {
		return false
	}
	lock, err := flock.Shared(name)
	if err == nil {
		_ = lock.Close()
	}
	return errors.Is(err, flock.ErrLocked)
}
