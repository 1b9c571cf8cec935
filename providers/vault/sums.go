package vault

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/providers"
)

// mark is the part of stat(2) that a change of the content changes, unless that happens within
// one tick of the clock.
type mark struct {
	major, minor        uint32
	ino, size           uint64
	btime, mtime, ctime int64
}

func markOf(st *unix.Statx_t) mark {
	return mark{st.Dev_major, st.Dev_minor, st.Ino, st.Size, nanos(st.Btime), nanos(st.Mtime), nanos(st.Ctime)}
}

func nanos(t unix.StatxTimestamp) int64 { return t.Sec*int64(time.Second) + int64(t.Nsec) }

// steady is the age that a change must have for a mark to be believed. The coarsest clock of a
// file system (FAT's) ticks every two seconds.
const steady = 3 * time.Second

// believable reports whether no change since can have left the mark as it is.
func (m mark) believable(now time.Time) bool {
	return now.Sub(time.Unix(0, max(m.mtime, m.ctime))) > steady
}

// sums remembers hashes of contents by the marks of their files. It keeps the last few ten
// thousand that were used. The zero value is empty.
type sums struct {
	mu sync.Mutex // guards all below
	generations
}

// generations are the hashes used of late, and those used before.
type generations struct{ young, old map[mark]string }

const generation = 1 << 14 // marks, of about 200 bytes each

func (s *sums) get(m mark) (string, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sum, ok := s.young[m]
	if !ok {
		if sum, ok = s.old[m]; ok {
			s.keep(m, sum)
		}
	}
	return sum, ok
}

func (s *sums) put(m mark, sum string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keep(m, sum)
}

// keep adds one. A hash that was not used in a generation goes with it.
func (s *generations) keep(m mark, sum string) {
	if s.young == nil || len(s.young) >= generation {
		s.old, s.young = s.young, make(map[mark]string)
	}
	s.young[m] = sum
}

// attempts bounds the reads of a file that changes meanwhile.
const attempts = 5

// hash reads an open file and describes its content as of one moment. errReplaced when it
// is no regular file, errChanging when it changes each time.
func (s *sums) hash(ctx context.Context, f *os.File) (string, unix.Statx_t, error) {
	for range attempts {
		st, err := statFile(f)
		if err == nil && st.Mode&unix.S_IFMT != unix.S_IFREG {
			err = errReplaced
		}
		if err != nil {
			return "", st, err
		}
		began, h := time.Now(), sha256.New()
		if _, err := io.Copy(h, providers.WithContext(ctx, io.NewSectionReader(f, 0, int64(st.Size)))); err != nil {
			return "", st, err
		}
		m := markOf(&st)
		if now, err := statFile(f); err != nil || markOf(&now) != m {
			continue // the next look tells the reason
		}
		sum := hex.EncodeToString(h.Sum(nil))
		if m.believable(began) {
			s.put(m, sum)
		}
		return sum, st, nil
	}
	return "", unix.Statx_t{}, errChanging
}

var errChanging = fmt.Errorf("the file changes all the time: %w", providers.ErrConflict)

// of is the hash of an open file, from memory if that counts.
func (s *sums) of(ctx context.Context, f *os.File) (string, unix.Statx_t, error) {
	st, err := statFile(f)
	if err == nil {
		if sum, ok := s.known(&st); ok {
			return sum, st, nil
		}
	}
	return s.hash(ctx, f)
}

// known is the hash of a file with this stat, if it was read before and its stat is old enough to
// be believed.
func (s *sums) known(st *unix.Statx_t) (sum string, ok bool) {
	if m := markOf(st); m.believable(time.Now()) {
		return s.get(m)
	}
	return "", false
}

// isContentOf reports whether n is a mark of m's file, unchanged. A rename of another file over
// it, or a link to it, moves its ctime alone.
func (m mark) isContentOf(n mark) bool {
	m.ctime, n.ctime = 0, 0
	return m == n
}

func statFile(f *os.File) (st unix.Statx_t, err error) {
	err = retryErr(func() error {
		return unix.Statx(int(f.Fd()), "", unix.AT_EMPTY_PATH, unix.STATX_BASIC_STATS|unix.STATX_BTIME, &st)
	})
	return st, err
}
