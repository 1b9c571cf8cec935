package partial

import (
	"context"
	"io"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/git/internal/object"
	"github.com/wsmount/wsmount/providers/git/internal/odb"
	"github.com/wsmount/wsmount/providers/git/internal/space"
)

// A service has contents, and remembers which it was asked for.
type service struct {
	objects *odb.Store
	mu      sync.Mutex // guards all below
	asked   []id
	turns   []bool // with news
}

func newService(t *testing.T, contents ...string) (s *service, blobs []id) {
	dir := t.TempDir()
	s = &service{objects: assert.Of(odb.Open(filepath.Join(dir, "objects"), filepath.Join(dir, "private"), space.Disk{})).OK(t)}
	t.Cleanup(func() { assert.OK(t, s.objects.Close()) })
	b := assert.Of(s.objects.NewBatch()).OK(t)
	for _, content := range contents {
		blobs = append(blobs, assert.Of(b.Add(odb.Blob, []byte(content))).OK(t))
	}
	assert.OK(t, b.Finish())
	return s, blobs
}

func (s *service) server() Server {
	return Server{Ask: s.ask, Now: time.Now, Turn: func(context.Context) func(bool) {
		return func(news bool) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.turns = append(s.turns, news)
		}
	}}
}

func (s *service) ask(_ context.Context, blobs []id, receive func(io.Reader) error) error {
	s.mu.Lock()
	s.asked = append(s.asked, blobs...)
	s.mu.Unlock()
	pack, err := s.objects.NewPack()
	if err != nil {
		return err
	}
	for _, blob := range blobs {
		content, err := s.objects.Get(blob, odb.Blob)
		if err != nil {
			return err
		}
		if _, err := pack.Add(odb.Blob, content); err != nil {
			return err
		}
	}
	r, err := pack.Pack()
	if err != nil {
		return err
	}
	defer r.Close()
	return receive(r)
}

// head makes a commit with files of some contents, the first in the root and the others each in a
// directory below.
func head(t *testing.T, objects *odb.Store, blobs []id) id {
	b := assert.Of(objects.NewBatch()).OK(t)
	tree := id{}
	for _, blob := range slices.Backward(blobs) {
		entries := []object.Entry{{Name: "file", Mode: object.ModeFile, ID: blob}}
		if !tree.IsZero() {
			entries = append(entries, object.Entry{Name: "dir", Mode: object.ModeDir, ID: tree})
		}
		tree = assert.Of(b.Add(odb.Tree, object.EncodeTree(entries))).OK(t)
	}
	who := object.Signature{Name: "A", Email: "a@b.test", When: time.Unix(1_700_000_000, 0)}
	c := assert.Of(b.Add(odb.Commit, object.Commit{Tree: tree, Author: who, Committer: who, Message: "c\n"}.Encode())).OK(t)
	assert.OK(t, b.Finish())
	return c
}

// All missing contents of a commit come by themselves, each once, and then the clone is whole. The
// last turn tells the others that nothing is missing.
func TestAllCome(t *testing.T) {
	t.Parallel()
	s, blobs := newService(t, "one", "two", "three")
	w, objects := newBlobs(t)
	c := head(t, objects, blobs)
	w.in.Heads = func() ([]id, error) { return []id{c}, nil }
	w.From(s.server())
	assert.OK(t, w.Without())
	assert.True(t, w.MayMiss() && w.IsPromised(blobs[1]), "it counts as whole")
	w.Begin()
	assert.Eventually(t, "whole", func() bool { return w.Clone().Kind == providers.CloneFull })
	w.End()
	assert.True(t, w.in.State() == Whole && !w.MayMiss() && !w.IsPromised(blobs[1]), "it counts as partial", w.in.State())
	assert.Equal(t, len(s.asked), len(blobs), "asked for")
	for _, blob := range blobs {
		assert.True(t, objects.Has(blob) && slices.Contains(s.asked, blob), blob)
	}
	assert.True(t, len(s.turns) > 1 && s.turns[len(s.turns)-1], "news of turns", s.turns)
}

// On demand only the contents come that a caller needs, or that are read from the database.
func TestOnDemand(t *testing.T) {
	t.Parallel()
	s, blobs := newService(t, "one", "two", "three")
	w, objects := newBlobs(t)
	c := head(t, objects, blobs)
	w.in.Heads = func() ([]id, error) { return []id{c}, nil }
	server := s.server()
	server.OnDemand = true
	w.From(server)
	assert.OK(t, w.Without())
	w.Begin()
	assert.OK(t, w.Need(t.Context(), blobs[1]))
	content := assert.Of(objects.Get(blobs[2], odb.Blob)).OK(t)
	assert.Equal(t, string(content), "three")
	assert.OK(t, w.Need(t.Context(), blobs[1], blobs[2]))
	assert.OK(t, w.FetchSmall(t.Context(), c))
	w.End()
	assert.Slice(t, s.asked, blobs[1:])
	assert.Equal(t, w.in.State(), Missing)
	assert.Equal(t, w.Clone().Kind, providers.CloneBlobless)
}

// A commit with few files has all of its contents at once, which are asked for together.
func TestFetchSmall(t *testing.T) {
	t.Parallel()
	s, blobs := newService(t, "one", "two", "three")
	w, objects := newBlobs(t)
	c := head(t, objects, blobs)
	w.From(s.server())
	assert.OK(t, w.FetchSmall(t.Context(), c))
	assert.Equal(t, len(s.asked), 0, "of a clone that has all")
	assert.OK(t, w.Without())
	assert.OK(t, w.FetchSmall(t.Context(), c))
	assert.Equal(t, len(s.asked), len(blobs))
	assert.False(t, slices.ContainsFunc(blobs, w.IsPromised), "not local")
	w.End()
}

// While a reference moves, and until all that it leads to was looked through, the clone does not
// count as whole. A commit whose blobs may be missing makes it partial again.
func TestMoving(t *testing.T) {
	t.Parallel()
	s, _ := newService(t)
	w, _ := newBlobs(t)
	w.From(s.server())
	end, err := w.Moving(true)
	assert.OK(t, err)
	end()
	assert.False(t, w.MayMiss(), "a clone that was never without blobs")
	assert.OK(t, w.Without())
	w.ahead.again.Store(false)
	end, err = w.Moving(false)
	assert.OK(t, err)
	assert.OK(t, w.complete())
	assert.Equal(t, w.in.State(), Missing, "while a reference moves")
	end()
	assert.OK(t, w.complete())
	assert.Equal(t, w.in.State(), Missing, "before it was looked through")
	w.ahead.again.Store(false)
	assert.OK(t, w.complete())
	assert.Equal(t, w.in.State(), Whole)
	end, err = w.Moving(true)
	assert.OK(t, err)
	end()
	assert.True(t, w.MayMiss() && w.in.State() == Missing, "after a commit that was local")
	w.End()
}
