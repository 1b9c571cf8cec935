package fs

import (
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Nudge makes programs that watch a file, or its directory, with inotify see
// that it is new. The notifications that FUSE has for a file system make the
// kernel forget a name, and generate no event for anybody; what does is a
// change through the mount. So Nudge sets the file's time of change to what it
// is: watchers get IN_MODIFY with the name, of files that are new to them too.
// Nothing else happens where the server knows who calls it ([Server.Nudger]);
// elsewhere the next version may come in between, and get the time of this one.
// It leads through no symbolic link and into nothing that is mounted below.
//
// It must not be called by the process that serves the mount: killed while it
// waits for itself, that would stay for ever. What watchers cannot be told is
// that a file is gone: IN_DELETE needs an unlink through the mount. Who has the
// file itself open or watched sees neither, because it is another file now;
// programs that watch files re-open them as they do when an editor replaces
// one.
func Nudge(mountpoint, path string) error {
	root, err := unix.Open(mountpoint, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(root)
	dir, err := unix.Openat2(root, filepath.Dir(path), &unix.OpenHow{
		Flags:   unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_XDEV})
	if err != nil {
		return err
	}
	defer unix.Close(dir)
	var st unix.Stat_t
	if err := unix.Fstatat(dir, filepath.Base(path), &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return err
	}
	times := []unix.Timespec{{Nsec: unix.UTIME_OMIT}, st.Mtim}
	return unix.UtimesNanoAt(dir, filepath.Base(path), times, unix.AT_SYMLINK_NOFOLLOW)
}
