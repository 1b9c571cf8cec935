package table

import (
	"context"
	"io"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/batchrepr"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/sstable/block"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// Salvage finds inodes in the files of a table that cannot be opened: those that
// are wanted and all directories, as the newest record that can be read has them.
// Each file is read by itself, as far as its checksums hold; nothing is changed.
// What is found was so once: of what is newer there may be nothing left.
func Salvage(dir string, wanted func(Ino) bool) map[Ino]*Inode {
	s := &salvage{files: vfs.Default, wanted: wanted, newest: map[Ino]uint64{}, found: map[Ino]*Inode{}}
	db := s.files.PathJoin(dir, "db")
	s.each(db, ".sst", s.table)
	s.each(s.files.PathJoin(db, "log"), ".log", s.log)
	return s.found
}

type salvage struct {
	files  vfs.FS
	wanted func(Ino) bool
	newest map[Ino]uint64 // the number of the change that a record is from
	found  map[Ino]*Inode
}

// each reads the files of a kind. One that cannot be read has nothing to say.
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

// take is told of each record, or with a nil one that there is none any more.
func (s *salvage) take(key, record []byte, seq uint64) {
	if len(key) != 9 || key[0] != keyInode {
		return
	}
	ino := tail(key)
	if was, known := s.newest[ino]; known && was > seq {
		return
	}
	n, err := decodeInode(record)
	switch {
	case record != nil && err != nil:
		return
	case record == nil:
		delete(s.found, ino)
	case !n.IsDir() && !s.wanted(ino):
		return
	default:
		s.found[ino] = n
	}
	s.newest[ino] = seq
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
	iter, err := r.NewIter(block.NoTransforms, []byte{keyInode}, behind([]byte{keyInode}), sstable.AssertNoBlobHandles)
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
		s.take(kv.K.UserKey, record, uint64(kv.K.SeqNum()))
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
				s.take(key, record, seq)
			case kind == pebble.InternalKeyKindDelete:
				s.take(key, nil, seq)
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

// records visits the records of a log that are whole, past what is damaged.
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
