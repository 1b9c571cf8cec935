package leftover

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/wsmount/wsmount/cache"
	"github.com/wsmount/wsmount/cmd/internal/clone"
	"github.com/wsmount/wsmount/providers"
)

// Exported is the result of an Export.
type Exported struct {
	cache.Exported
	// Bundle is the file with the unpushed commits, and Branches are its branches.
	Bundle   string                     `json:"bundle,omitempty"`
	Branches []providers.UnpushedBranch `json:"branches,omitempty"`
	// Large is the directory with the content that these commits have in Git LFS, laid out as
	// .git/lfs/objects is.
	Large string `json:"large,omitempty"`
	// Unread names the commits that could not be written, and why.
	Unread string `json:"unread,omitempty"`
}

// Names of the bundle and the LFS directory; with a number if a file has that name.
const (
	bundleName = "unpushed.bundle"
	largeName  = "unpushed.lfs"
)

// Export writes the content that no store has of the working copy in a directory into
// another, which it makes: the unsaved files, the files of unpushed commits as the current
// branch has them, and those commits; of unreadable commits, the files with local content. It
// never overwrites; failures are in Skipped and Unread. The working copy stays as it is. The
// errors are those of cache.Export.
func Export(ctx context.Context, dir, into string) (out Exported, err error) {
	r, err := Inspect(dir, 0)
	if err == nil && r.InUse {
		err = cache.ErrInUse
	}
	if err != nil {
		return out, err
	}
	local := func(also cache.Also) error {
		got, err := cache.Export(ctx, copyOf(dir), into, also)
		if r.Unpushed != nil && errors.Is(err, fs.ErrNotExist) { // only the clone exists
			err = nil
		}
		out.Files, out.Skipped = append(got.Files, out.Files...), append(got.Skipped, out.Skipped...)
		return err
	}
	e, whole := export{ctx: ctx, into: into, out: &out, newer: map[string]bool{}, damaged: map[string]damage{}}, true
	for _, u := range r.Unsaved {
		e.newer[u.Path] = true
	}
	lost := r.Unread != ""
	if lost { // local content of them is newer than all of the clone's
		out.Unread = fmt.Sprintf("commits that are not pushed (%d noted): %s", r.Unpushed.Commits, r.Unread)
		err = local(func(string, providers.Version) bool { return true })
		for _, name := range out.Files {
			e.newer[name] = true
		}
	}
	switch {
	case err != nil:
	case len(r.Branches) > 0:
		whole, err = e.commits(dir, r)
	case !lost && r.Unpushed != nil && r.Unpushed.Commits > 0:
		out.skip("(commits)", errors.New("they are at the store alone, and a mount or an upload pushes them"))
	}
	if err == nil && !lost {
		err = local(func(name string, of providers.Version) bool {
			d, is := e.damaged[name]
			return is && d.version == of.ETag || !whole && !slices.Contains(out.Files, name)
		})
	}
	for _, name := range slices.Sorted(maps.Keys(e.damaged)) {
		if !slices.Contains(out.Files, name) {
			out.skip(name, e.damaged[name].why)
		}
	}
	return out, err
}

// commits writes the unpushed commits of the clone, as far as they can be read. whole is false if
// it does not know all their files.
func (e export) commits(dir string, r Report) (whole bool, err error) {
	if err := os.MkdirAll(e.into, 0o700); err != nil {
		return false, err
	}
	if e.root, err = os.OpenRoot(e.into); err != nil {
		return false, err
	}
	defer e.root.Close()
	if e.archive, err = clone.Open(dir); err != nil {
		return false, err
	}
	files, bundle := e.files(), e.bundle()
	if bundle == nil {
		e.out.Branches = r.Branches
	}
	var why []string
	for _, err := range []error{files, bundle, e.large()} {
		if err != nil && !slices.Contains(why, err.Error()) {
			why = append(why, err.Error())
		}
	}
	if why != nil && e.out.Unread == "" {
		e.out.Unread = fmt.Sprintf("commits that are not pushed (%d): %s", r.Unpushed.Commits, strings.Join(why, "; "))
	}
	return files == nil, errors.Join(e.ctx.Err(), e.archive.Close())
}

// damage is a file with a known version whose content the clone cannot read.
type damage struct {
	version string // the ETag, which names the content
	why     error
}

// export writes the content of an archive.
type export struct {
	ctx     context.Context
	archive providers.Archive
	into    string
	root    *os.Root // into
	out     *Exported
	newer   map[string]bool   // paths of which newer content is written
	damaged map[string]damage // files by name
}

// Fetch is the command that makes the commits branches of a clone, with names below recovered/.
func (x Exported) Fetch() string {
	return "git fetch '" + strings.ReplaceAll(x.Bundle, "'", `'\''`) + "' 'refs/heads/*:refs/heads/recovered/*'"
}

func (x *Exported) skip(name string, why error) {
	x.Skipped = append(x.Skipped, cache.Skipped{Path: name, Reason: why.Error()})
}

// files writes the files of the commits, except those with newer content.
func (e export) files() error {
	return e.archive.Files(e.ctx, func(f providers.Info, open providers.Opener) error {
		name := f.Locator.String()
		for at := name; at != "."; at = path.Dir(at) {
			if e.newer[at] {
				return nil
			}
		}
		switch err := e.file(name, f, open); {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrExist):
			e.out.skip(name, err)
			return e.ctx.Err()
		case err != nil:
			e.damaged[name] = damage{f.Version.ETag, err}
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

// write makes a file, which is on the disk when it returns. If it fails it leaves no file.
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

// free returns a free name, made of one with an ending.
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
	err = e.write(name, 0o600, func() (io.ReadCloser, error) { return e.archive.Bundle(e.ctx) })
	if err == nil {
		e.out.Bundle = filepath.Join(e.into, name)
	}
	return err
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
