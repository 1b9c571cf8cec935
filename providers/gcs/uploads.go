package gcs

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/api/storage/v1"

	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/internal/bucket"
)

const (
	composeMax = 32 // objects that one request composes
	atOnce     = 16 // requests of an upload
	cleanTime  = time.Minute
)

// uploads is the prefix of the keys of all parts; the id of an upload and a slash follow.
func (s *store) uploads() string { return s.config.Prefix + bucket.Own + "/upload-" }

func (s *store) partsOf(u bucket.Upload) string { return s.uploads() + u.ID + "/" }

// Begin implements bucket.Store. It sends nothing: an id is its time, and a random text.
func (s *store) Begin(context.Context, string, bucket.Making) (id string, err error) {
	return fmt.Sprintf("%d-%s", s.now().UnixNano(), rand.Text()), nil
}

// began is when an upload began, by its id.
func began(id string) (time.Time, bool) {
	told, _, _ := strings.Cut(id, "-")
	n, err := strconv.ParseInt(told, 10, 64)
	return time.Unix(0, n), err == nil
}

// Part implements bucket.Store. Damage on the way is noticed afterwards, which is soon enough:
// a part is not part of a file before it is composed.
func (s *store) Part(ctx context.Context, u bucket.Upload, n int, body *bucket.Outgoing) (bucket.Part, error) {
	o, err := s.Put(ctx, s.partsOf(u)+partName(n), body, bucket.Making{})
	if err != nil {
		return bucket.Part{}, err
	}
	return bucket.Part{ETag: o.ETag, MD5: o.MD5}, nil
}

func partName(n int) string { return fmt.Sprintf("%05d", n) }

// CopyPart implements bucket.Store.
func (s *store) CopyPart(ctx context.Context, u bucket.Upload, n int, from bucket.Object, offset, size int64) (bucket.Part, error) {
	if offset == 0 && size == from.Size {
		o, err := s.Copy(ctx, from, s.partsOf(u)+partName(n), bucket.Making{})
		return bucket.Part{ETag: o.ETag}, gone(err)
	}
	source, content, err := s.Get(ctx, from.Key, bucket.Range{Offset: offset, Length: size, ETag: from.ETag})
	if err != nil {
		return bucket.Part{}, gone(err)
	}
	defer content.Close()
	if offset+size > source.Size {
		return bucket.Part{}, &bucket.Fault{Kind: providers.ErrInvalid, Doubt: bucket.RangeBeyond, Err: fmt.Errorf("%d bytes from %d, of %d", size, offset, source.Size)}
	}
	through := bucket.NewOutgoing(ctx, providers.Body{Reader: content, Size: size})
	part, err := s.Part(ctx, u, n, through)
	if err == nil {
		err = through.Check(part.MD5)
	}
	return part, err
}

// gone is the error for a source that does not exist any more.
func gone(err error) error {
	if errors.Is(err, providers.ErrNotExist) {
		return &bucket.Fault{Kind: providers.ErrConflict, Code: noObject, Err: err}
	}
	return err
}

// Complete implements bucket.Store. The parts are deleted once the object exists; AbortBefore
// finds those whose deletion fails.
func (s *store) Complete(ctx context.Context, u bucket.Upload, parts []bucket.Part, m bucket.Making) (bucket.Object, error) {
	var temporary []string
	size := int64(0)
	for _, part := range parts {
		temporary = append(temporary, s.partsOf(u)+partName(part.N))
		size += part.Size
	}
	sources, made, err := s.larger(ctx, u, parts)
	if err != nil {
		return bucket.Object{}, err
	}
	o, err := s.compose(ctx, u.Key, sources, m)
	if err == nil && o.Size != size {
		err = fmt.Errorf("%w: composed %d bytes, and there are %d", providers.ErrCorrupt, size, o.Size)
	}
	if err != nil {
		return bucket.Object{}, err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanTime)
	defer cancel()
	if err := s.deleteAll(ctx, append(temporary, made...)); err != nil {
		s.log.DebugContext(ctx, "parts of an upload stay", "key", u.Key, "error", err)
	}
	return o, nil
}

// source is an object to compose.
type source struct {
	key, etag string
}

