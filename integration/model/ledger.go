package model

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// DirMark stands for a directory where a Digest stands for a file.
const DirMark = "directory"

// Digest tells contents apart.
func Digest(content []byte) string { return fmt.Sprintf("%.6x", sha256.Sum256(content)) }

// Digests lists a tree: the Digest of each file and DirMark for each directory,
// by path. What vanishes meanwhile is an error.
func Digests(dir string) (map[string]string, error) {
	seen := map[string]string{}
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || p == dir {
			return err
		}
		rel := strings.TrimPrefix(p, dir+"/")
		if d.IsDir() {
			seen[rel] = DirMark
			return nil
		}
		content, err := os.ReadFile(p)
		seen[rel] = Digest(content)
		return err
	})
	return seen, err
}

// A ledger knows all contents that were ever written, each of them different
// from all others, and which of them must still be somewhere.
type ledger struct {
	next   int
	known  map[string]entry
	live   map[string]bool
	past   map[string]bool // seen, and replaced or removed
	doubts int
}

type entry struct{ path, digest string }

func newLedger() *ledger {
	return &ledger{known: map[string]entry{Digest(nil): {}}, live: map[string]bool{}, past: map[string]bool{}}
}

// make is a new content of about size bytes.
func (l *ledger) make(who, path string, size int) []byte {
	l.next++
	line := fmt.Appendf(nil, "content %d of %s for %q\n", l.next, who, path)
	return bytes.Repeat(line, 1+size/len(line))
}

// wrote: the writer was told that content is written. It may have been replaced
// already: what a file has while it is open is stored when another descriptor of
// it is closed, and whoever sees it in the store may replace it before the
// writer closes his.
func (l *ledger) wrote(path string, content []byte) string {
	d := Digest(content)
	l.known[d] = entry{path, d}
	if len(content) > 0 && !l.past[d] {
		l.live[d] = true
	}
	return d
}

// expect: the content may be seen, but nobody was told yet that it is written.
func (l *ledger) expect(path string, content []byte) {
	d := Digest(content)
	if _, ok := l.known[d]; !ok {
		l.known[d] = entry{path, d}
	}
}

// replaced: a writer who had seen content replaced or removed it.
func (l *ledger) replaced(content []byte) {
	d := Digest(content)
	delete(l.live, d)
	l.past[d] = true
}

// moved: what lay at a path, or below it, has another. It need not be what the
// mover saw there.
func (l *ledger) moved(from, to string) {
	for d := range l.live {
		e := l.known[d]
		if e.path == from || strings.HasPrefix(e.path, from+"/") {
			e.path = to + strings.TrimPrefix(e.path, from)
			l.known[d] = e
		}
	}
}

// doubt: something at path was replaced or removed that the writer had not
// seen, because it changed in between, as can happen on any disk.
func (l *ledger) doubt(path string) {
	for d := range l.live {
		if l.known[d].path == path {
			delete(l.live, d)
			l.doubts++
		}
	}
}

func (l *ledger) has(digest string) bool { _, ok := l.known[digest]; return ok }

// missing lists what must be in a tree and is not.
func (l *ledger) missing(tree map[string]string) []entry {
	there := map[string]bool{}
	for _, d := range tree {
		there[d] = true
	}
	var lost []entry
	for d := range l.live {
		if !there[d] {
			lost = append(lost, l.known[d])
		}
	}
	return lost
}
