package bucket

import (
	"strings"

	"github.com/wsmount/wsmount/providers"
)

// beside ends the name of a directory whose plain name a file has. A name that
// ends so by itself has the ending twice.
const beside = "%2F"

// Own is the name, at the root, below which wsmount keeps its own objects. Keys of trial objects
// begin with Scratch, below the prefix.
const (
	Own     = ".wsmount"
	Scratch = Own + "/probe-"
)

func isOwn(l providers.Locator) bool { return !l.IsRoot() && l.Parts()[0] == Own }

// place is the location of a Locator in the bucket.
type place struct {
	l   providers.Locator
	key string // of the object; "" where there can be none
	dir string // the prefix of the keys below
	// partial: l ends inside a long name, and keys that begin with dir may
	// belong to another.
	partial bool
	// files are the objects that the Locator says lie beside directories of
	// the same name: without them, it names nothing.
	files []string
	isDir bool // it names a directory, because its last name says so
}

// isOdd reports whether a key has a segment that POSIX allows no name to be.
// Some services take it for a direction and change something else.
func isOdd(key string) bool {
	for segment := range strings.SplitSeq(strings.TrimSuffix(key, "/"), "/") {
		if segment == "" && key != "" || segment == "." || segment == ".." || strings.IndexByte(segment, 0) >= 0 {
			return true
		}
	}
	return false
}

// find is the place of l.
func (p *Provider) find(l providers.Locator) (place, error) {
	at := place{l: l, dir: p.prefix}
	if l.IsRoot() {
		return at, nil
	}
	key, err := l.Key()
	if err != nil {
		start, err := l.Prefix()
		at.dir, at.partial = p.prefix+string(start), true
		return at, err
	}
	var segments []string
	for segment := range strings.SplitSeq(string(key), "/") {
		plain, marked := unmark(segment)
		segments = append(segments, plain)
		at.isDir = marked
		if marked {
			at.files = append(at.files, p.prefix+strings.Join(segments, "/"))
		}
	}
	at.key = p.prefix + strings.Join(segments, "/")
	at.dir = at.key + "/"
	if at.isDir {
		at.key = ""
	}
	return at, nil
}

// unmark reads a segment of a Locator's key: the segment of the object's, and
// whether it is a directory beside a file.
func unmark(segment string) (plain string, marked bool) {
	for n := 0; ; n++ {
		rest, ok := strings.CutSuffix(segment, beside)
		if !ok {
			plain = segment + strings.Repeat(beside, n/2)
			return plain, n%2 == 1
		}
		segment = rest
	}
}

// mark is the opposite of unmark.
func mark(plain string, marked bool) string {
	segment, n := plain, 0
	for ; strings.HasSuffix(segment, beside); n++ {
		segment = strings.TrimSuffix(segment, beside)
	}
	segment += strings.Repeat(beside, 2*n)
	if marked {
		segment += beside
	}
	return segment
}

// locate is the Locator of the key base+rest, where base is the prefix of the keys below l; with
// isDir, of the directory. marked tells whether a directory, given by its key without the last
// slash, is beside a file.
func locate(l providers.Locator, base, rest string, isDir bool, marked func(dir string) bool) (providers.Locator, error) {
	segments := strings.Split(rest, "/")
	at := base
	for i, segment := range segments {
		at += segment
		last := i == len(segments)-1
		segments[i] = mark(segment, (isDir || !last) && marked(at))
		at += "/"
	}
	return l.Child(providers.Key(strings.Join(segments, "/")).Locator().Parts()...)
}
