package content

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
)

// trust remembers how content files looked when their bytes were known to be
// right, so that they need not be read again by the next mount. Losing a record
// costs one reading.
type trust struct {
	dirs *dirs
	log  *slog.Logger
	held stamps // see lock
}

// stamps are the records. They are locked from trust.lock until unlock.
type stamps struct {
	mu      sync.Mutex
	files   stampFiles
	pending map[uint64]stamp // not on the disk yet
	shards  map[int][]stamp  // by inode; what was read of the disk
}

// stampFiles are where the records lie, one file for each shard.
type stampFiles struct {
	dir  string
	boot string // records of another do not count
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

func (t *trust) init(d *dirs, o *Options) {
	t.dirs, t.log = d, o.Log
	t.held.files = stampFiles{dir: filepath.Join(d.root, trustDir), boot: o.boot}
	t.held.pending = make(map[uint64]stamp)
	t.held.shards = make(map[int][]stamp)
}

// lock waits for the records, and gives them to the caller until unlock.
func (t *trust) lock() *stamps {
	t.held.mu.Lock()
	return &t.held
}

func (t *stamps) unlock() { t.mu.Unlock() }

// stampOf is how the content of an inode looks now.
func stampOf(d *dirs, ino uint64) (stamp, error) {
	st, err := d.stat(ino)
	return stamp{ino, st.Size, st.Mtim.Nano(), st.Ctim.Nano()}, err
}

// Verified notes that the content of an inode is right as it is now. Content
// that is not wholly here, or not synced since it was changed and fetched, is
// [ErrPartial].
func (s *Store) Verified(ino uint64) error {
	if err := s.trust.note(ino); err != nil {
		return fmt.Errorf("content: verified %d: %w", ino, err)
	}
	return nil
}

// note makes a record.
func (t *trust) note(ino uint64) error {
	now, err := stampOf(t.dirs, ino)
	if err != nil {
		return err
	}
	if t.dirs.mapped(ino) {
		return ErrPartial
	}
	all := t.lock()
	defer all.unlock()
	all.pending[ino] = now
	if len(all.pending) >= trustMost {
		t.warn(all.flush(t.gone))
	}
	return nil
}

// warn tells of what costs no more than one reading.
func (t *trust) warn(err error) {
	if err != nil {
		t.log.Warn("content: verified", "error", err)
	}
}

// Trust reports that the content file of an inode looks as it did when
// [Store.Verified] was called. After another boot nothing is trusted: a disk
// keeps a file's size and times, and may have lost its bytes.
func (s *Store) Trust(ino uint64, sameBoot bool) bool { return sameBoot && s.trust.has(ino) }

// has reports that there is a record of how the content of an inode looks now.
func (t *trust) has(ino uint64) bool {
	now, err := stampOf(t.dirs, ino)
	if err != nil {
		return false
	}
	all := t.lock()
	defer all.unlock()
	ok, err := all.has(now)
	t.warn(err)
	return ok
}

func (t *stamps) has(now stamp) (bool, error) {
	if was, ok := t.pending[now.ino]; ok {
		return was == now, nil
	}
	all, err := t.of(shardOf(now.ino))
	i, ok := slices.BinarySearchFunc(all, now.ino, byIno)
	return ok && all[i] == now, err
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

// of gives the records of a shard.
func (t *stamps) of(shard int) (all []stamp, err error) {
	all, ok := t.shards[shard]
	if !ok {
		all, err = t.files.load(shard)
		t.shards[shard] = all
	}
	return all, err
}

// load reads the records of a shard, of each inode the last.
func (t stampFiles) load(shard int) ([]stamp, error) {
	data, err := os.ReadFile(t.path(shard))
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	all := make([]stamp, 0, len(data)/stampSize)
	for ; len(data) >= stampSize; data = data[stampSize:] {
		if st, ok := t.decode(data[:stampSize]); ok {
			all = append(all, st)
		}
	}
	return sorted(all), err
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

func (t stampFiles) path(shard int) string { return filepath.Join(t.dir, fmt.Sprintf("%02x", shard)) }

// flush writes the records that were made.
func (t *trust) flush() {
	all := t.lock()
	defer all.unlock()
	t.warn(all.flush(t.gone))
}

// flush writes what is pending: each shard as a whole, without what is gone, in place of
// the old one.
func (t *stamps) flush(gone func(stamp) bool) error {
	if len(t.pending) == 0 {
		return nil
	}
	byShard := make(map[int][]stamp)
	for ino, st := range t.pending {
		byShard[shardOf(ino)] = append(byShard[shardOf(ino)], st)
	}
	err := ignoreExist(os.Mkdir(t.files.dir, 0o700))
	for shard, fresh := range byShard {
		old, lerr := t.of(shard)
		all := sorted(append(slices.Clone(old), fresh...))
		all = slices.DeleteFunc(all, gone)
		t.shards[shard] = all
		err = errors.Join(err, lerr, t.files.save(shard, all))
	}
	clear(t.pending)
	return err
}

func ignoreExist(err error) error {
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

// gone reports that a record is of no use.
func (t *trust) gone(st stamp) bool {
	now, err := stampOf(t.dirs, st.ino)
	return err != nil || now != st
}

func (t stampFiles) save(shard int, all []stamp) error {
	data := make([]byte, 0, len(all)*stampSize)
	for _, st := range all {
		data = t.append(data, st)
	}
	next := t.path(shard) + ".new"
	if err := os.WriteFile(next, data, 0o600); err != nil {
		return err
	}
	return os.Rename(next, t.path(shard))
}

func (t stampFiles) append(to []byte, st stamp) []byte {
	from := len(to)
	for _, v := range []uint64{st.ino, uint64(st.size), uint64(st.mtime), uint64(st.ctime)} {
		to = binary.LittleEndian.AppendUint64(to, v)
	}
	return binary.LittleEndian.AppendUint32(to, t.sum(to[from:]))
}

// sum covers the boot.
func (t stampFiles) sum(data []byte) uint32 {
	return crc32.Update(crc32.ChecksumIEEE([]byte(t.boot)), crc32.IEEETable, data)
}

func (t stampFiles) decode(data []byte) (stamp, bool) {
	le := binary.LittleEndian
	st := stamp{le.Uint64(data), int64(le.Uint64(data[8:])), int64(le.Uint64(data[16:])), int64(le.Uint64(data[24:]))}
	return st, le.Uint32(data[32:]) == t.sum(data[:32])
}
