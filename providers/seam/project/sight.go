package project

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// seen is the state of a registered checkout's root on this machine.
type seen struct {
	real       string // its real name, or the registered one where nothing is at it
	here       bool   // something is: other machines have theirs under other names
	gone       bool   // nothing is at it, and this machine registered it
	silent     bool   // not known, since it did not answer
	repository string // as of a checkout
}

// looking is the function that looks at a root, and its time limit. A root may be on a server
// that is gone, where a look never ends.
var looking = struct {
	at       func(root string) seen
	patience time.Duration
}{look, 2 * time.Second}

// sight looks at all roots of a list at once.
func sight(list []Repo) []seen {
	type answer struct {
		i int
		seen
	}
	at, answers, out := looking.at, make(chan answer, len(list)), make([]seen, len(list))
	for i, r := range list {
		out[i] = seen{real: filepath.Clean(r.Root), silent: true}
		go func() { answers <- answer{i, at(r.Root)} }()
	}
	late := time.After(looking.patience)
	for range list {
		select {
		case a := <-answers:
			out[a.i] = a.seen
		case <-late:
			return out
		}
	}
	return out
}

func look(root string) (s seen) {
	s.real = realRoot(root)
	_, err := os.Stat(root)
	if s.here = filepath.IsAbs(root) && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR); s.here {
		s.repository, _, _ = readGit(s.real) // unreadable: shared with no other checkout
	}
	return s
}

// recall adds the memory of a registered checkout that is missing.
func (s *seen) recall(r Repo, own []registration) {
	if s.here || s.silent {
		return
	}
	for _, o := range own {
		if o.is(r.Slug, r.Root) {
			s.gone, s.repository = true, o.Repository
		}
	}
}

// is reports whether it is a checkout, or another work tree of its repository.
func (s seen) is(c checkout) bool {
	return s.real == c.root || c.repository != "" && s.repository == c.repository
}
