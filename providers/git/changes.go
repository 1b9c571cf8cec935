package git

import (
	"fmt"

	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/git/internal/attributes"
	"github.com/wsmount/wsmount/providers/git/internal/lfs"
	"github.com/wsmount/wsmount/providers/git/internal/object"
	"github.com/wsmount/wsmount/providers/git/internal/trees"
)

// blob is the content of a change, which is in the batch already.
type blob struct {
	id    id
	size  int64
	taken bool // it is made from the file at From, which shows other content there
	isLFS bool // it was taken for a file that goes through LFS
}

// run makes the tree after a set from the tree before it, as providers.ChangeSet says. It takes
// all conditions and all sources from the tree before, so that the order of the changes does not
// matter.
type run struct {
	before, after nodes
	changes       []providers.Change
	blobs         []blob
	places        providers.ChangePlaces
	wrong         error                      // the reason if the changes are no set
	own           map[providers.Locator]bool // places that a change makes
}

// newRun enters changes of a tree. Blobs are filled in later, before do.
func newRun(repo *repository, root id, changes []providers.Change, blobs []blob, made map[id][]byte) *run {
	before := nodes{Editor: trees.Editor{Objects: repo.objects}, repo: repo, root: trees.Dir(root), made: made}
	r := &run{before: before, after: before, changes: changes, blobs: blobs}
	for _, c := range changes {
		if err := r.enter(c); err != nil {
			r.wrong = failed(c, err)
			break
		}
	}
	return r
}

func (r *run) isWrong() bool { return r.wrong != nil }

// do makes the tree in after, and returns the entry that each change left.
func (r *run) do() ([]providers.Info, error) {
	if r.wrong != nil {
		return nil, r.wrong
	}
	for i, c := range r.changes {
		if err := r.check(i, c); err != nil {
			return nil, failed(c, err)
		}
	}
	for l := range r.places.Deleted() {
		root, err := r.after.Without(r.after.root, l.Parts())
		if err != nil {
			return nil, err
		}
		r.after.root = root
	}
	for i, c := range r.places.Made() {
		if err := r.place(i, c); err != nil {
			return nil, failed(c, err)
		}
	}
	if err := r.checkShown(); err != nil {
		return nil, err
	}
	return r.left()
}

// failed names the change that went wrong.
func failed(c providers.Change, err error) error {
	if kind := kindOf(err, nil); kind != nil || isSystem(err) {
		return err // of the repository, and of no change
	}
	return providers.Fail(name, c.Method(), c.Locator, err, providers.ErrUnavailable)
}

// enter takes a change into the set.
func (r *run) enter(c providers.Change) error {
	if err := r.places.Add(c); err != nil || c.Delete {
		return err
	}
	return capabilities().Names.Check(c.Locator)
}

func (r *run) check(i int, c providers.Change) error {
	switch {
	case c.Delete:
		return r.checkDelete(c)
	case !c.From.IsRoot():
		return r.checkFrom(i, c)
	case c.Dir:
		return providers.ErrUnsupported // there is none without entries
	}
	if err := checkWrite(c, r.blobs[i].size); err != nil {
		return err
	}
	_, standing, err := r.standing(c.Locator)
	if err != nil {
		return err
	}
	return c.If.Allows(providers.MethodWrite, standing.at(c.Locator))
}

// checkWrite refuses entries that no tree can have.
func checkWrite(c providers.Change, size int64) error {
	link := c.Kind == providers.KindSymlink
	switch {
	case c.Kind == providers.KindDir || c.Kind > providers.KindSymlink:
		return fmt.Errorf("a %s cannot be written: %w", c.Kind, providers.ErrInvalid)
	case link && size == 0:
		return fmt.Errorf("a link without target: %w", providers.ErrInvalid)
	case link && c.Locator.Name() == ".gitmodules":
		return fmt.Errorf("git takes no link of this name: %w", providers.ErrInvalid)
	}
	return nil
}

func (r *run) checkDelete(c providers.Change) error {
	n, err := r.before.find(c.Locator)
	if err != nil {
		return err
	}
	cond := c.If
	if c.Dir {
		cond = providers.IfDir()
	}
	if err := cond.Allows(providers.MethodDelete, n.at(c.Locator)); err != nil || !n.IsDir() || r.places.IsTaken(c.Locator) {
		return err
	}
	empty, err := r.emptied(c.Locator, n.Node)
	if err == nil && !empty {
		err = providers.ErrNotEmpty
	}
	return err
}

// emptied reports whether the set deletes all that is in the directory n;
// directories below it go by themselves.
func (r *run) emptied(l providers.Locator, n *trees.Node) (bool, error) {
	entries, err := r.before.Entries(n)
	if err != nil {
		return false, err
	}
	for name, child := range entries {
		if trees.Hidden(name) {
			return false, nil // hidden entries stay
		}
		at, err := l.Child(name)
		if err != nil {
			return false, err
		}
		if r.places.IsDeleted(at) {
			continue
		}
		if !child.IsDir() {
			return false, nil
		}
		if empty, err := r.emptied(at, child); err != nil || !empty {
			return false, err
		}
	}
	return true, nil
}

