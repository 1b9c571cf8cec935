package azure

import (
	"context"
	"errors"
	"strings"

	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/internal/bucket"
)

// A directory of the service's own is the blob "dir", without content and with metadata that
// mark it as one. Package bucket knows it as "dir/". In a hierarchical namespace each directory
// is one; elsewhere those made by blobfuse2 and Hadoop are, beside markers, which rclone and
// this package make with the same metadata.

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

// first asks for each blob that a key may be, until one exists.
func first[O any](s *store, key string, ask func(name string) (O, error)) (out O, err error) {
	for _, name := range s.names(key) {
		if out, err = ask(name); !errors.Is(err, providers.ErrNotExist) {
			break
		}
	}
	return out, err
}

// there are the blobs of a key to change: the existing ones, of which the first is the one of
// Head, or the one to make.
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

// asKey is a blob as package bucket knows it, for a requested key. A directory is no file.
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

// itself is the directory that is listed, whose blob is not below its own name.
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
