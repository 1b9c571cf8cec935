package table

import (
	"bytes"
	"context"
	"io"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/batchrepr"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/sstable/block"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// Salvage finds inodes in the files of a table that cannot be opened: the wanted ones and
// all directories, by the newest record of each that can be read. Each file is read by
// itself, as far as its checksums hold; nothing is changed. A record that is found was true
// once: newer ones may be lost.
func Salvage(dir string, wanted func(Ino) bool) map[Ino]*Inode {
	found := map[Ino]*Inode{}
	salvageOf([]byte{keyInode}, func(key, record []byte) bool {
		if len(key) != 9 {
			return false
		}
		ino := tail(key)
		n, err := decodeInode(record)
		switch {
		case record != nil && err != nil:
			return false
		case record == nil:
			delete(found, ino)
		case !n.IsDir() && !wanted(ino):
			return false
		default:
			found[ino] = n
		}
		return true
	}).read(dir)
	return found
}

// Remains are the files in the directory of a table that cannot be opened, read as Salvage does.
type Remains string

// Get is the newest record of another package under a key that can be read; nil if there is none.
func (dir Remains) Get(name string) (newest []byte) {
	salvageOf(recordKey(name), func(key, record []byte) bool {
		is := len(key) == len(recordKey(name))
		if is {
			newest = bytes.Clone(record)
		}
		return is
	}).read(string(dir))
	return newest
}

// salvage reads the records whose keys begin with a prefix.
type salvage struct {
	files  vfs.FS
	prefix []byte
	take   func(key, record []byte) bool // a record, nil: there is none any more; false: it is not one
	newest map[string]uint64             // the number of the change that a record is from
}

func salvageOf(prefix []byte, take func(key, record []byte) bool) *salvage {
	return &salvage{vfs.Default, prefix, take, map[string]uint64{}}
}

func (s *salvage) read(dir string) {
	db := s.files.PathJoin(dir, "db")
	s.each(db, ".sst", s.table)
	s.each(s.files.PathJoin(db, "log"), ".log", s.log)
}

// each reads the files of a kind, and skips one that cannot be read.
func (s *salvage) each(dir, suffix string, read func(f vfs.File, name string)) {
	names, err := s.files.List(dir)
	if err != nil {
		return
	}
	for _, name := range names {
		if !strings.HasSuffix(name, suffix) {
			continue
		}
		if f, err := s.files.Open(s.files.PathJoin(dir, name)); err == nil {
			read(f, name)
			_ = f.Close() // some readers have done so
		}
	}
}

// found is told of each record, in any order.
func (s *salvage) found(key, record []byte, seq uint64) {
	if bytes.HasPrefix(key, s.prefix) && s.newest[string(key)] <= seq && s.take(key, record) {
		s.newest[string(key)] = seq
	}
}

// table reads a file of sorted records.
func (s *salvage) table(f vfs.File, _ string) {
	readable, err := sstable.NewSimpleReadable(f)
	if err != nil {
		return
	}
	o := &pebble.Options{}
	o.EnsureDefaults()
	r, err := sstable.NewReader(context.Background(), readable, o.MakeReaderOptions())
	if err != nil {
		return
	}
	defer r.Close()
	iter, err := r.NewIter(block.NoTransforms, s.prefix, behind(s.prefix), sstable.AssertNoBlobHandles)
	if err != nil {
		return
	}
	defer iter.Close()
	for kv := iter.First(); kv != nil; kv = iter.Next() {
		var record []byte
		if kind := kv.K.Kind(); kind == pebble.InternalKeyKindSet || kind == pebble.InternalKeyKindSetWithDelete {
			if record, _, err = kv.Value(nil); err != nil {
				return
			}
		}
		s.found(kv.K.UserKey, record, uint64(kv.K.SeqNum()))
	}
}

// log reads a log: batches of changes.
func (s *salvage) log(f vfs.File, name string) {
	number, is := logNumber(name)
	content, err := io.ReadAll(f)
	if !is || err != nil {
		return
	}
	records(content, uint32(number), func(batch []byte) {
		head, ok := batchrepr.ReadHeader(batch)
		if !ok {
			return
		}
		seq := uint64(head.SeqNum)
		for r := batchrepr.Read(batch); ; seq++ {
			kind, key, record, ok, err := r.Next()
			switch {
			case !ok || err != nil:
				return
			case kind == pebble.InternalKeyKindSet:
				s.found(key, record, seq)
			case kind == pebble.InternalKeyKindDelete:
				s.found(key, nil, seq)
			}
		}
	})
}

// The kinds of chunks of a log: a record in one, or its first, a middle or its
// last part.
const (
	chunkFull = 5 + iota
	chunkFirst
	chunkMiddle
	chunkLast
)

// records visits the records of a log that are whole, past damaged ones.
func records(content []byte, log uint32, visit func(record []byte)) {
	var record []byte
	for at := 0; at < len(content); {
		rest := blockFrom(content, at)
		size, ok := chunk(rest, log)
		if !ok {
			next, found := nextChunk(content, at+1, log)
			if !found {
				return
			}
			if next-at >= logHead { // not the end of a block
				record = nil
			}
			at = next
			continue
		}
		part, kind := rest[logHead:size], rest[6]
		at += size
		if kind == chunkFull || kind == chunkFirst {
			record = nil
		} else if record == nil {
			continue // its first part is damaged
		}
		record = append(record[:len(record):len(record)], part...)
		if kind == chunkFull || kind == chunkLast {
			visit(record)
			record = nil
		}
	}
}
