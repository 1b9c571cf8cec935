package azure

import (
	"context"
	"errors"
	"strings"

	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/internal/bucket"
)

// A directory of the service's own is the blob "dir", which has no content and says in its
// metadata what it is. Package bucket knows it as "dir/". Where the namespace is
// hierarchical each directory is one; elsewhere those are that blobfuse2 and Hadoop made,
// beside markers, which rclone makes with the same metadata. So are those that are made here.

// names are the blobs that a key may be, the likeliest first.
func (s *store) names(key string) []string {
	plain, isDir := strings.CutSuffix(key, "/")
	switch {
	case !isDir || plain == "":
		return []string{key}
	case s.hierarchical.Load():
		return []string{plain}
	case s.folders.Load():
		return []string{key, plain}
	}
	return []string{key}
}

// first asks for each blob that a key may be, until one is there.
func first[O any](s *store, key string, ask func(name string) (O, error)) (out O, err error) {
	for _, name := range s.names(key) {
		if out, err = ask(name); !errors.Is(err, providers.ErrNotExist) {
			break
		}
	}
	return out, err
}

// there are the blobs of a key to change: those that are there, of which the first is the one
// that Head tells of, or the one to make.
func (s *store) there(ctx context.Context, key string) (found []string, err error) {
	names := s.names(key)
	if len(names) == 1 {
		return names, nil
	}
	for _, name := range names {
		_, isFolder, err := s.describe(ctx, name)
		if err != nil && !errors.Is(err, providers.ErrNotExist) {
			return nil, err
		}
		if err == nil && (isFolder || name == key) {
			found = append(found, name)
		}
	}
	if found == nil {
		found = names[:1]
	}
	return found, nil
}

// asKey is a blob as package bucket knows it, which asked for a key. A directory is no file.
func (s *store) asKey(o bucket.Object, key string, isFolder bool) (bucket.Object, error) {
	if isFolder && !strings.HasSuffix(o.Key, "/") {
		s.folders.Store(true)
	}
	isDir := strings.HasSuffix(key, "/") && !strings.HasSuffix(o.Key, "/")
	if isFolder && !strings.HasSuffix(key, "/") || isDir && !isFolder {
		return bucket.Object{}, &bucket.Fault{Kind: providers.ErrNotExist}
	}
	o.Key = key
	return o, nil
}

// itself is the directory whose entries a listing tells, which is not below its own name.
func (s *store) itself(ctx context.Context, q bucket.Query) (item bucket.Item, found bool, err error) {
	own := s.hierarchical.Load() || s.folders.Load()
	if !own || q.Token+q.After != "" || !strings.HasSuffix(q.Prefix, "/") || q.Prefix == "/" {
		return item, false, nil
	}
	o, isFolder, err := s.describe(ctx, strings.TrimSuffix(q.Prefix, "/"))
	if errors.Is(err, providers.ErrNotExist) || err == nil && !isFolder {
		return item, false, nil
	}
	o.Key = q.Prefix
	return bucket.Item{Object: o}, err == nil, err
}
