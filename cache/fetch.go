package cache

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/providers"
)

// fetchRange is how much one read asks for.
const fetchRange = 8 << 20

// errMoved says that the version that was listed is not there any more.
var errMoved = errors.New("the listed version is gone")

// fetch brings the content of an inode here.
func (v *Volume) fetch(w *waiting, ino fs.Ino) error {
	t, err := v.begin(w, ino, false)
	if err != nil {
		return err
	}
	defer t.end()
	l, version, ok := v.source(ino, t.paths)
	if !ok {
		return fs.ErrStale
	}
	err = v.download(w, ino, l, version)
	switch {
	case errors.Is(err, errMoved):
		if err := v.revive(w, l, ino); err != nil {
			return err
		}
		return fmt.Errorf("%w: %w", fs.ErrStale, err)
	case err != nil:
		v.store.discard(ino)
		return err
	}
	return v.arrived(ino, version.Size)
}

// source is where the backend has the content of an inode.
func (v *Volume) source(ino fs.Ino, paths []providers.Locator) (providers.Locator, providers.Version, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, l := range paths {
		if k := v.base.get(l); k != nil && k.ino == ino && k.gen != 0 {
			return l, k.version, true
		}
	}
	return providers.Locator{}, providers.Version{}, false
}

// arrived makes what was downloaded the content, unless a program truncated
// the file meanwhile.
func (v *Volume) arrived(ino fs.Ino, size int64) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	n := v.table.node(ino)
	if n == nil || n.present {
		v.store.discard(ino)
		return nil
	}
	if err := v.store.adopt(ino); err != nil {
		return err
	}
	n.present, n.size = true, size
	v.table.save(ino, n)
	return nil
}

// download reads a version into the part file and checks it.
func (v *Volume) download(w *waiting, ino fs.Ino, l providers.Locator, version providers.Version) error {
	f, err := v.store.part(ino)
	if err != nil {
		return err
	}
	defer f.Close()
	v.store.name(f, l.String())
	digest := ""
	for off := int64(0); off < version.Size || off == 0; off += fetchRange {
		err := v.retry(w, func(ctx context.Context) error {
			info, err := v.downloadRange(ctx, f, l, providers.ReadOptions{
				Offset: off, Length: min(fetchRange, version.Size-off), Version: version})
			digest = info.Digest
			return err
		})
		if errors.Is(err, providers.ErrConflict) || errors.Is(err, providers.ErrNotExist) {
			return fmt.Errorf("%w: %w", errMoved, err)
		}
		if err != nil {
			return fmt.Errorf("fetch: %w", err)
		}
	}
	return verify(f, l, digest)
}

// downloadRange writes one range to its place in f.
func (v *Volume) downloadRange(ctx context.Context, f *os.File, l providers.Locator, o providers.ReadOptions) (providers.Info, error) {
	c, err := v.p.Read(ctx, l, o)
	if err != nil {
		return providers.Info{}, err
	}
	defer c.Body.Close()
	// One byte more than asked for, so that too much is seen too.
	body := io.LimitReader(&progress{ctx, c.Body}, o.Length+1)
	n, err := io.Copy(io.NewOffsetWriter(f, o.Offset), body)
	if err == nil && n != o.Length {
		err = fmt.Errorf("%d bytes at %d came instead of %d: %w", n, o.Offset, o.Length, providers.ErrCorrupt)
	}
	if err != nil {
		return providers.Info{}, providers.Fail(v.o.Provider, providers.MethodRead, l, err, providers.ErrUnavailable)
	}
	return c.Info, nil
}

// progress tells whoever waits, if somebody does, of every read that brought
// something.
type progress struct {
	ctx context.Context
	r   io.Reader
}

func (p *progress) Read(b []byte) (int, error) {
	n, err := p.r.Read(b)
	if w, ok := p.ctx.(*waiting); ok && n > 0 {
		w.moved()
	}
	return n, err
}

// verify compares a file with a digest, if it is of a kind that we know.
func verify(f *os.File, l providers.Locator, digest string) error {
	want, ok := strings.CutPrefix(digest, "sha256:")
	if !ok {
		return nil
	}
	h := sha256.New()
	if _, err := io.Copy(h, io.NewSectionReader(f, 0, 1<<62)); err != nil {
		return err
	}
	if got := hex.EncodeToString(h.Sum(nil)); got != want {
		err := fmt.Errorf("the hash is %s instead of %s", got, want)
		return &providers.Error{Op: providers.MethodRead, Locator: l, Kind: providers.ErrCorrupt, Err: err}
	}
	return nil
}

// maxTarget is the longest target of a symbolic link that Linux takes.
const maxTarget = 4095

// fetchTarget brings the target of a symbolic link here.
func (v *Volume) fetchTarget(w *waiting, ino fs.Ino) error {
	t, err := v.begin(w, ino, false)
	if err != nil {
		return err
	}
	defer t.end()
	l, version, ok := v.source(ino, t.paths)
	if !ok {
		return fs.ErrStale
	}
	var target []byte
	err = v.retry(w, func(ctx context.Context) error {
		target, _, err = providers.Fetch(ctx, v.p, l, providers.ReadOptions{Version: version, Length: maxTarget + 1})
		return err
	})
	switch {
	case errors.Is(err, providers.ErrConflict) || errors.Is(err, providers.ErrNotExist):
		if err := v.revive(w, l, ino); err != nil {
			return err
		}
		return fmt.Errorf("%w: %w", fs.ErrStale, err)
	case err != nil:
		return err
	case len(target) == 0 || len(target) > maxTarget:
		return fmt.Errorf("a link with a target of %d bytes: %w", len(target), providers.ErrCorrupt)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if n := v.table.node(ino); n != nil {
		n.extra().target = string(target)
		n.size = int64(len(target))
		v.table.save(ino, n)
	}
	return nil
}
