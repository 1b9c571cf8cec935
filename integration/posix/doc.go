// Package posix is a suite of the POSIX and Linux rules that programs rely on,
// system call by system call, for any directory.
//
// It knows nothing of wsmount. The reference is the local file system: every
// case passes on ext4, so a case that fails on a mount is a difference that a
// program could see. The suite promises to leave the directory empty and the
// process as it was: a case that changes ids, the umask or the working
// directory does so on a thread of its own, which ends with the case.
//
//	func TestPosix(t *testing.T) {
//		posix.Run(t, mountpoint, posix.Options{})
//	}
//
//	// The same as an ordinary user, in a process of its own.
//	func TestPosixUser(t *testing.T)  { posix.RunAs(t, mountpoint, 65533, posix.Options{}) }
//	func TestPosixChild(t *testing.T) { posix.Child(t) }
package posix
