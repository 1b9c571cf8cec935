package commit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"syscall"
	"testing"

	"github.com/wsmount/wsmount/cache/internal/pending"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
	"github.com/wsmount/wsmount/cache/internal/upload"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
)

// sent is what became of the content of a set.
type sent struct {
	*desk
	set   *Set
	o     BodyOptions
	fails error // of packing
	found Findings
	done  []int
}

// newSent has the file of a desk sent, which is open or not, as two changes, and one change
// without content.
func newSent(t *testing.T, isOpen bool) *sent {
	t.Helper()
	s := &sent{desk: newDesk(t), found: Findings{}}
	p := s.begin()
	p.Size = int64(len("first"))
	other := *p
	s.set = &Set{Changes: make([]providers.Change, 3), Bodies: []*Planned{p, nil, &other}}
	s.o = BodyOptions{
		Tree: s.tree, IsOpen: func(*tree.View, table.Ino) bool { return isOpen }, Guard: &Guard{MaxFile: 5, Secrets: &Secrets{}},
		Pack: func(ctx context.Context, p *Planned) (*upload.Payload, error) {
			if s.fails != nil {
				return nil, s.fails
			}
			return s.now(ctx, p.Ino)
		},
		Found: func(ino table.Ino, f Finding) { s.found[ino] = f }, Moving: func() {},
		Progress: func(done, _ int) { s.done = append(s.done, done) }, Log: slog.New(slog.DiscardHandler),
	}
	return s
}

// send opens the content, and reads all of it as a provider does.
func (s *sent) send() (text string, err error) {
	s.Helper()
	b, err := s.set.Open(s.Context(), s.o)
	if err != nil {
		return "", err
	}
	defer b.Close()
	for _, c := range s.set.Changes {
		if c.Body.Reader == nil {
			continue
		}
		data, err := io.ReadAll(c.Body.Reader)
		if err != nil {
			return "", b.Cause(fmt.Errorf("%w: %w", providers.ErrBody, err))
		}
		assert.Equal(s, int64(len(data)), c.Body.Size, "size")
		text += string(data) + " "
	}
	return text, nil
}

// Content is sent whether it is open or not. What is not is opened one after the other.
func TestBodies(t *testing.T) {
	for _, isOpen := range []bool{true, false} {
		s := newSent(t, isOpen)
		text := assert.Of(s.send()).OK(t)
		assert.Equal(t, text, "first first ", "open", isOpen)
		assert.Equal(t, len(s.done) == 2, !isOpen, "read to their end")
	}
}

// What goes wrong with content is told of the name that it is of, whether the provider says
// so or not; another error stays as it is.
func TestBodyErrors(t *testing.T) {
	for _, isOpen := range []bool{true, false} {
		for _, c := range []struct {
			what string
			is   func(error) bool
			make func(*sent)
		}{
			{"it cannot be opened", func(err error) bool { return errors.Is(err, syscall.EIO) }, func(s *sent) { s.fails = syscall.EIO }},
			{"it has grown", func(err error) bool {
				return errors.Is(err, upload.ErrAgain) != isOpen && (pending.RefusalOf(err) != nil) == isOpen
			},
				func(s *sent) { s.write("longer") }},
			{"it holds a secret", func(err error) bool { return pending.RefusalOf(err) != nil && pending.RefusalOf(err).Secret },
				func(s *sent) {
					s.o.Guard.MaxFile = 100
					s.write(value)
					s.set.Bodies[0].Size = 10
					s.o.Guard.Secrets.Add("key", value)
				}},
		} {
			s := newSent(t, isOpen)
			c.make(s)
			_, err := s.send()
			var of *BodyError
			assert.True(t, errors.As(err, &of) && of.Link == root("f") && c.is(of.Err), c.what, err)
		}
	}
	s := newSent(t, true)
	b := assert.Of(s.set.Open(t.Context(), s.o)).OK(t)
	defer b.Close()
	assert.Is(t, b.Cause(providers.ErrQuota), providers.ErrQuota)
	assert.Is(t, b.Cause(providers.ErrBody), providers.ErrBody)
}

// All content is searched after a secret was found in some, and let go of again.
func TestSearchAll(t *testing.T) {
	s := newSent(t, false)
	s.o.Guard.MaxFile = 100
	s.write("a" + value)
	for i, ino := range []table.Ino{x, 99, x} {
		s.set.Bodies[i] = &Planned{Link: root("f"), Ino: ino, Kind: providers.KindFile, Size: 11}
	}
	b := assert.Of(s.set.Open(t.Context(), s.o)).OK(t)
	s.o.Guard.Secrets.Add("key", value)
	b.SearchAll(t.Context())
	assert.True(t, len(s.found) == 1 && pending.RefusalOf(s.found[x].Err) != nil, "found", s.found)
}
