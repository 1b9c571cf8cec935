package index

import (
	"bytes"
	"crypto/sha1" // the format's checksum
	"encoding/binary"
	"io"
	"slices"
	"sort"
	"strings"
)

// Entries are the places of the entries in an index, in order.
type Entries struct{ places []uint32 }

// File is a file with an index, as Write wrote it.
type File interface {
	io.ReaderAt
	io.WriterAt
}

// Except marks the entries at paths as no longer known to be unchanged, and those below paths
// that end in a slash. Size is the file's. Paths without an entry are ignored.
func (e *Entries) Except(f File, size int64, paths []string) error {
	for _, path := range paths {
		from, to, err := e.find(f, path)
		for i := from; i < to && err == nil; i++ {
			err = e.unmark(f, i)
		}
		if err != nil {
			return err
		}
	}
	sum := sha1.New()
	if _, err := io.Copy(sum, io.NewSectionReader(f, 0, size-sha1.Size)); err != nil {
		return err
	}
	_, err := f.WriteAt(sum.Sum(nil), size-sha1.Size)
	return err
}

// find are the first entry that a path reaches, and the first behind the last.
func (e *Entries) find(f File, path string) (from, to int, err error) {
	less := func(i int, bound string) bool {
		at, wrong := e.path(f, i)
		if wrong != nil {
			err = wrong
		}
		return at < bound
	}
	from = sort.Search(len(e.places), func(i int) bool { return !less(i, path) })
	below, isDir := strings.CutSuffix(path, "/")
	if !isDir {
		at := ""
		if from < len(e.places) && err == nil {
			at, err = e.path(f, from)
		}
		if at != path {
			return 0, 0, err
		}
		return from, from + 1, err
	}
	end := below + "0" // "0" follows "/" in ASCII
	return from, from + sort.Search(len(e.places)-from, func(i int) bool { return !less(from+i, end) }), err
}

// head reads the flags of an entry, and the number of bytes before its path.
func (e *Entries) head(f File, i int) (flags uint16, size int64, err error) {
	var b [2]byte
	_, err = f.ReadAt(b[:], int64(e.places[i])+headSize-2)
	flags, size = binary.BigEndian.Uint16(b[:]), headSize
	if flags&flagExtended != 0 {
		size += 2
	}
	return flags, size, err
}

func (e *Entries) path(f File, i int) (string, error) {
	_, size, err := e.head(f, i)
	if err != nil {
		return "", err
	}
	at, path := int64(e.places[i])+size, []byte(nil)
	for chunk := int64(256); ; chunk *= 2 { // most are short
		path = slices.Grow(path[:0], int(chunk))[:chunk]
		n, err := f.ReadAt(path, at)
		if end := bytes.IndexByte(path[:n], 0); end >= 0 {
			return string(path[:end]), nil
		}
		if err != nil {
			return "", err
		}
	}
}

func (e *Entries) unmark(f File, i int) error {
	flags, _, err := e.head(f, i)
	if err != nil || flags&flagUnchanged == 0 {
		return err
	}
	_, err = f.WriteAt(binary.BigEndian.AppendUint16(nil, flags&^flagUnchanged), int64(e.places[i])+headSize-2)
	return err
}
