package fs

import (
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Nudge makes programs that watch a file, or its directory, with inotify see that it is new.
// FUSE's notifications make the kernel forget a name, and generate no inotify event; only a
// change through the mount does. So Nudge sets the file's modification time to its present
// value: watchers get IN_MODIFY with the name, also of files that are new to them. It has no
// other effect where the server recognizes the calling process ([Server.Nudger]); elsewhere the
// next version may come in between, and get the time of this one. It follows no symbolic link
// and enters nothing that is mounted below.
//
// It must not be called by the process that serves the mount: killed while it waits for itself,
// it would hang for ever. Watchers cannot be told that a file is gone: IN_DELETE needs an
// unlink through the mount. A program that has the file itself open or watched sees neither,
// because the name is another file now; programs that watch files re-open them as they do when
// an editor replaces one.
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
