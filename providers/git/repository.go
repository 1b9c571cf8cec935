package git

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/flock"
	"github.com/wsmount/wsmount/providers/git/internal/attributes"
	"github.com/wsmount/wsmount/providers/git/internal/history"
	"github.com/wsmount/wsmount/providers/git/internal/object"
	"github.com/wsmount/wsmount/providers/git/internal/odb"
	"github.com/wsmount/wsmount/providers/git/internal/partial"
	"github.com/wsmount/wsmount/providers/git/internal/refs"
	"github.com/wsmount/wsmount/providers/git/internal/space"
)

// repository is a bare repository on this disk, which this process alone
// changes.
type repository struct {
	dir     string
	private string
	lock    *flock.Lock
	objects *odb.Store
	refs    *refs.Store
	log     *os.File // outcomes
	large   *large
	partial *partial.Blobs
	parsed  attributes.Cache

	submodules submodules
	space      space.Disk

	saving sync.Mutex // held while state changes, once others are there
	state  state
}

// state holds the decisions that were made when the clone was made.
type state struct {
	Format int
	URL    string
	Branch string `json:",omitempty"`
	Cloned bool   // all of the remote's branch has been fetched
	LFS    string `json:",omitempty"` // whether the server offers it: see large

	Partial partial.State `json:",omitempty"` // "": it was never without blobs
	First   string        `json:",omitempty"` // the commit that was cloned, of one without blobs
}

const (
	format      = 1
	formatLess  = 2 // of a clone that may be without blobs: older programs would take that for damage
	privateName = "wsmount"
	stateName   = "clone.json"
)

// openRepository opens the clone of a URL, or makes an empty one.
func openRepository(dir, url string, disk space.Disk) (r *repository, err error) {
	r = &repository{dir: dir, private: filepath.Join(dir, privateName), space: disk}
	if err := os.MkdirAll(r.private, 0o700); err != nil {
		return nil, err
	}
	if r.lock, err = lockDir(r.private, flock.Exclusive); err != nil {
		return nil, err
	}
	made := r // r is nil where an error is returned
	defer func() {
		if err != nil {
			made.close()
		}
	}()
	if err := r.load(url); err != nil {
		return nil, err
	}
	if r.objects, err = odb.Open(filepath.Join(dir, "objects"), r.private, disk); err != nil {
		return nil, err
	}
	r.partial = newPartial(r)
	r.refs, err = refs.Open(dir, r.private, disk)
	return r, err
}

// readRepository opens the clone in a directory, of whichever URL, for reading, which other
// processes may do at the same time.
func readRepository(dir string, held bool) (r *repository, err error) {
	r = &repository{dir: dir, private: filepath.Join(dir, privateName), refs: refs.Look(dir)}
	if !held {
		r.lock, err = lockDir(r.private, flock.Shared)
	}
	if err = firstError(err, r.load("")); err == nil {
		r.objects, err = odb.Look(filepath.Join(dir, "objects"), r.private)
	}
	if err != nil {
		return nil, errors.Join(err, r.close())
	}
	r.partial = newPartial(r)
	return r, nil
}

// lockDir keeps other processes of wsmount away.
func lockDir(dir string, lock func(path string) (*flock.Lock, error)) (*flock.Lock, error) {
	l, err := lock(filepath.Join(dir, "lock"))
	if errors.Is(err, flock.ErrLocked) {
		err = fmt.Errorf("%s is in use: %w", dir, providers.ErrUnavailable)
	}
	return l, err
}

// load reads the state, or makes the files of a new repository.
func (r *repository) load(url string) error {
	b, err := os.ReadFile(filepath.Join(r.private, stateName))
	if errors.Is(err, fs.ErrNotExist) {
		r.state = state{Format: format, URL: url}
		return nil
	}
	if err == nil {
		err = json.Unmarshal(b, &r.state)
	}
	switch {
	case err != nil:
		return err
	case r.state.Format != format && r.state.Format != formatLess:
		return fmt.Errorf("%s has format %d, which this wsmount does not know: %w", r.dir, r.state.Format, providers.ErrUnsupported)
	case url != "" && r.state.URL != url:
		return fmt.Errorf("%s is a clone of %s and not of %s: %w", r.dir, r.state.URL, url, providers.ErrInvalid)
	}
	return nil
}

// make makes the files that git expects, for a branch. They are safe when
// settle is done.
func (r *repository) make(branch string) error {
	r.state.Branch = branch
	for _, sub := range dirs {
		if err := r.space.While(func() error { return os.MkdirAll(filepath.Join(r.dir, sub), 0o700) }); err != nil {
			return err
		}
	}
	if err := r.configure(); err != nil {
		return err
	}
	head := []byte("ref: refs/heads/" + branch + "\n")
	return r.space.While(func() error { return os.WriteFile(filepath.Join(r.dir, "HEAD"), head, 0o600) })
}

// configure writes git's configuration.
func (r *repository) configure() error {
	version, partial, more := 0, "", ""
	if r.state.Partial != "" {
		version, partial, more = 1, "[extensions]\n\tpartialClone = origin\n", "\tpromisor = true\n\tpartialclonefilter = blob:none\n"
	}
	config := fmt.Sprintf("[core]\n\trepositoryformatversion = %d\n\tfilemode = true\n\tbare = true\n%s"+
		"[gc]\n\tauto = 0\n[maintenance]\n\tauto = false\n"+
		"[remote \"origin\"]\n\turl = %s\n\ttagOpt = --no-tags\n\tfetch = %s\n%s",
		version, partial, quote(r.state.URL), quote("+refs/heads/"+r.state.Branch+":refs/remotes/origin/"+r.state.Branch), more)
	return r.space.While(func() error { return os.WriteFile(filepath.Join(r.dir, "config"), []byte(config), 0o600) })
}

