package state

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/cmd/internal/exit"
)

// Ballast is a file that is removed when the disk of a state directory is full; the
// working copies make it, and make it again.
func Ballast(root string) string { return filepath.Join(Shared(root), "ballast") }

// RootOf is the state directory that the directory of a working copy lies in.
func RootOf(dir string) string { return filepath.Dir(filepath.Dir(filepath.Dir(dir))) }

// fullTries bounds how often something is written to a full disk: each try but the
// first comes after room was made, which others may have taken since.
const fullTries = 4

// A Room is the content that can be evicted on the disk of a state directory.
type Room interface {
	// MakeRoom evicts content that can be fetched again, n bytes, or a few if n is 0, and
	// reports whether trying again may help.
	MakeRoom(n int64) bool
	// Usage tells a person how much of the disk it and other content take.
	Usage() string
}

// WhileFull runs do, which writes below the state directory root. When the disk is
// full, room evicts content, and if it did, do runs again; nil: there is no such
// content. At last the ballast goes. An error that is left says how the disk
// is used and which content to free. It may be called concurrently with the whole package.
func WhileFull(root string, room Room, do func() error) error {
	for try := 1; ; try++ {
		err := do()
		if !IsFull(err) {
			return err
		}
		if try == fullTries || (room == nil || !room.MakeRoom(0)) && !relieve(root) {
			return full(root, room, err)
		}
	}
}

// IsFull reports whether an error says that a disk, or a quota, is full.
func IsFull(err error) bool { return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) }

// relieve gives the ballast up, and reports whether there was one.
func relieve(root string) bool { return os.Remove(Ballast(root)) == nil }

// clearCommand is the command for a full disk.
const clearCommand = "`wsmount cache clear`"

// full says how a disk is used.
func full(root string, room Room, err error) error {
	if strings.Contains(exit.From(err).Advice, clearCommand) {
		return err // it has been said
	}
	text := "the disk of the state directory " + root + " is full"
	var st unix.Statfs_t
	if unix.Statfs(root, &st) == nil {
		text += fmt.Sprintf(", %d KiB of %d MiB are free", int64(st.Bavail)*int64(st.Bsize)>>10, int64(st.Blocks)*int64(st.Bsize)>>20)
	}
	if room != nil {
		text += "; " + room.Usage()
	}
	return exit.New(exit.Failed, "%s: %w", text, err).
		Hint("free something on the disk of %s; `wsmount cache show` tells what of it are copies and what is unsaved, %s gives the copies up", root, clearCommand)
}
