package cache

import (
	"fmt"

	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/providers"
)

// verb is what an operation does.
type verb uint8

const (
	verbNone    verb = iota
	verbWrite        // content, or a symbolic link, to the name
	verbMkdir        // a directory
	verbDelete       // what is there
	verbMove         // an inode from another name to this one
	verbCopy         // the same, but the other name stays
	verbAttr         // attributes
	verbResolve      // find out what became of an attempt
	verbEmpty        // look at a directory that is to be moved key by key
	verbPart         // part a directory from its place at the backend
	verbAdopt        // a directory takes the place of one that was removed
)

var verbs = [...]string{"", "write", "mkdir", "delete", "rename", "copy", "attributes", "settle", "list", "rename", "mkdir"}

func (v verb) String() string { return verbs[v] }

// Of an Attempt: what it does.
const (
	attemptWrite uint8 = iota + 1
	attemptCopy
	attemptMove // recorded under the new name
	attemptGone // the same, recorded under the old one
	attemptAttr
	attemptMkdir
	attemptDelete
	attemptSet // as a part of a set
)

// operation is the next thing to do for a name: one request, or one change of the
// table alone. What it says of places at the backend holds while it runs.
type operation struct {
	verb verb
	link table.Link
	ino  table.Ino         // whose content or directory it is about; 0: of nobody here
	at   providers.Locator // of link
	cond providers.Condition

	from   table.Link // of a move or copy
	fromAt providers.Locator
	source *table.Remote // what is there

	dir     bool // it is about a directory
	size    int64
	attempt *table.Attempt // that is to be settled

	job   *job
	moved func() // there is progress
}

func (s *operation) String() string { return fmt.Sprintf("%s %s", s.verb, s.at) }

// sends reports whether it sends content.
func (s *operation) sends() bool { return s.verb == verbWrite }

// names are those that nothing else may touch meanwhile.
func (s *operation) names() []table.Link {
	if s.from == (table.Link{}) {
		return []table.Link{s.link}
	}
	return []table.Link{s.link, s.from}
}

// tree reports whether places below its own are concerned.
func (s *operation) tree() bool {
	return s.dir && (s.verb == verbMove || s.verb == verbDelete || s.verb == verbResolve) || s.verb == verbPart || s.verb == verbAdopt
}

// places are where it changes or reads something at the backend.
func (s *operation) places() []providers.Locator {
	if s.from == (table.Link{}) {
		return []providers.Locator{s.at}
	}
	return []providers.Locator{s.at, s.fromAt}
}

// collides reports whether two operations are about the same place, or one's place
// is below a place where the other moves the tree.
func (s *operation) collides(t *operation) bool {
	for _, a := range s.places() {
		for _, b := range t.places() {
			if a == b || s.tree() && a.Contains(b) || t.tree() && b.Contains(a) {
				return true
			}
		}
	}
	return false
}

// lost lists the names that may be others' than was known, after err.
func (s *operation) lost(err error) []table.Link {
	if s.verb == verbMove || s.verb == verbCopy || s.verb == verbResolve && s.from != (table.Link{}) {
		return []table.Link{s.from, s.link}
	}
	return []table.Link{s.link}
}
