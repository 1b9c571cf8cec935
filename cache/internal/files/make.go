package files

import (
	"context"
	"io"

	"github.com/wsmount/wsmount/cache/internal/content"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
)

// Made is content that no name has yet.
type Made struct {
	Ino          table.Ino
	Size, Blocks int64
}

// Make makes content from the bytes of from, for an inode to come that is to have a path.
// After an error, one of from too, there is none.
func Make(ctx context.Context, t *tree.Tree, s *content.Store, path string, from io.Reader) (Made, error) {
	return makeContent(ctx, t, s, path, from, func(*content.File) error { return nil })
}

// MakeDurable is Make, and the disk has the content when it returns.
func MakeDurable(ctx context.Context, t *tree.Tree, s *content.Store, path string, from io.Reader) (Made, error) {
	return makeContent(ctx, t, s, path, from, (*content.File).Sync)
}

func makeContent(ctx context.Context, t *tree.Tree, s *content.Store, path string, from io.Reader, finish func(*content.File) error) (m Made, err error) {
	m.Ino = t.Lock().Alloc()
	t.Unlock()
	defer func() {
		if err != nil {
			s.Remove(m.Ino)
			m = Made{}
		}
	}()
	f, err := s.Create(m.Ino, path)
	if err != nil {
		return m, err
	}
	_, err = Copy(&appender{ctx: ctx, f: f}, from, pieceSize)
	f.Release()
	if err != nil {
		return m, err
	}
	if f, err = s.Open(m.Ino); err != nil { // its preallocated room is given back by now
		return m, err
	}
	defer f.Release()
	m.Size, m.Blocks = f.Size(), f.Blocks()
	return m, finish(f)
}

// appender writes content from its start to its end.
type appender struct {
	ctx context.Context
	f   *content.File
	off int64
}

func (a *appender) Write(p []byte) (n int, err error) {
	n, err = a.f.WriteAt(a.ctx, p, a.off)
	a.off += int64(n)
	return n, err
}
