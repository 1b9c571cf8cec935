package seam

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/wsmount/wsmount/providers"
)

// Store is a Backend over a provider. Make it with New.
type Store struct {
	p    providers.Provider
	look providers.Provider // p, without versions
	made *madeDirs          // nil where the provider keeps directories without entries
}

var _ Conditional = (*Store)(nil)

// New is a Backend over p, which it closes when it is closed. Where p cannot keep a
// directory without entries, the Store remembers those that it made for as long as it
// lives.
func New(p providers.Provider) *Store {
	s := &Store{p: p, look: providers.Glancing(p)}
	if !p.Capabilities().EmptyDirs {
		s.made = &madeDirs{}
	}
	return s
}

// Resolve implements Backend.
func (s *Store) Resolve(parts ...string) (Locator, error) { return Locator{}.Child(parts...) }

// Capabilities implements Backend.
func (s *Store) Capabilities() Capabilities { return PromisesOf(s.p.Capabilities()) }

// PromisesOf are those of a backend over a provider with these capabilities. A promise that holds
// only after a push is left out, since no Backend pushes: until then a writer of another process
// does not see the change.
func PromisesOf(c providers.Capabilities) Capabilities {
	return Capabilities{
		ConcurrentWriters: c.ConcurrentWriters && !c.Abilities.Has(providers.AbilityPush), ConflictFiles: c.ConflictFiles,
		Encryption: c.Encryption, Sync: c.Sync,
	}
}

// Close implements Backend.
func (s *Store) Close() error { return s.p.Close() }

// stat is the provider's entry at l, or the directory that was made at l.
func (s *Store) stat(ctx context.Context, l providers.Locator) (providers.Info, error) {
	info, err := s.look.Stat(ctx, l)
	if errors.Is(err, providers.ErrNotExist) {
		if made, ok := s.made.at(l); ok {
			return made, nil
		}
	}
	return info, err
}

// Read implements Backend.
func (s *Store) Read(ctx context.Context, l Locator) (string, error) {
	data, _, err := s.fetch(ctx, l)
	if err != nil {
		return "", fail(providers.MethodRead, l, err)
	}
	content := string(data)
	if err := CheckText(l, content); err != nil {
		return "", err
	}
	return content, nil
}

// fetch is the file at l. During a write some services tell the new version before they send the
// new content: a caller that believed it would replace content, as known, that it has not read.
// So content is fetched again until it fits its digest, which is soon.
func (s *Store) fetch(ctx context.Context, l Locator) ([]byte, providers.Info, error) {
	for pause := time.Millisecond; ; pause *= 2 {
		data, info, err := providers.Fetch(ctx, s.p, l.at, providers.ReadOptions{})
		switch {
		case errors.Is(err, providers.ErrNotExist):
			if _, ok := s.made.at(l.at); ok {
				err = providers.ErrIsDir
			}
		case err == nil && info.Kind == providers.KindSymlink:
			err = errSymlink
		case err == nil && !isOf(info.Digest, data):
			if pause > longestPause {
				return nil, info, fmt.Errorf("what comes is not what its digest (%s) says: %w", info.Digest, providers.ErrCorrupt)
			}
			select {
			case <-ctx.Done():
				return nil, info, ctx.Err()
			case <-time.After(pause):
				continue
			}
		}
		return data, info, err
	}
}

const longestPause = time.Second

// isOf reports whether content has a digest, as far as its algorithm is known.
func isOf(digest string, data []byte) bool {
	h, want := providers.Hasher(digest)
	if h == nil {
		return true
	}
	h.Write(data)
	return hex.EncodeToString(h.Sum(nil)) == want
}

// errSymlink: a provider never follows a link, so the target is not known.
var errSymlink = fmt.Errorf("a symbolic link is there: %w", providers.ErrUnsupported)

func fail(op providers.Method, l Locator, err error) error {
	return providers.Fail("", op, l.at, err, providers.ErrUnavailable)
}

// Write implements Backend. It looks at the old entry first: a link would be replaced and a
// directory hidden, and metadata and attributes of the file are to stay.
func (s *Store) Write(ctx context.Context, l Locator, content string) (Locator, error) {
	if err := CheckText(l, content); err != nil {
		return Locator{}, err
	}
	old, err := s.stat(ctx, l.at)
	switch {
	case errors.Is(err, providers.ErrNotExist):
		err = nil
	case err != nil:
	case old.Kind == providers.KindDir:
		err = providers.ErrIsDir
	case old.Kind != providers.KindFile:
		err = errSymlink
	}
	if err == nil {
		old.Attr.Valid &^= providers.AttrModTime // that of the old content
		_, err = s.p.Write(ctx, l.at, providers.String(content),
			providers.WriteOptions{If: providers.Unconditional(), Attr: old.Attr, Metadata: old.Metadata})
	}
	if err != nil {
		return Locator{}, fail(providers.MethodWrite, l, err)
	}
	return l, nil
}

// List implements Backend.
func (s *Store) List(ctx context.Context, l Locator) ([]Locator, error) {
	names := s.made.names(l.at)
	for info, err := range providers.All(ctx, s.look, l.at, providers.ListOptions{}) {
		if errors.Is(err, providers.ErrNotExist) || errors.Is(err, providers.ErrNotDir) {
			break
		}
		if err != nil {
			return nil, fail(providers.MethodList, l, err)
		}
		names = append(names, info.Locator.Name())
	}
	return Children(l, names)
}

// Exists implements Backend.
func (s *Store) Exists(ctx context.Context, l Locator) (bool, error) {
	_, err := s.stat(ctx, l.at)
	if errors.Is(err, providers.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// Info implements Backend. A symbolic link is itself, and not its target.
func (s *Store) Info(ctx context.Context, l Locator) (Info, error) {
	info, err := s.stat(ctx, l.at)
	if err != nil {
		return Info{}, err
	}
	return Info{Locator: l, IsDir: info.Kind == providers.KindDir, Size: info.Size, ModTime: info.ModTime()}, nil
}

// Mkdir implements Backend.
func (s *Store) Mkdir(ctx context.Context, l Locator) (Locator, error) {
	var err error
	switch {
	case s.made == nil:
		_, err = s.p.Mkdir(ctx, l.at, providers.MkdirOptions{})
	case !s.p.Capabilities().Writable:
		err = providers.ErrReadOnly
	default:
		err = s.remember(ctx, l.at)
	}
	if err != nil {
		return Locator{}, fail(providers.MethodMkdir, l, err)
	}
	return l, nil
}

// remember is Mkdir where the provider cannot.
func (s *Store) remember(ctx context.Context, l providers.Locator) error {
	for at := l; !at.IsRoot(); at = at.Parent() {
		info, err := s.p.Stat(ctx, at)
		switch {
		case errors.Is(err, providers.ErrNotExist):
			continue
		case err != nil:
			return err
		case info.Kind == providers.KindDir:
		case at == l:
			return providers.ErrExist
		default:
			return providers.ErrNotDir
		}
		break
	}
	s.made.add(l)
	return nil
}
