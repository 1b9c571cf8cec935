package odb_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers/git/internal/odb"
)

// packOf receives a pack with one blob, promised or not.
func packOf(t *testing.T, s *odb.Store, content string, promised bool) odb.ID {
	t.Helper()
	b := assert.Of(s.NewPack()).OK(t)
	id := assert.Of(b.Add(odb.Blob, []byte(content))).OK(t)
	pack := assert.Of(b.Pack()).OK(t)
	defer pack.Close()
	receive := s.Receive
	if promised {
		receive = s.ReceivePromised
	}
	assert.OK(t, receive(pack))
	return id
}

// marked are the packs with a mark, and all.
func marked(t *testing.T, dir string) (promised, all []string) {
	t.Helper()
	promised, err := filepath.Glob(filepath.Join(dir, "objects", "pack", "*.promisor"))
	assert.OK(t, err)
	all, err = filepath.Glob(filepath.Join(dir, "objects", "pack", "*.pack"))
	assert.Must(t, err == nil, err)
	return promised, all
}

// What is promised is never made one with what was made here, and stays marked.
func TestRepackPromised(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	var ids [2][]odb.ID
	for i := range 40 {
		ids[0] = append(ids[0], packOf(t, s, fmt.Sprint("made ", i), false))
		ids[1] = append(ids[1], packOf(t, s, fmt.Sprint("came ", i), true))
	}
	if promised, all := marked(t, dir); len(promised) != 40 || len(all) != 80 {
		t.Fatalf("%d of %d packs are promised", len(promised), len(all))
	}
	assert.OK(t, s.Repack(t.Context()))
	promised, all := marked(t, dir)
	assert.True(t, len(promised) == 1 && len(all) == 2, len(promised), "of", len(all), "packs are promised")
	assert.Equal(t, len(s.Files()), 5, "the files are", s.Files())
	for i := range ids[0] {
		for k := range ids {
			assert.Is(t, assert.ErrOf(s.Get(ids[k][i], odb.Blob)), nil)
		}
	}
	lent, dirs := t.TempDir(), t.TempDir()
	names, err := s.Lend(lent, true)
	assert.Must(t, err == nil && len(names) == 1, names, err)
	other := open(t, dirs)
	err = other.Borrow(lent, names[0])
	assert.True(t, err == nil && other.Has(ids[1][3]) && !other.Has(ids[0][3]), "what was lent:", err)
	promised, _ = marked(t, dirs)
	assert.True(t, len(promised) == 1, "what was borrowed is not promised")
}

// A blob that is not here comes when it is needed, and says why it does not; a tree or a
// commit never does.
func TestMissing(t *testing.T) {
	s := open(t, t.TempDir())
	other := open(t, t.TempDir())
	id := packOf(t, other, "content", false)
	assert.Is(t, assert.ErrOf(s.Size(id)), odb.ErrNotFound, "a blob of nobody")
	asked, away := 0, errors.New("the server is away")
	s.Promise(func(blob odb.ID) error {
		asked++
		if away != nil {
			return away
		}
		packOf(t, s, "content", true)
		return nil
	})
	for _, get := range []func() error{
		func() error { _, err := s.Size(id); return err },
		func() error { _, err := s.Get(id, odb.Blob); return err },
		func() error { _, err := s.Open(id, 0); return err },
	} {
		assert.Is(t, get(), away, "while nothing comes")
	}
	_, err := s.Get(id, odb.Tree)
	assert.True(t, errors.Is(err, odb.ErrNotFound) && !s.Has(id) && asked == 3, "a tree:", err, asked, "requests")
	away = nil
	assert.Of(s.Size(id)).Equal(t, int64(len("content")))
}

// A mark that a crash has left without its pack goes.
func TestMarkAlone(t *testing.T) {
	dir := t.TempDir()
	packOf(t, open(t, dir), "content", true)
	promised, all := marked(t, dir)
	alone := strings.Replace(promised[0], "pack-", "pack-00", 1)
	assert.OK(t, os.WriteFile(alone, nil, 0o400))
	open(t, dir)
	now, packs := marked(t, dir)
	assert.True(t, len(now) == 1 && len(packs) == len(all) && now[0] == promised[0], "there are", now, packs)
}
