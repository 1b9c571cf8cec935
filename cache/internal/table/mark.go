package table

import (
	"errors"
	"fmt"
	"hash/crc32"
	"strconv"
	"strings"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// The mark is a file beside the database that says how far the newest log goes: one that ends
// earlier was cut off, which Pebble would take for the torn end of the last write. It is written
// after the log, without a sync, each time that the log has grown by markStep: it survives a
// kill, as the log's bytes do, and so it is checked after a kill only. It leaves the last
// markStep bytes out, since the cause of the process's end may have damaged them.
//
// The mark is never ahead of the log. Where it is missing, or speaks of a log before the
// newest, it says nothing.

// markStep bounds the bytes that are written to a log between two marks.
const markStep = 4 << 10

const markText = "%020d %020d" // the number of the log, and bytes

func markPath(dir string) string { return dir + ".mark" }

// mark writes the file. The zero value writes nothing.
type mark struct {
	mu   sync.Mutex // guards all
	file vfs.File   // nil: none
	log  uint64
	size int64 // of it, when it was last written
	told func(error)
}

// open opens the file. If it cannot be opened or written, a damaged log may look torn, and
// no more: told gets the error.
func (m *mark) open(files vfs.FS, path string, told func(error)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f, err := files.OpenReadWrite(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		told(err)
		return
	}
	m.file, m.told = f, told
}

// wrote notes the size of a log.
func (m *mark) wrote(log uint64, size int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.file == nil || log < m.log || log == m.log && size-m.size < markStep {
		return
	}
	m.log, m.size = log, size
	if _, err := m.file.WriteAt(encodeMark(log, max(0, size-markStep)), 0); err != nil {
		m.told(errors.Join(err, m.file.Close()))
		m.file = nil
	}
}

func (m *mark) close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.file == nil {
		return nil
	}
	f := m.file
	m.file = nil
	return f.Close()
}

func encodeMark(log uint64, size int64) []byte {
	text := fmt.Sprintf(markText, log, size)
	return fmt.Appendf(nil, "%s %08x\n", text, crc32.Checksum([]byte(text), castagnoli))
}

func decodeMark(text string) (log uint64, size int64, ok bool) {
	if _, err := fmt.Sscanf(text, markText, &log, &size); err != nil {
		return 0, 0, false
	}
	return log, size, text == string(encodeMark(log, size))
}

// logNumber is the number of a log; false for another file.
func logNumber(file string) (uint64, bool) {
	number, is := strings.CutSuffix(file, ".log")
	n, err := strconv.ParseUint(number, 10, 64)
	return n, is && err == nil
}
