package origin

import (
	"context"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/wsmount/wsmount/mountspec"
)

// A Source reads the files of an origin, as they were at one moment if its store has
// revisions. It follows no link.
type Source interface {
	// Read returns a regular file, by its slash-separated path. fs.ErrNotExist where there
	// is none; another error for one that is not regular, or has more than most bytes.
	Read(ctx context.Context, name string, most int64) ([]byte, error)
	// Dirs names the directories in one, which need not exist: at most most.
	Dirs(ctx context.Context, name string, most int) ([]string, error)
	// Close releases what the reading holds. It has no error: nothing can be lost.
	Close()
}

// Bounds of the reading of one origin.
const (
	mostBytes = mountspec.MaxFrontmatter // of a file
	mostFiles = 64
)

// Files are the manifests of one workspace at a source. Each is read once, so that the
// content that was checked is the one in use. It is for one goroutine.
type Files struct {
	ctx context.Context
	src Source
	got map[string][]byte
}

// NewFiles reads a source for as long as ctx lasts.
func NewFiles(ctx context.Context, src Source) *Files {
	return &Files{ctx: ctx, src: src, got: map[string][]byte{}}
}

// Read returns a manifest, by its path. fs.ErrNotExist where there is none.
func (f *Files) Read(name string) ([]byte, error) {
	if data, ok := f.got[name]; ok {
		return data, nil
	}
	switch {
	case !filepath.IsLocal(name):
		return nil, fmt.Errorf("%q is not below the workspace", name)
	case path.Ext(name) != ".md":
		return nil, fmt.Errorf("%s: the name of a manifest ends in .md, and no other file is fetched", name)
	case len(f.got) >= mostFiles:
		return nil, fmt.Errorf("%s: no more than %d files are fetched", name, mostFiles)
	}
	data, err := f.src.Read(f.ctx, name, mostBytes)
	if err != nil {
		return nil, err
	}
	f.got[name] = data
	return data, nil
}

// Dirs names the directories in one, at most most.
func (f *Files) Dirs(name string, most int) ([]string, error) {
	return f.src.Dirs(f.ctx, filepath.Clean(name), most)
}

// Recorded are files that were fetched before, by their paths.
type Recorded map[string]string

var _ Source = Recorded{}

// Read implements Source.
func (r Recorded) Read(_ context.Context, name string, _ int64) ([]byte, error) {
	text, ok := r[name]
	if !ok {
		return nil, &fs.PathError{Op: "read", Path: name, Err: fs.ErrNotExist}
	}
	return []byte(text), nil
}

// Dirs implements Source.
func (r Recorded) Dirs(_ context.Context, name string, most int) (dirs []string, _ error) {
	for file := range r {
		below, in := strings.CutPrefix(file, name+"/")
		if dir, _, deeper := strings.Cut(below, "/"); in && deeper && !slices.Contains(dirs, dir) && len(dirs) < most {
			dirs = append(dirs, dir)
		}
	}
	slices.Sort(dirs)
	return dirs, nil
}

// Close implements Source.
func (Recorded) Close() {}