func (r *run) checkFrom(i int, c providers.Change) error {
	source, err := r.before.find(c.From)
	switch {
	case err != nil:
		return err
	case r.blobs[i].size > 0 && !r.blobs[i].taken:
		return fmt.Errorf("content and From %q: %w", c.From, providers.ErrInvalid)
	case source.Node == nil:
		return fmt.Errorf("from %q: %w", c.From, providers.ErrNotExist)
	case c.Dir && !source.LooksDir():
		return fmt.Errorf("from %q: %w", c.From, providers.ErrNotDir)
	case !c.Dir && source.LooksDir():
		return fmt.Errorf("from %q: %w", c.From, providers.ErrIsDir)
	case !c.FromVersion.IsZero() && !c.FromVersion.Matches(source.at(c.From).Version):
		return fmt.Errorf("from %q: %w", c.From, providers.ErrConflict)
	}
	origin, standing, err := r.standing(c.Locator)
	if err != nil {
		return err
	}
	if c.If.Kind == providers.ConditionDir && standing.LooksDir() && r.places.IsTaken(origin) {
		return nil
	}
	return c.If.Allows(providers.MethodMove, standing.at(c.Locator))
}

// standing is the entry that a change at l replaces, and its place before the set; n is without
// Node when there is none.
func (r *run) standing(l providers.Locator) (origin providers.Locator, n found, err error) {
	origin, gone, err := r.places.Origin(l)
	if err == nil && !gone {
		n, err = r.before.find(origin)
	}
	return origin, n, err
}

// place puts the entry that a change makes into the tree after.
func (r *run) place(i int, c providers.Change) error {
	n := &trees.Node{Mode: modeOf(c.Kind, c.Attr), ID: r.blobs[i].id, Size: r.blobs[i].size}
	if !c.From.IsRoot() {
		var err error
		if n, err = r.take(c); err != nil {
			return err
		}
		if r.blobs[i].taken {
			n = &trees.Node{Mode: n.Mode, ID: r.blobs[i].id, Size: r.blobs[i].size}
		}
		if n.IsEmptied() { // the entry in its place was replaced all the same
			r.after.root, err = r.after.Without(r.after.root, c.Locator.Parts())
			return err
		}
	}
	root, err := r.after.Put(r.after.root, c.Locator.Parts(), n)
	if err == nil {
		r.after.root = root
	}
	return err
}

// modeOf is how a new file or link is in its tree.
func modeOf(kind providers.Kind, attr providers.Attr) object.Mode {
	switch {
	case kind == providers.KindSymlink:
		return object.ModeLink
	case attr.Keep(providers.AttrExec).Mode&0o100 != 0:
		return object.ModeExec
	}
	return object.ModeFile
}

// take is the entry at From, less the entries below it that the set deletes.
func (r *run) take(c providers.Change) (*trees.Node, error) {
	source, err := r.before.find(c.From)
	if err != nil {
		return nil, err
	}
	n := source.Node
	if n.IsDir() {
		depth := len(c.From.Parts())
		for l := range r.places.Deleted() {
			if l == c.From || !c.From.Contains(l) {
				continue
			}
			if n, err = r.before.Without(n, l.Parts()[depth:]); err != nil {
				return nil, err
			}
		}
		return n, nil
	}
	if c.Attr.Valid&(providers.AttrMode|providers.AttrExec) != 0 && n.IsFile() {
		changed := *n
		changed.Mode = modeOf(providers.KindFile, c.Attr)
		n = &changed
	}
	return n, nil
}

// left are the entries that the changes left.
func (r *run) left() ([]providers.Info, error) {
	infos := make([]providers.Info, len(r.changes))
	for i, c := range r.changes {
		if c.Delete {
			continue
		}
		n, err := r.after.find(c.Locator)
		if err != nil {
			return nil, err
		}
		if n.Node != nil {
			infos[i] = *n.at(c.Locator)
		}
	}
	return infos, nil
}

// checkShown refuses a set that changes the content shown by other files: a file of attributes
// can turn pointers into content and back, and so can a directory's name.
func (r *run) checkShown() error {
	if r.before.repo.large.offers.Load() == notOffered {
		return nil
	}
	r.own = map[providers.Locator]bool{}
	for _, c := range r.changes {
		r.own[c.Locator] = r.own[c.Locator] || !c.Delete
	}
	for _, c := range r.changes {
		var err error
		switch {
		case isAttributes(c.Locator):
			err = r.checkBelow(c.Locator.Parent(), nil)
		case c.Dir && !c.Delete && !c.From.IsRoot():
			err = r.checkBelow(c.Locator, &c.From)
		}
		if err != nil {
			return failed(c, err)
		}
	}
	return nil
}

// checkBelow looks at a directory of the tree after; from is its place before the set, nil: the
// same place.
func (r *run) checkBelow(dir providers.Locator, from *providers.Locator) error {
	n, f, err := r.after.inside(dir)
	if err != nil || !n.IsDir() {
		return err
	}
	if from == nil {
		origin, gone, err := r.places.Origin(dir)
		if err != nil || gone {
			return err
		}
		from = &origin
	}
	_, before, err := r.before.inside(*from)
	if err != nil || f == nil && before == nil || dir == *from && before.Equal(f) {
		return err
	}
	entries, err := r.after.Entries(n)
	if err != nil {
		return err
	}
	for name, child := range entries {
		at, err := dir.Child(name)
		if err != nil || trees.Hidden(name) || r.own[at] {
			continue
		}
		was, err := from.Child(name)
		if err != nil {
			return err
		}
		if child.IsDir() {
			err = r.checkBelow(at, &was)
		} else {
			err = r.checkFile(at, was, f, before)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *run) checkFile(at, was providers.Locator, f, before *attributes.Filters) error {
	n, _, err := r.after.look(at)
	if err != nil || !n.IsFile() || n.Size > lfs.MaxPointer || f.IsLFS(at.Parts()) == before.IsLFS(was.Parts()) {
		return err
	}
	text, err := r.after.text(n.ID)
	if _, is := lfs.Parse(text); err == nil && is {
		err = fmt.Errorf("%s would show its pointer of LFS, or what that leads to, and did not: write it anew, too: %w", at, providers.ErrUnsupported)
	}
	return err
}
