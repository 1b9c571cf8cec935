package upload

import (
	"fmt"
	"strings"

	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
	"github.com/wsmount/wsmount/providers"
)

// Verb is what an operation does.
type Verb uint8

const (
	VerbNone    Verb = iota
	VerbWrite        // content, or a symbolic link, to the name
	VerbMkdir        // a directory
	VerbDelete       // what is there
	VerbMove         // an inode from another name to this one
	VerbCopy         // the same, but the other name stays
	VerbAttr         // attributes
	VerbResolve      // find out what became of an attempt
	VerbEmpty        // look at a directory that is to be moved key by key
	VerbPart         // part a directory from its place at the remote
	VerbAdopt        // a directory takes the place of one that was removed
)

var verbs = [...]string{"", "write", "mkdir", "delete", "rename", "copy", "attributes", "settle", "list", "rename", "mkdir"}

func (v Verb) String() string { return verbs[v] }

// Of an Attempt: what it does.
const (
	AttemptWrite uint8 = iota + 1
	AttemptCopy
	AttemptMove // recorded under the new name
	AttemptGone // the same, recorded under the old one
	AttemptAttr
	AttemptMkdir
	AttemptDelete
	AttemptSet // as a part of a set
)

// Operation is the next thing to do for a name: one request, or one change of the
// table alone. What it says of places at the remote holds while it runs.
type Operation struct {
	Verb Verb
	Link table.Link
	Ino  table.Ino         // whose content or directory it is about; 0: of no one here
	At   providers.Locator // of Link
	Cond providers.Condition

	From   table.Link // of a move or copy
	FromAt providers.Locator
	Source *table.Remote // what is there

	Dir     bool // it is about a directory
	Size    int64
	Attempt *table.Attempt // that is to be settled
}

func (s *Operation) String() string { return fmt.Sprintf("%s %s", s.Verb, s.At) }

// Sends reports whether it sends content.
func (s *Operation) Sends() bool { return s.Verb == VerbWrite }

// Names are those that nothing else may touch meanwhile.
func (s *Operation) Names() []table.Link {
	if s.From == (table.Link{}) {
		return []table.Link{s.Link}
	}
	return []table.Link{s.Link, s.From}
}

// Sides tells, for the log, what there is locally under its names and what the remote was
// last known to have.
func (s *Operation) Sides(v *tree.View) string {
	var text strings.Builder
	for _, l := range s.Names() {
		rec := v.Record(l)
		at, _ := v.RemotePath(l)
		fmt.Fprintf(&text, "%s here %d", at, rec.Ino)
		if n := v.Inode(rec.Ino); n != nil {
			fmt.Fprintf(&text, " (generation %d of %d, state %d, at %v)", n.ContentVersion, n.Origin.ContentVersion, n.State, n.RemoteLinks)
		}
		if b := rec.Remote; b != nil {
			fmt.Fprintf(&text, " there %d (generation %d, %+v)", b.Ino, b.ContentVersion, b.Version)
		}
		if rec.Attempt != nil {
			fmt.Fprintf(&text, " attempt %+v", *rec.Attempt)
		}
		text.WriteString("; ")
	}
	return text.String()
}

// movesTree reports whether places below its own are concerned.
func (s *Operation) movesTree() bool {
	return s.Dir && (s.Verb == VerbMove || s.Verb == VerbDelete || s.Verb == VerbResolve) || s.Verb == VerbPart || s.Verb == VerbAdopt
}

// places are where it changes or reads something at the remote.
func (s *Operation) places() []providers.Locator {
	if s.From == (table.Link{}) {
		return []providers.Locator{s.At}
	}
	return []providers.Locator{s.At, s.FromAt}
}

// Collides reports whether two operations are about the same place, or one's place
// is below a place where the other moves the tree.
func (s *Operation) Collides(t *Operation) bool {
	for _, a := range s.places() {
		for _, b := range t.places() {
			if a == b || s.movesTree() && a.Contains(b) || t.movesTree() && b.Contains(a) {
				return true
			}
		}
	}
	return false
}

// Lost lists the names that may be others' than was known, after err.
func (s *Operation) Lost(err error) []table.Link {
	if s.Verb == VerbMove || s.Verb == VerbCopy || s.Verb == VerbResolve && s.From != (table.Link{}) {
		return []table.Link{s.From, s.Link}
	}
	return []table.Link{s.Link}
}
