package upload

import (
	"fmt"
	"strings"

	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
	"github.com/wsmount/wsmount/providers"
)

// Verb is the kind of an operation.
type Verb uint8

const (
	VerbNone    Verb = iota
	VerbWrite        // content, or a symbolic link, to the name
	VerbMkdir        // a directory
	VerbDelete       // the remote's entry
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

// The kinds of an Attempt.
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

// Operation is the next step for a name: one request, or one change of the table alone. Its remote
// places are valid while it runs.
type Operation struct {
	Verb Verb
	Link table.Link
	Ino  table.Ino         // the inode with its content or directory; 0: none that is local
	At   providers.Locator // of Link
	Cond providers.Condition

	From   table.Link // of a move or copy
	FromAt providers.Locator
	Source *table.Remote // the remote's entry there

	Dir     bool // it is about a directory
	Size    int64
	Attempt *table.Attempt // to be resolved
}

func (s *Operation) String() string { return fmt.Sprintf("%s %s", s.Verb, s.At) }

// Sends reports whether it sends content.
func (s *Operation) Sends() bool { return s.Verb == VerbWrite }

// Names are those that no other operation may touch meanwhile.
func (s *Operation) Names() []table.Link {
	if s.From == (table.Link{}) {
		return []table.Link{s.Link}
	}
	return []table.Link{s.Link, s.From}
}

// Sides shows, for the log, the local inodes of its names and the last known remote entries.
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

// places are the remote places that it changes or reads.
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

// Lost lists the names that another change may have taken, after err.
func (s *Operation) Lost(err error) []table.Link {
	if s.Verb == VerbMove || s.Verb == VerbCopy || s.Verb == VerbResolve && s.From != (table.Link{}) {
		return []table.Link{s.From, s.Link}
	}
	return []table.Link{s.Link}
}
