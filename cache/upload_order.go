package cache

import "github.com/wsmount/wsmount/cache/internal/table"

// order is what a walk has passed that is not done yet.
type order struct{ moving, deleting, soft, content bool }

// class says with what an operation may run at the same time.
type class uint8

const (
	classContent class = iota
	classSoft
	classDelete
	classMove
)

func (o *order) pass(c class) {
	switch c {
	case classContent:
		o.content = true
	case classSoft:
		o.soft = true
	case classDelete:
		o.deleting = true
	case classMove:
		o.moving = true
	}
}

// lets reports whether an operation may begin beside what was passed.
func (o *order) lets(c class, inOrder bool) bool {
	switch c {
	case classContent, classSoft:
		return !o.moving && !o.deleting
	case classDelete:
		return !o.moving && !o.soft && !(inOrder && o.content)
	}
	return !o.moving && !o.deleting && !o.soft && !(inOrder && o.content)
}

// ends reports that nothing behind an operation of this class, which may not begin,
// may begin either.
func (o *order) ends(c class) bool {
	return c == classMove || c != classDelete && o.deleting
}

// fits reports whether an operation may run beside those that run: not at the same
// place, nor where the tree is moving, nor with the same content, nor too much.
func (j *jobs) fits(s *operation) bool {
	if s.sends() && len(j.running) > 0 && j.bytes+s.size > maxBytes && j.bytes > 0 {
		return false
	}
	if s.ino != 0 && j.inodes[s.ino] != nil {
		return false
	}
	for _, t := range j.running {
		if s.collides(t.op) {
			return false
		}
	}
	return true
}

// class says beside what it may run.
func (s *operation) class() class {
	switch s.verb {
	case verbWrite:
		if s.from == (table.Link{}) {
			return classContent
		}
		return classSoft
	case verbDelete:
		return classDelete
	case verbMove, verbPart, verbAdopt:
		return classMove
	case verbResolve:
		if s.attempt.Kind == attemptMove {
			return classMove
		}
	}
	return classSoft
}