// quote is a value of git's configuration.
func quote(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}

var dirs = []string{"refs/heads", "refs/remotes/origin", "refs/wsmount/left", "objects/info", "refs/remotes", "refs/wsmount", "refs", "objects"}

// settle ends the making of a clone. Before that, a clone that a crash has
// interrupted is made again.
func (r *repository) settle() error {
	var work []func() error
	for _, name := range append([]string{"config", "HEAD", "."}, dirs...) {
		work = append(work, func() error { return odb.Sync(filepath.Join(r.dir, name)) })
	}
	if err := odb.Together(work...); err != nil {
		return err
	}
	r.saving.Lock()
	defer r.saving.Unlock()
	r.state.Cloned, r.state.LFS = true, cmp.Or(r.state.LFS, unasked)
	return r.saveState()
}

func (r *repository) saveState() error {
	b, err := json.Marshal(r.state)
	if err != nil {
		return err
	}
	return r.write(filepath.Join(r.private, stateName), string(b)+"\n")
}

// setLFS notes whether the server offers LFS. It is called once, for a clone that is complete.
func (r *repository) setLFS(word string) error {
	r.saving.Lock()
	defer r.saving.Unlock()
	r.state.LFS = word
	return r.saveState()
}

// partialState tells whether blobs may be missing.
func (r *repository) partialState() partial.State {
	r.saving.Lock()
	defer r.saving.Unlock()
	return r.state.Partial
}

// setPartial notes whether blobs may be missing. It is safe when it returns.
func (r *repository) setPartial(word partial.State) error {
	r.saving.Lock()
	defer r.saving.Unlock()
	was, format := r.state.Partial, r.state.Format
	if was == word {
		return nil
	}
	r.state.Partial, r.state.Format = word, formatLess
	var err error
	if was == "" {
		err = r.configure()
	}
	if err == nil {
		err = r.saveState()
	}
	if err != nil {
		r.state.Partial, r.state.Format = was, format
	}
	return err
}

// write replaces a file in one step that lasts.
func (r *repository) write(path, content string) error {
	return r.space.While(func() error { return replace(path, content) })
}

func replace(path, content string) error {
	tmp := path + ".new"
	f, err := os.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(content)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(tmp, path); err != nil {
		return err
	}
	return odb.Sync(filepath.Dir(path))
}

func (r *repository) close() error {
	var errs []error
	if r.objects != nil {
		errs = append(errs, r.objects.Close())
	}
	if r.log != nil {
		errs = append(errs, r.log.Close())
	}
	return errors.Join(append(errs, r.lock.Close())...)
}

// hasCommit reports whether a commit is local.
func (r *repository) hasCommit(c id) bool {
	if !r.objects.Has(c) {
		return false
	}
	_, err := r.commit(c)
	return err == nil
}

// commitOf is the commit of a revision that is local; else ErrNotExist.
func (r *repository) commitOf(name providers.Revision) (id, error) {
	if plumbing.IsHash(string(name)) {
		if c := plumbing.NewHash(string(name)); c.String() == string(name) && r.hasCommit(c) {
			return c, nil
		}
	}
	return id{}, fmt.Errorf("revision %q: %w", name, providers.ErrNotExist)
}

// named is the only local commit whose name begins so.
func (r *repository) named(name string) (c id, err error) {
	if len(name) < providers.MinShort {
		return c, fmt.Errorf("commit %q: %d characters are needed: %w", name, providers.MinShort, providers.ErrInvalid)
	}
	for _, object := range r.objects.Beginning(strings.ToLower(name)) {
		switch {
		case !r.hasCommit(object):
		case !c.IsZero():
			return id{}, fmt.Errorf("commit %q is one of several: %w", name, providers.ErrInvalid)
		default:
			c = object
		}
	}
	if c.IsZero() {
		err = fmt.Errorf("commit %q: %w", name, providers.ErrNotExist)
	}
	return c, err
}

// bases, isAncestor, newCommits and recent are those of package history.
func (r *repository) bases(a, b id) ([]id, error)      { return history.Bases(r.commit, a, b) }
func (r *repository) isAncestor(a, b id) (bool, error) { return history.IsAncestor(r.commit, a, b) }
func (r *repository) newCommits(c id, others []id) ([]id, error) {
	return history.New(r.commit, c, others)
}
func (r *repository) recent(n int, of ...id) ([]id, error) { return history.Recent(r.commit, n, of...) }

func (r *repository) commit(c id) (object.Commit, error) {
	raw, err := r.objects.Get(c, odb.Commit)
	if err != nil {
		return object.Commit{}, err
	}
	return object.ParseCommit(raw)
}

// leave keeps a commit that no branch has any more, unless one of others has it
// in its history.
func (r *repository) leave(c id, others ...id) error {
	if c.IsZero() {
		return nil
	}
	for _, other := range others {
		if other.IsZero() {
			continue
		}
		if is, err := r.isAncestor(c, other); err != nil || is {
			return err
		}
	}
	ref := "refs/wsmount/left/" + c.String()
	is, err := r.refs.Get(ref)
	if err != nil || !is.IsZero() {
		return err
	}
	return r.refs.Update(ref, id{}, c)
}
