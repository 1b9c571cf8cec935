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

// Secrets are values that are not to get into a repository. They are kept in
// memory only, and never printed: who is told of one is told its name. The zero
// value is empty and ready; a nil one stays empty. All methods may be used at the
// same time.
type Secrets struct {
	mu    sync.Mutex // guards what follows
	names map[string]string
	all   []needle.Needle
	set   *needle.Set // of all; nil: there are none

	expected int
	known    chan struct{} // closed when nothing is expected any more
}

// minSecret is how long a value is at least: shorter ones are in much that is no
// secret.
const minSecret = 8

// Add has a value looked for from now on: as it is, as in JSON and in URLs, and
// in base64 wherever it begins there, with no line break in it.
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

// Expect has commits wait for values that are on their way, until done is called:
// once, also when they do not come.
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

// needles is what is looked for now; nil: nothing.
func (s *Secrets) needles() *needle.Set {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.set
}

// Holds reports whether a text holds a secret that is known.
func (s *Secrets) Holds(text string) bool {
	known := s.needles()
	if known == nil {
		return false
	}
	_, found := known.Search().Next([]byte(text))
	return found
}

// Search has content of a version searched for the secrets that are known, as it goes by.
// Reading fails where one ends, and found is told.
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

// Finding is a secret in content of a version, of those that were known.
type Finding struct {
	version uint64
	set     *needle.Set
	Err     error
}

// Findings are what was found in content, by inode: it need not be read again to know it.
// They have no lock of their own.
type Findings map[table.Ino]Finding

// Clone is a copy, which a set is made with.
func (f Findings) Clone() Findings { return maps.Clone(f) }

// Keep forgets what a set that was made with a copy has found not to hold any more.
func (f Findings) Keep(of Findings) {
	maps.DeleteFunc(f, func(ino table.Ino, _ Finding) bool {
		_, holds := of[ino]
		return !holds
	})
}

// check gives what was found in content of a version, and forgets what was found in another,
// or of other secrets.
func (f Findings) check(ino table.Ino, version uint64, known *Secrets) error {
	is, ok := f[ino]
	if ok && is.version == version && is.set == known.needles() {
		return is.Err
	}
	delete(f, ino)
	return nil
}
