package leftover

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/wsmount/wsmount/cache"
	"github.com/wsmount/wsmount/cmd/internal/clone"
	"github.com/wsmount/wsmount/providers"
)

// Exported is what an Export wrote.
type Exported struct {
	cache.Exported
	// Bundle is the file with the commits that are not pushed, and Branches are what is in it.
	Bundle   string                     `json:"bundle,omitempty"`
	Branches []providers.UnpushedBranch `json:"branches,omitempty"`
	// Large is the directory with the content that these commits have in Git LFS, laid out as
	// .git/lfs/objects is.
	Large string `json:"large,omitempty"`
	// Unread says what could not be written of commits, and why.
	Unread string `json:"unread,omitempty"`
}

// Names of what an export writes beside files; with a number where a file has that name.
const (
	bundleName = "unpushed.bundle"
	largeName  = "unpushed.lfs"
)

// Export writes what the working copy in a directory holds that no store has into another, which it
// makes: the unsaved files, the files of commits that are not pushed as the current branch has
// them, and those commits; where these cannot be read, all files whose content is local. It never
// writes over anything; what it could not write is in Skipped. The working copy stays as it is. The
// errors are those of cache.Export.
func Export(ctx context.Context, dir, into string) (out Exported, err error) {
	r, err := Inspect(dir, 0)
	if err == nil && r.InUse {
		err = cache.ErrInUse
	}
	if err != nil {
		return out, err
	}
	out.Exported, err = cache.Export(ctx, copyOf(dir), into, r.Unread != "") // what is local of lost commits, too
	if r.Unpushed != nil && errors.Is(err, fs.ErrNotExist) {                 // the clone is there alone
		err = nil
	}
	if err != nil || r.Unpushed == nil {
		return out, err
	}
	if r.Unread != "" {
		out.Unread = fmt.Sprintf("commits that are not pushed (%d noted): %s", r.Unpushed.Commits, r.Unread)
	}
	if len(r.Branches) == 0 {
		if r.Unread == "" && r.Unpushed.Commits > 0 {
			out.skip("(commits)", errors.New("they are at the store alone, and a mount or an upload pushes them"))
		}
		return out, nil
	}
	if err := os.MkdirAll(into, 0o700); err != nil {
		return out, err
	}
	root, err := os.OpenRoot(into)
	if err != nil {
		return out, err
	}
	defer root.Close()
	a, err := clone.Open(dir)
	if err != nil {
		return out, err
	}
	e := export{ctx: ctx, archive: a, into: into, root: root, out: &out}
	err = e.files(r.Unsaved)
	if err == nil {
		err = e.bundle()
	}
	if err == nil {
		out.Branches = r.Branches
		err = e.large()
	}
	return out, errors.Join(err, a.Close())
}

// export writes what an archive has.
type export struct {
	ctx     context.Context
	archive providers.Archive
	into    string
	root    *os.Root // into
	out     *Exported
}

// Fetch is the command that makes the commits branches of a clone, below recovered/.
func (x Exported) Fetch() string {
	return "git fetch '" + strings.ReplaceAll(x.Bundle, "'", `'\''`) + "' 'refs/heads/*:refs/heads/recovered/*'"
}

func (x *Exported) skip(name string, why error) {
	x.Skipped = append(x.Skipped, cache.Skipped{Path: name, Reason: why.Error()})
}

// files writes those of commits, but for what has unsaved changes: that is newer.
func (e export) files(unsaved []cache.Unsaved) error {
	newer := map[string]bool{}
	for _, u := range unsaved {
		newer[u.Path] = true
	}
	return e.archive.Files(e.ctx, func(f providers.Info, open providers.Opener) error {
		name := f.Locator.String()
		for at := name; at != "."; at = path.Dir(at) {
			if newer[at] {
				return nil
			}
		}
		if err := e.file(name, f, open); err != nil {
			e.out.skip(name, err)
			return e.ctx.Err()
		}
		e.out.Files = append(e.out.Files, name)
		return nil
	})
}

func (e export) file(name string, f providers.Info, open providers.Opener) error {
	if f.Kind != providers.KindSymlink {
		mode := fs.FileMode(0o600)
		if f.Attr.Mode&0o100 != 0 {
			mode = 0o700
		}
		return e.write(name, mode, open)
	}
	body, err := open()
	if err != nil {
		return err
	}
	target, err := io.ReadAll(body)
	if err = errors.Join(err, body.Close(), e.root.MkdirAll(path.Dir(name), 0o700)); err != nil {
		return err
	}
	return e.root.Symlink(string(target), name)
}

// write makes a file, which is safe when it returns; of one that fails nothing stays.
func (e export) write(name string, mode fs.FileMode, open providers.Opener) error {
	body, err := open()
	if err != nil {
		return err
	}
	defer body.Close()
	if err := e.root.MkdirAll(path.Dir(name), 0o700); err != nil {
		return err
	}
	to, err := e.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, providers.WithContext(e.ctx, body))
	if err = errors.Join(err, to.Sync(), to.Close()); err != nil {
		return errors.Join(err, e.root.Remove(name))
	}
	return nil
}

// free is a name that nothing has, made of one with an ending.
func (e export) free(name string) (string, error) {
	for n := 1; ; n++ {
		try := name
		if n > 1 {
			ending := path.Ext(name)
			try = fmt.Sprintf("%s-%d%s", strings.TrimSuffix(name, ending), n, ending)
		}
		if _, err := e.root.Lstat(try); err != nil {
			if errors.Is(err, fs.ErrNotExist) {
				err = nil
			}
			return try, err
		}
	}
}

func (e export) bundle() error {
	name, err := e.free(bundleName)
	if err != nil {
		return err
	}
	if err := e.write(name, 0o600, func() (io.ReadCloser, error) { return e.archive.Bundle(e.ctx) }); err != nil {
		e.out.skip(name, err)
		return e.ctx.Err()
	}
	e.out.Bundle = filepath.Join(e.into, name)
	return nil
}

func (e export) large() error {
	dir, err := e.free(largeName)
	if err != nil {
		return err
	}
	return e.archive.Large(e.ctx, func(sum string, open providers.Opener) error {
		name := path.Join(dir, sum[:2], sum[2:4], sum)
		if err := e.write(name, 0o600, open); err != nil {
			e.out.skip(name, err)
			return e.ctx.Err()
		}
		e.out.Large = filepath.Join(e.into, dir)
		return nil
	})
}
