package content

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"golang.org/x/sys/unix"
)

// trust remembers how content files looked when their bytes were known to be
// right, so that they need not be read again by the next mount. Losing a record
// costs one reading.
type trust struct {
	mu      sync.Mutex
	dir     string
	pending map[uint64]stamp // not on the disk yet
	shards  map[int][]stamp  // by inode; what was read of the disk
}

// stamp is how a file looked.
type stamp struct {
	ino          uint64
	size         int64
	mtime, ctime int64
}

const (
	trustDir  = "verified"
	trustMost = 1024 // pending
	stampSize = 36   // ino, size, mtime, ctime, CRC-32 of them and the boot
)

func (s *Store) openTrust() {
	s.trust.dir = filepath.Join(s.dir, trustDir)
	s.trust.pending = make(map[uint64]stamp)
	s.trust.shards = make(map[int][]stamp)
}

// stampOf is how the content file of an inode looks now.
func (s *Store) stampOf(ino uint64) (stamp, error) {
	var st unix.Stat_t
	err := s.in(ino, func(dir int, name string) error {
		return unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW)
	})
	return stamp{ino, st.Size, st.Mtim.Nano(), st.Ctim.Nano()}, err
}

// Verified notes that the content of an inode is right as it is now. Content
// that is not wholly here, or not synced since it was changed and fetched, is
// [ErrPartial].
func (s *Store) Verified(ino uint64) error {
	now, err := s.stampOf(ino)
	if err == nil && s.mapped(ino) {
		err = ErrPartial
	}
	if err != nil {
		return fmt.Errorf("content: verified %d: %w", ino, err)
	}
	t := &s.trust
	t.mu.Lock()
	t.pending[ino] = now
	full := len(t.pending) >= trustMost
	t.mu.Unlock()
	if full {
		s.flushTrust()
	}
	return nil
}

// Trust reports that the content file of an inode looks as it did when
// [Store.Verified] was called. After another boot nothing is trusted: a disk
// keeps a file's size and times, and may have lost its bytes.
func (s *Store) Trust(ino uint64, sameBoot bool) bool {
	if !sameBoot {
		return false
	}
	now, err := s.stampOf(ino)
	if err != nil {
		return false
	}
	t := &s.trust
	t.mu.Lock()
	defer t.mu.Unlock()
	if was, ok := t.pending[ino]; ok {
		return was == now
	}
	all := s.loadTrust(shardOf(ino))
	i, ok := slices.BinarySearchFunc(all, ino, byIno)
	return ok && all[i] == now
}

func byIno(a stamp, ino uint64) int {
	switch {
	case a.ino < ino:
		return -1
	case a.ino > ino:
		return 1
	}
	return 0
}

// loadTrust reads the records of a shard, of each inode the last. mu is held.
func (s *Store) loadTrust(shard int) []stamp {
	t := &s.trust
	if all, ok := t.shards[shard]; ok {
		return all
	}
	data, err := os.ReadFile(t.path(shard))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.o.Log.Warn("content: verified", "error", err)
	}
	all := make([]stamp, 0, len(data)/stampSize)
	for ; len(data) >= stampSize; data = data[stampSize:] {
		if st, ok := s.decodeStamp(data[:stampSize]); ok {
			all = append(all, st)
		}
	}
	t.shards[shard] = sorted(all)
	return t.shards[shard]
}

// sorted puts stamps in the order of inodes, of each inode the last one.
func sorted(all []stamp) []stamp {
	slices.SortStableFunc(all, func(a, b stamp) int { return byIno(a, b.ino) })
	out := all[:0]
	for i, st := range all {
		if i+1 == len(all) || all[i+1].ino != st.ino {
			out = append(out, st)
		}
	}
	return out
}

func (t *trust) path(shard int) string { return filepath.Join(t.dir, fmt.Sprintf("%02x", shard)) }

// flushTrust writes what is pending: each shard as a whole, without what is
// gone, in place of the old one.
func (s *Store) flushTrust() {
	t := &s.trust
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.pending) == 0 {
		return
	}
	byShard := make(map[int][]stamp)
	for ino, st := range t.pending {
		byShard[shardOf(ino)] = append(byShard[shardOf(ino)], st)
	}
	err := ignoreExist(os.Mkdir(t.dir, 0o700))
	for shard, fresh := range byShard {
		all := sorted(append(slices.Clone(s.loadTrust(shard)), fresh...))
		all = slices.DeleteFunc(all, s.gone)
		t.shards[shard] = all
		err = errors.Join(err, s.saveTrust(shard, all))
	}
	clear(t.pending)
	if err != nil {
		s.o.Log.Warn("content: verified", "error", err)
	}
}

func ignoreExist(err error) error {
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

// gone reports that a record is of no use.
func (s *Store) gone(st stamp) bool {
	now, err := s.stampOf(st.ino)
	return err != nil || now != st
}

func (s *Store) saveTrust(shard int, all []stamp) error {
	data := make([]byte, 0, len(all)*stampSize)
	for _, st := range all {
		data = s.appendStamp(data, st)
	}
	next := s.trust.path(shard) + ".new"
	if err := os.WriteFile(next, data, 0o600); err != nil {
		return err
	}
	return os.Rename(next, s.trust.path(shard))
}

func (s *Store) appendStamp(to []byte, st stamp) []byte {
	from := len(to)
	for _, v := range []uint64{st.ino, uint64(st.size), uint64(st.mtime), uint64(st.ctime)} {
		to = binary.LittleEndian.AppendUint64(to, v)
	}
	return binary.LittleEndian.AppendUint32(to, s.sumOf(to[from:]))
}

// sumOf covers the boot, so that records of another do not count.
func (s *Store) sumOf(data []byte) uint32 {
	return crc32.Update(crc32.ChecksumIEEE([]byte(s.o.boot)), crc32.IEEETable, data)
}

func (s *Store) decodeStamp(data []byte) (stamp, bool) {
	le := binary.LittleEndian
	st := stamp{le.Uint64(data), int64(le.Uint64(data[8:])), int64(le.Uint64(data[16:])), int64(le.Uint64(data[24:]))}
	return st, le.Uint32(data[32:]) == s.sumOf(data[:32])
}
