package bundle

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// ErrDamaged matches the refusal of a file that is no bundle, or a damaged one.
var ErrDamaged = errors.New("it is not a bundle as wsmount writes them")

// Unpack reads a bundle of unknown origin into an empty directory, and returns its
// list and its SHA-256. Where it fails, some may have been made in the directory. Nothing
// is synced.
func Unpack(ctx context.Context, r io.Reader, into *os.Root) (*List, string, error) {
	all := sha256.New()
	r = io.TeeReader(&patient{ctx, r}, all)
	t := tar.NewReader(r)
	l, err := readList(t)
	if err != nil {
		return nil, "", damaged(ctx, err)
	}
	for _, e := range l.Entries {
		if err := unpack(ctx, t, e, into); err != nil {
			return nil, "", err
		}
	}
	if _, err := t.Next(); !errors.Is(err, io.EOF) {
		return nil, "", damaged(ctx, errors.Join(errors.New("there is more in it than its list says"), err))
	}
	if n, err := io.Copy(io.Discard, io.LimitReader(r, 1)); err != nil || n > 0 {
		return nil, "", damaged(ctx, errors.Join(errors.New("something follows it"), err))
	}
	return l, hex.EncodeToString(all.Sum(nil)), nil
}

func damaged(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return fmt.Errorf("%w: %w", ErrDamaged, err)
}

func readList(t *tar.Reader) (*List, error) {
	h, err := t.Next()
	if err != nil {
		return nil, err
	}
	if h.Name != listName || h.Typeflag != tar.TypeReg || h.Size > maxList {
		return nil, fmt.Errorf("it does not begin with %s", listName)
	}
	text, err := io.ReadAll(t)
	if err != nil {
		return nil, err
	}
	return decode(text)
}

// unpack makes the file, directory or link of an entry of a list that was checked.
func unpack(ctx context.Context, t *tar.Reader, e Entry, into *os.Root) error {
	got, err := t.Next()
	if err != nil {
		return damaged(ctx, err)
	}
	want := e.header()
	if got.Name != want.Name || got.Typeflag != want.Typeflag || got.Size != want.Size || got.Linkname != want.Linkname {
		return damaged(ctx, fmt.Errorf("%.200q stands where its list says %.200q, or is another", got.Name, want.Name))
	}
	switch e.Type {
	case Dir:
		return into.Mkdir(e.Path, 0o755)
	case Link:
		return into.Symlink(e.Target, e.Path)
	}
	f, err := into.OpenFile(e.Path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, os.FileMode(want.Mode))
	if err != nil {
		return err
	}
	err = errors.Join(copySum(ctx, f, t, e), f.Close())
	var unwritten *fs.PathError
	if err == nil || errors.As(err, &unwritten) {
		return err
	}
	return damaged(ctx, err)
}
