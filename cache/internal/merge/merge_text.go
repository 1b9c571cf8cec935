package merge

import (
	"bytes"
	"context"
	"errors"
	"io"
	iofs "io/fs"
	"slices"

	"github.com/wsmount/wsmount/cache/internal/attrs"
	"github.com/wsmount/wsmount/cache/internal/files"
	"github.com/wsmount/wsmount/cache/internal/reconcile"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/providers"
)

// A union is the result of merging a text that was changed locally and at the remote.
type union struct {
	files.Made      // the file with it; no Ino: one side is the result
	theirs     bool // theirs has all changes of ours
	conflicts  int  // places where both changed the same lines
}

// unionOf is the text that x and theirs, which began from base, become, if the policy says so and
// both are text; nil when they are to stay two. ok is false while that is not known.
func (s *sides) unionOf(x table.Ino, base *table.Remote) (u *union, ok bool) {
	n, r := s.tx.Inode(x), s.theirs
	switch {
	case base == nil, !n.IsRegular(), r.Kind != providers.KindFile, r.Opaque, base.Kind != providers.KindFile,
		max(n.Size, r.Size, base.Version.Size) > reconcile.MostText:
		return nil, true
	case s.Dry: // either way nothing is deleted
		return nil, false
	}
	q := query{question: question{ino: x, gen: n.ContentVersion, at: r.Locator, theirs: r.Version, what: askLines}, info: *r, l: s.l, base: base}
	a, ok := s.look(q)
	if u = a.union; u != nil && u.conflicts > 0 && s.policy.Conflict != reconcile.Markers {
		u = nil
	}
	return u, ok
}

// unite gives the name the text that both became.
func (s *sides) unite() {
	n, u := *s.tx.Inode(s.rec.Ino), s.union
	ours := n.AttrGen != s.rec.Remote.AttrGen
	switch {
	case u.theirs && ours && s.rec.Remote.Ino == s.rec.Ino: // their text, with our attributes
		s.replace()
	case u.theirs:
		s.takeTheirs()
	case u.Ino == 0:
		if !ours {
			s.takeAttr(s.rec.Ino)
		}
		s.overwrite()
	default:
		s.putUnion(&n, ours)
	}
	s.united()
}

// putUnion gives the name the content file that was made. The mode is theirs, unless attributes
// were changed locally; the other attributes are ours.
func (s *sides) putUnion(was *table.Inode, ours bool) {
	x := s.union.Ino
	s.put(s.union.Made)
	n := s.tx.Edit(x)
	if n.Mode = was.Mode; !ours {
		n.Mode = attrs.TakeMode(was.Mode, s.theirs.Attr)
	}
	s.used = append(s.used, x)
	s.shown(s.tx, s.l)
}

func (s *sides) united() {
	s.Report.Changed++
	if s.union.conflicts > 0 {
		s.tell(s.tx, s.l, "the same lines were modified locally and on the remote: the file has both, between conflict markers", true)
		return
	}
	s.tell(s.tx, s.l, "modified locally and on the remote, in different lines: merged", false)
}

// mergeLines makes the union of three texts: the base of ours, ours, and theirs. Without one of
// them, or if one is no text, there is none.
func (i *inquiry) mergeLines(q query) (*union, error) {
	base, err := i.v.baseText(i.ctx, q)
	if err != nil || base == nil {
		return nil, err
	}
	var ours, theirs []byte
	if _, err = i.v.readLocal(i.ctx, q.ino, func(r io.Reader) (err error) { ours, err = readText(r); return err }); err == nil {
		err = i.v.readRemoteVersion(i.ctx, i.remote, q.info, func(r io.Reader) (err error) { theirs, err = readText(r); return err })
	}
	switch {
	case files.IsElsewhere(err), errors.Is(err, files.ErrVersionGone):
		return nil, nil // it has changed again; the next look tells
	case err != nil:
		return nil, err
	case ours == nil, theirs == nil:
		return nil, nil
	}
	merged, ok := i.v.o.Conflict.MergeTexts(base, ours, theirs)
	if !ok {
		return nil, nil
	}
	u := &union{conflicts: merged.Conflicts}
	switch {
	case u.conflicts > 0 && i.v.o.Conflict != reconcile.Markers: // the policy wants no markers
	case bytes.Equal(merged.Content, theirs):
		u.theirs = true
	case !bytes.Equal(merged.Content, ours):
		u.Made, err = i.make(q.l, merged.Content)
	}
	return u, err
}

// make puts a text into a content file of its own. If no run of the merge uses it, it is removed
// at the end of the merge.
func (i *inquiry) make(l table.Link, text []byte) (files.Made, error) {
	locked := i.v.lock()
	at, _ := locked.LocalPath(l)
	locked.unlock()
	made, err := files.Make(i.ctx, i.v.o.Tree, i.v.o.Store, at.String(), bytes.NewReader(text))
	if err == nil {
		i.made = append(i.made, made.Ino)
	}
	return made, err
}

// dropMade removes the content files that got no name.
func (i *inquiry) dropMade() {
	for _, x := range i.made {
		if !slices.Contains(i.used, x) {
			i.v.o.Store.Remove(x)
		}
	}
	i.made = nil
}

// baseText is the text that ours began from; nil when that is nowhere any more.
func (v *Merger) baseText(ctx context.Context, q query) (text []byte, err error) {
	body, err := v.baseOfConflict(ctx, q.l, table.Name{Remote: q.base})
	if errors.Is(err, iofs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer body.Close()
	return readText(body)
}

// readText reads what may be merged as a text; nil: it is too large for that.
func readText(r io.Reader) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(r, reconcile.MostText+1)) // which is not nil
	if len(text) > reconcile.MostText {
		text = nil
	}
	return text, err
}
