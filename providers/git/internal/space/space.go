// Package space has writers of a repository go on when their disk is full: the owner of the disk
// gives up content that can be fetched again, and the writer tries once more.
//
//	d := space.Disk{MakeRoom: makeRoom}
//	err := d.While(func() error { return os.Mkdir(name, 0o700) })
//	w := d.Writer(file)
package space

import (
	"errors"
	"fmt"
	"io"

	"golang.org/x/sys/unix"
)

// tries bounds how often a write is tried: each try but the first comes after room was made,
// which other writers may have taken since.
const tries = 4

// step is the least room that is asked for: as much again is likely to follow.
const step = 1 << 20

// Disk is the disk of a repository. The zero Disk gives nothing up. Its methods may be called at
// once.
type Disk struct {
	// MakeRoom gives up content that can be fetched again, for n bytes, and reports whether it
	// did; nil: nothing can be. It may be called under locks of the repository.
	MakeRoom func(n int64) bool
}

// IsFull reports whether an error says that a disk, or a quota, is full.
func IsFull(err error) bool { return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) }

// While runs do, and again while the disk is full and room was made. do must be able to begin
// anew after it has failed. The error of a full disk tells the remedy.
func (d Disk) While(do func() error) error { return d.forBytes(step, do) }

func (d Disk) forBytes(n int64, do func() error) error {
	for try := 1; ; try++ {
		err := do()
		if !IsFull(err) {
			return err
		}
		if try == tries || d.MakeRoom == nil || !d.MakeRoom(n) {
			return fmt.Errorf("the disk is full and has no clean content to give up; free some of it: %w", err)
		}
	}
}

// Writer writes to w, and goes on where a full disk has stopped it.
func (d Disk) Writer(w io.Writer) io.Writer { return writer{d, w} }

type writer struct {
	d Disk
	w io.Writer
}

func (w writer) Write(b []byte) (n int, err error) {
	for more := true; more; { // each part that is written has tries of its own
		more = false
		err = w.d.forBytes(max(step, int64(len(b)-n)), func() error {
			m, err := w.w.Write(b[n:])
			n += m
			more = m > 0 && IsFull(err)
			if more {
				return nil
			}
			return err
		})
	}
	return n, err
}
