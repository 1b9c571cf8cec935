package cache

import (
	"bytes"
	"context"
	"crypto/md5"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"strings"

	"github.com/wsmount/wsmount/cache/internal/content"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/providers"
)

// readRemoteVersion gives all content of a version at the backend to use.
func (v *Volume) readRemoteVersion(ctx context.Context, p providers.Provider, r providers.Info, use func([]byte)) error {
	return v.retry(ctx, func(ctx context.Context) error {
		data, _, err := providers.Fetch(ctx, p, r.Locator, providers.ReadOptions{Version: r.Version})
		if err == nil {
			use(data)
		}
		return err
	})
}

// readLocal gives the content of an inode to read, and its size.
func (v *Volume) readLocal(ctx context.Context, x table.Ino, read func(io.Reader) error) (int64, error) {
	locked := v.lock()
	n := locked.table.Inode(x)
	if n == nil {
		locked.unlock()
		return 0, fs.ErrStale
	}
	link, target, state := n.IsSymlink(), n.Target, n.State
	locked.unlock()
	switch {
	case link && target == "":
		if err := v.fetchTarget(nil, x); err != nil {
			return 0, err
		}
		locked = v.lock()
		if n := locked.table.Inode(x); n != nil {
			target = n.Target
		}
		locked.unlock()
		fallthrough
	case link:
		return int64(len(target)), read(strings.NewReader(target))
	case state == table.None:
		return v.readRemote(ctx, x, read)
	}
	f, err := v.store.Open(x)
	if err != nil {
		return 0, fmt.Errorf("content: %w", err)
	}
	defer f.Release()
	return v.readFile(ctx, x, f, read)
}

// readFile reads a consistent state of a content file.
func (v *Volume) readFile(ctx context.Context, x table.Ino, f *content.File, read func(io.Reader) error) (int64, error) {
	if !f.Whole() {
		f.SetSource(v.source(x, nil))
	}
	s, err := f.Snapshot(ctx)
	if err != nil {
		return 0, err
	}
	defer s.Close()
	return s.Size(), read(s.Reader())
}

// readRemote reads content that is not here from where the backend has it,
// without keeping it.
func (v *Volume) readRemote(ctx context.Context, x table.Ino, read func(io.Reader) error) (int64, error) {
	locked := v.lock()
	at, version, ok := locked.OriginAt(x)
	locked.unlock()
	if !ok {
		return 0, fs.ErrStale
	}
	var data []byte
	err := v.readRemoteVersion(ctx, v.p, providers.Info{Locator: at, Version: version}, func(b []byte) { data = b })
	if isElsewhere(err) {
		return 0, fmt.Errorf("%w: %w", errMoved, err)
	}
	if err != nil {
		return 0, err
	}
	return int64(len(data)), read(bytes.NewReader(data))
}

// digest compares with a hash that a backend has given.
type digest struct {
	hash.Hash
	want string
}

func newDigest(text string) digest {
	kind, want, _ := strings.Cut(text, ":")
	switch kind {
	case "sha256":
		return digest{sha256.New(), want}
	case "md5":
		return digest{md5.New(), want} // as above
	}
	return digest{sha256.New(), ""}
}

func (d digest) known() bool { return d.want != "" }

func (d digest) matches() bool { return hex.EncodeToString(d.Sum(nil)) == strings.ToLower(d.want) }
