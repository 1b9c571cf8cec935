package commit

import (
	"context"
	"io"
	"maps"
	"strings"
	"sync"

	"github.com/wsmount/wsmount/cache/internal/needle"
	"github.com/wsmount/wsmount/cache/internal/pending"
	"github.com/wsmount/wsmount/cache/internal/table"
)

// Secrets are values that must not get into a repository. They are kept in memory only, and never
// printed: messages give a secret's name. The zero value is empty and ready; a nil one stays
// empty. All methods may be called concurrently.
type Secrets struct {
	mu    sync.Mutex // guards the fields below
	names map[string]string
	all   []needle.Needle
	set   *needle.Set // of all; nil: there are none

	expected int
	known    chan struct{} // closed when nothing is expected any more
}

// minSecret is the least length of a value: shorter ones are in much content that is no secret.
const minSecret = 8

// Add begins the search for a value: as it is, as in JSON and in URLs, and in base64 at any offset
// in the encoded text, with no line break in it.
func (s *Secrets) Add(name, value string) {
	value = strings.TrimSpace(value)
	if s == nil || len(value) < minSecret {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := s.names[value]; known {
		return
	}
	if s.names == nil {
		s.names = map[string]string{}
	}
	for _, form := range needle.Forms(value) {
		if _, known := s.names[form]; !known {
			s.names[form] = name
			s.all = append(s.all, needle.Needle{Name: name, Text: []byte(form)})
		}
	}
	s.set = needle.New(s.all...)
}

// Expect makes commits wait for values that are still to be added, until done is called: once,
// even if they do not come.
func (s *Secrets) Expect() (done func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.expected++; s.expected == 1 {
		s.known = make(chan struct{})
	}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.expected--; s.expected == 0 {
			close(s.known)
		}
	}
}

// Wait waits until no value is expected, or ctx ends.
func (s *Secrets) Wait(ctx context.Context) error {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	known, expected := s.known, s.expected
	s.mu.Unlock()
	if expected == 0 {
		return nil
	}
	select {
	case <-known:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// needles are the texts that are searched for now; nil: none.
func (s *Secrets) needles() *needle.Set {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.set
}

// Holds reports whether a text holds a known secret.
func (s *Secrets) Holds(text string) bool {
	known := s.needles()
	if known == nil {
		return false
	}
	_, found := known.Search().Next([]byte(text))
	return found
}

// Search searches content of a version for the known secrets, as it goes by. The read that
// completes one fails, and found is told.
func (s *Secrets) Search(r io.Reader, version uint64, found func(Finding)) io.Reader {
	known := s.needles()
	if known == nil {
		return r
	}
	return &searched{r: r, search: known.Search(), found: func(name string) error {
		err := &pending.Refusal{Text: "it holds the value of the secret " + name + ": take it out, or exclude or ignore the file", Secret: true}
		found(Finding{version, known, err})
		return err
	}}
}

// searched is content that is searched while it is read.
type searched struct {
	r      io.Reader
	search *needle.Search
	found  func(name string) error
}

func (r *searched) Read(b []byte) (int, error) {
	n, err := r.r.Read(b)
	if name, found := r.search.Next(b[:n]); found {
		return 0, r.found(name)
	}
	return n, err
}

// Finding is a secret in content of a version, among those known at that time.
type Finding struct {
	version uint64
	set     *needle.Set
	Err     error
}

// Findings are the secrets found in content, by inode: the content need not be read again. They
// have no lock of their own.
type Findings map[table.Ino]Finding

// Clone is a copy, which a set is made with.
func (f Findings) Clone() Findings { return maps.Clone(f) }

// Keep forgets the findings that a set, made with the copy of, has found not to hold any more.
func (f Findings) Keep(of Findings) {
	maps.DeleteFunc(f, func(ino table.Ino, _ Finding) bool {
		_, holds := of[ino]
		return !holds
	})
}

// check gives the finding about content of a version, and forgets one about another version, or
// about other secrets.
func (f Findings) check(ino table.Ino, version uint64, known *Secrets) error {
	is, ok := f[ino]
	if ok && is.version == version && is.set == known.needles() {
		return is.Err
	}
	delete(f, ino)
	return nil
}
