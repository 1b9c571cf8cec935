// Package quota keeps working copies of several processes together within one bound.
//
// It knows a file in which each working copy has a slot, with the number of bytes it holds and
// the time of that entry. They do not talk to each other: each reads all slots, and works out
// how much it may keep. The largest give up most: there is one level, such that the bytes up to
// it add up to the bound, and none keeps more.
//
// It promises that a process which was killed, or hangs, counts for 15 seconds at most, that
// the slot of a killed one is reused, and that all compute the same level from the same file.
// Its data about others is as old as the last Look, so together they may exceed the bound by
// the bytes taken since.
//
//	share, err := quota.Open(filepath.Join(dir, "clean"), quota.Options{Total: 20 << 30})
//	defer share.Close()
//	err = share.Look(own) // every second
//	evict := own - share.Mine(own)
package quota

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Options of a [Share]. Total is required.
type Options struct {
	Total int64            // bytes that all may hold together
	Now   func() time.Time // nil: time.Now
}

// A Share is one working copy's part. Its methods may be called concurrently.
type Share struct {
	o    Options
	file *os.File
	slot int64

	mu     sync.Mutex // guards the fields below
	others []int64    // bytes held by each other, ascending
	sum    int64      // of others
}

const (
	slotSize = 16 // two numbers: bytes held, and seconds since 1970
	maxSlots = 1 << 16

	// silence is the age from which the entry of another working copy does not count.
	silence = 15 * time.Second
)

// Open takes a slot in a file, which is made, 0600, if it is missing.
func Open(name string, o Options) (*Share, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fmt.Errorf("quota: %w", err)
	}
	s := &Share{o: o, file: f}
	if err := errors.Join(s.take(), s.Look(0)); err != nil {
		f.Close()
		return nil, fmt.Errorf("quota: %s: %w", name, err)
	}
	return s, nil
}

// take locks the first slot that is free. The lock ends with the descriptor, also when the
// process is killed.
func (s *Share) take() error {
	for s.slot = range int64(maxSlots) {
		err := unix.FcntlFlock(s.file.Fd(), unix.F_OFD_SETLK,
			&unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart, Start: s.slot * slotSize, Len: slotSize})
		if err != unix.EAGAIN && err != unix.EACCES {
			return err
		}
	}
	return errors.New("every slot is taken")
}

// Look writes the number of bytes that this working copy holds, and reads those of the others.
func (s *Share) Look(own int64) error {
	now := s.o.Now()
	if err := s.say(own, now.Unix()); err != nil {
		return err
	}
	all := make([]byte, slotSize*maxSlots/64)
	var others []int64
	var sum int64
	for at := int64(0); ; {
		n, err := s.file.ReadAt(all, at)
		for i := 0; i+slotSize <= n; i += slotSize {
			held, said := decode(all[i:])
			age := now.Sub(time.Unix(said, 0))
			if at+int64(i) == s.slot*slotSize || held <= 0 || age > silence || age < -silence {
				continue
			}
			others, sum = append(others, held), sum+held
		}
		at += int64(n)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("quota: %w", err)
		}
	}
	slices.Sort(others)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.others, s.sum = others, sum
	return nil
}

func (s *Share) say(held, at int64) error {
	var b [slotSize]byte
	binary.LittleEndian.PutUint64(b[:], uint64(held))
	binary.LittleEndian.PutUint64(b[8:], uint64(at))
	if _, err := s.file.WriteAt(b[:], s.slot*slotSize); err != nil {
		return fmt.Errorf("quota: %w", err)
	}
	return nil
}

func decode(b []byte) (held, at int64) {
	return int64(binary.LittleEndian.Uint64(b)), int64(binary.LittleEndian.Uint64(b[8:]))
}

// Mine is how many of own bytes this working copy may keep: all of them while everything fits
// the bound, else those up to the level.
func (s *Share) Mine(own int64) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if own <= 0 || own+s.sum <= s.o.Total {
		return own
	}
	left := s.o.Total
	for i, held := range s.others {
		level := left / int64(len(s.others)-i+1)
		if held >= level { // as do all after it
			return min(own, level)
		}
		if own <= held {
			return own // it is below the level, as held is
		}
		left -= held
	}
	return min(own, max(left, 0))
}

// lookEvery is how often a working copy writes its entry and reads the others'.
const lookEvery = time.Second

// Loop keeps the sum within the bound, until pause returns an error: weigh evicts bytes beyond
// Mine, and returns the number held.
func (s *Share) Loop(ctx context.Context, pause func(context.Context, time.Duration) error, weigh func() int64, ended func(error)) {
	for pause(ctx, lookEvery) == nil {
		ended(s.Look(weigh()))
		weigh() // by the entries just read
	}
}

// Close gives up the slot. Its bytes do not count any more.
func (s *Share) Close() error {
	err := s.say(0, 0)
	return errors.Join(err, s.file.Close())
}
