package table

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"log/slog"
	"path"
	"strings"
)

// Pebble takes whatever it cannot read in its newest log, and in the manifest, for the torn
// end of the last write, and goes on without the rest. After a kill that is right: all
// written bytes exist, but for a part of the last write. So when an unreadable record is
// complete, or a readable one follows it, the file was damaged since. After a power cut
// that proves nothing: a disk writes in any order.
//
// A file beside the database, written with the first commit of each session, tells which of
// the two it was: it names the boot that the session ran in.
// first commit of each session: the boot that it ran in.

// inspector looks at the files of a table before Pebble does.
type inspector struct {
	disk *disk
	dir  string // of the table
	boot string // the present one; "": not known
	log  *slog.Logger
}

func bootPath(dir string) string { return dir + ".boot" }

// sameBoot reports whether the machine has run all the time since the last
// session began.
func (i inspector) sameBoot() bool {
	text, err := readFile(i.disk, bootPath(i.dir))
	return err == nil && i.boot != "" && text == i.boot
}

// setBoot notes the boot in which a session begins.
func (i inspector) setBoot() {
	if i.sameBoot() {
		return
	}
	if err := writeFile(i.disk, i.disk.PathDir(i.dir), bootPath(i.dir), i.boot); err != nil {
		i.log.Warn("the boot of the table was not written", slog.Any("err", err))
	}
}

// checkHoles looks for damage that Pebble would not see.
func (i inspector) checkHoles(db string) error {
	if !i.sameBoot() {
		return nil
	}
	logs, err := i.disk.List(i.disk.logs)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, name := range logs {
		n, is := logNumber(name)
		if !is {
			continue
		}
		if err := i.checkHole(i.disk.PathJoin(i.disk.logs, name), uint32(n)); err != nil {
			return err
		}
	}
	if err := i.checkMark(logs); err != nil {
		return err
	}
	names, err := i.disk.List(db)
	if err != nil {
		return err
	}
	for _, name := range names {
		if strings.HasPrefix(name, "MANIFEST-") {
			if err := i.checkHole(i.disk.PathJoin(db, name), 0); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkHole looks at one file of records; log is its number if it is a log.
func (i inspector) checkHole(file string, log uint32) error {
	content, err := i.readAll(file)
	if err != nil {
		return err
	}
	end, closed := readable(content, log)
	if closed || end == len(content) {
		return nil
	}
	if size, _ := chunk(blockFrom(content, end), log); size > 0 {
		return fmt.Errorf("%w: %s has %d bytes at %d that are not what was written", ErrDamaged, path.Base(file), size, end)
	}
	if at, ok := nextChunk(content, end+1, log); ok {
		return fmt.Errorf("%w: %s cannot be read at %d, and can be at %d", ErrDamaged, path.Base(file), end, at)
	}
	return nil
}

// checkMark compares the newest of some logs with the mark.
func (i inspector) checkMark(logs []string) error {
	text, err := readFile(i.disk, markPath(i.dir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	marked, size, ok := decodeMark(text)
	if !ok {
		i.log.Warn("the mark of the table cannot be read, and is made anew", slog.String("text", text))
		return nil
	}
	name := ""
	for _, file := range logs {
		switch n, is := logNumber(file); {
		case is && n > marked:
			return nil
		case is && n == marked:
			name = file
		}
	}
	end := 0
	if name != "" {
		content, err := i.readLog(name)
		if err != nil {
			return err
		}
		end, _ = readable(content, uint32(marked))
	}
	if int64(end) < size {
		return fmt.Errorf("%w: log %06d ends at %d, and had more than %d bytes", ErrDamaged, marked, end, size)
	}
	return nil
}

// readLog reads a log, by its name in the directory of logs.
func (i inspector) readLog(name string) ([]byte, error) {
	return i.readAll(i.disk.PathJoin(i.disk.logs, name))
}

func (i inspector) readAll(file string) ([]byte, error) {
	f, err := i.disk.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(f)
}

// blockFrom is the rest of a block from a place on.
func blockFrom(content []byte, at int) []byte {
	return content[at:min(at+blockSize-at%blockSize, len(content))]
}

// The constants are the layout of a file by Pebble's package record: blocks, and in them
// chunks with a checksum, which in a log have its number.
const (
	blockSize = 32 << 10
	plainHead = 7
	logHead   = plainHead + 4
)

// readable is up to which place a file of records is chunk after chunk, and whether a chunk
// of an older log proves that it ends there.
func readable(content []byte, log uint32) (end int, closed bool) {
	for at := 0; at < len(content); {
		left, rest := blockSize-at%blockSize, blockFrom(content, at)
		size, ok := chunk(rest, log)
		switch {
		case ok:
			at += size
		case left < logHead: // zeros, since no chunk fits
			at += left
		case log != 0 && len(rest) >= logHead && binary.LittleEndian.Uint32(rest[plainHead:]) == log+1:
			return at, true // the rest is of an older log
		default:
			return at, false
		}
	}
	return len(content), false
}

// nextChunk finds a chunk at any place from one on.
func nextChunk(content []byte, from int, log uint32) (at int, ok bool) {
	for at := from; at < len(content); at++ {
		if _, ok := chunk(blockFrom(content, at), log); ok {
			return at, true
		}
	}
	return 0, false
}

// chunk reports whether b, which ends with its block, begins with a chunk. The size is also
// above 0 for a chunk that is complete and has a wrong checksum.
func chunk(b []byte, log uint32) (size int, ok bool) {
	head, kinds := plainHead, byte(0) // a kind above kinds, and up to 4 more
	if log != 0 {
		head, kinds = logHead, 4
	}
	if len(b) < head || b[6] <= kinds || b[6] > kinds+4 || log != 0 && binary.LittleEndian.Uint32(b[plainHead:]) != log {
		return 0, false
	}
	size = head + int(binary.LittleEndian.Uint16(b[4:]))
	if size > len(b) {
		return 0, false
	}
	sum := crc32.Checksum(b[6:size], castagnoli)
	return size, binary.LittleEndian.Uint32(b) == (sum>>15|sum<<17)+0xa282ead8
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)
