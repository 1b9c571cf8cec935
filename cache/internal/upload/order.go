package upload

import "github.com/wsmount/wsmount/cache/internal/table"

// Order holds the classes of operations that a walk has passed and that are not done yet.
type Order struct{ moving, deleting, soft, content bool }

// Class says beside which operations one may run.
type Class uint8

const (
	classContent Class = iota
	classSoft
	classDelete
	classMove
)

// Pass notes an operation of a class that is passed.
func (o *Order) Pass(c Class) {
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

// Lets reports whether an operation may begin beside those that were passed.
func (o *Order) Lets(c Class, inOrder bool) bool {
	switch c {
	case classContent, classSoft:
		return !o.moving && !o.deleting
	case classDelete:
		return !o.moving && !o.soft && !(inOrder && o.content)
	}
	return !o.moving && !o.deleting && !o.soft && !(inOrder && o.content)
}

// Ends reports that no operation behind one of this class, which may not begin, may begin either.
func (o *Order) Ends(c Class) bool {
	return c == classMove || c != classDelete && o.deleting
}

// Class says beside which others it may run.
func (s *Operation) Class() Class {
	switch s.Verb {
	case VerbWrite:
		if s.From == (table.Link{}) {
			return classContent
		}
		return classSoft
	case VerbDelete:
		return classDelete
	case VerbMove, VerbPart, VerbAdopt:
		return classMove
	case VerbResolve:
		if s.Attempt.Kind == AttemptMove {
			return classMove
		}
	}
	return classSoft
}

// IsMoving reports whether a rename was passed, which nothing overtakes.
func (o *Order) IsMoving() bool { return o.moving }