// larger composes one object of each 32 parts, until one request can compose all. made are the
// keys of those objects.
func (s *store) larger(ctx context.Context, u bucket.Upload, parts []bucket.Part) (sources []source, made []string, err error) {
	for _, part := range parts {
		sources = append(sources, source{s.partsOf(u) + partName(part.N), part.ETag})
	}
	for level := 1; len(sources) > composeMax; level++ {
		groups := slices.Collect(slices.Chunk(sources, composeMax))
		next := make([]source, len(groups))
		for i := range groups {
			next[i].key = fmt.Sprintf("%s%d-%s", s.partsOf(u), level, partName(i))
			made = append(made, next[i].key)
		}
		err := inTurns(len(groups), func(i int) error {
			o, err := s.compose(ctx, next[i].key, groups[i], bucket.Making{})
			next[i].etag = o.ETag
			return err
		})
		if err != nil {
			return nil, nil, err
		}
		sources = next
	}
	return sources, made, nil
}

// inTurns calls f with each number below n, some at once, and ends after the first that fail.
func inTurns(n int, f func(i int) error) error {
	for from := 0; from < n; from += atOnce {
		var turn []func() error
		for i := from; i < min(n, from+atOnce); i++ {
			turn = append(turn, func() error { return f(i) })
		}
		if err := bucket.Together(turn...); err != nil {
			return err
		}
	}
	return nil
}

// compose makes an object of others, in one step. Missing sources mean that the upload was
// completed before, or aborted.
func (s *store) compose(ctx context.Context, key string, sources []source, m bucket.Making) (bucket.Object, error) {
	r := &storage.ComposeRequest{Destination: composed(m)}
	for _, one := range sources {
		generation, _, err := cutETag(one.etag)
		if err != nil {
			return bucket.Object{}, err
		}
		r.SourceObjects = append(r.SourceObjects, &storage.ComposeRequestSourceObjects{
			Name: one.key, ObjectPreconditions: &storage.ComposeRequestSourceObjectsObjectPreconditions{IfGenerationMatch: generation},
		})
	}
	options, err := preconditions(m.If)
	if err != nil {
		return bucket.Object{}, err
	}
	o, err := describe(ctx, s, "objects.compose", s.api.Objects.Compose(s.config.Bucket, key, r), options...)
	if errors.Is(err, providers.ErrNotExist) {
		err = &bucket.Fault{Kind: providers.ErrConflict, Code: noObject, Err: errors.New("the upload is gone")}
	}
	return o, err
}

// Abort implements bucket.Store.
func (s *store) Abort(ctx context.Context, u bucket.Upload) error {
	keys, err := s.temporary(ctx, s.partsOf(u))
	if err != nil {
		return err
	}
	return s.deleteAll(ctx, keys)
}

// AbortBefore implements bucket.Store.
func (s *store) AbortBefore(ctx context.Context, prefix string, before time.Time) (int, error) {
	all := prefix + bucket.Own + "/upload-"
	keys, err := s.temporary(ctx, all)
	if err != nil {
		return 0, err
	}
	old := map[string][]string{}
	for _, key := range keys {
		id, _, isPart := strings.Cut(strings.TrimPrefix(key, all), "/")
		if at, ok := began(id); ok && isPart && at.Before(before) {
			old[id] = append(old[id], key)
		}
	}
	count := 0
	for _, id := range slices.Sorted(maps.Keys(old)) {
		if err := s.deleteAll(ctx, old[id]); err != nil {
			return count, err
		}
		count++
	}
	return count, nil
}

// temporary are the keys with a prefix.
func (s *store) temporary(ctx context.Context, prefix string) (keys []string, err error) {
	for q := (bucket.Query{Prefix: prefix}); ; {
		page, err := s.List(ctx, q)
		if err != nil {
			return nil, err
		}
		for _, it := range page.Items {
			keys = append(keys, it.Key)
		}
		if !page.More {
			return keys, nil
		}
		q.Token = page.Next
	}
}

// deleteAll deletes those of some keys that exist; no other writer uses them.
func (s *store) deleteAll(ctx context.Context, keys []string) error {
	return inTurns(len(keys), func(i int) error {
		err := s.Delete(ctx, keys[i], providers.Unconditional())
		if errors.Is(err, providers.ErrNotExist) {
			return nil
		}
		return err
	})
}
