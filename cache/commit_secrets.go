package cache

import (
	"context"
	"io"
	"strings"
	"sync"

	"github.com/wsmount/wsmount/cache/internal/needle"
	"github.com/wsmount/wsmount/cache/internal/upload"
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

// wait waits until no value is expected, or ctx ends.
func (s *Secrets) wait(ctx context.Context) error {
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

// searched is content that is searched while it is read. It fails where a secret
// ends.
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

// searched has content searched for the secrets that are known, as it goes by.
func (s *set) searched(r io.Reader, p *body) io.Reader {
	known := s.c.v.o.Guard.Secrets.needles()
	if known == nil {
		return r
	}
	return &searched{r: r, search: known.Search(), found: func(name string) error {
		err := &guardError{text: "it holds the value of the secret " + name + ": take it out, or exclude or ignore the file", secret: true}
		if p.parcel == nil {
			p.parcel = &upload.Payload{}
		}
		p.parcel.Failed = err
		locked := s.c.v.lock()
		s.c.found[p.Ino] = finding{p.Gen, known, err}
		locked.unlock()
		return err
	}}
}

// searchAll searches all content of a set, which was refused for a secret in one
// of its files: the next set is without the others that hold one, and is not
// refused for each of them in turn.
func (s *set) searchAll(ctx context.Context) {
	defer s.closeBodies()
	for _, p := range s.bodies {
		if p == nil {
			continue
		}
		body, err := s.body(ctx, p)
		if err == nil {
			_, err = io.Copy(io.Discard, body.Reader)
		}
		if err != nil && guardOf(err) == nil {
			s.c.v.o.Log.Debug("content is not searched yet", "name", p.Link.Name, "err", err)
		}
	}
}
