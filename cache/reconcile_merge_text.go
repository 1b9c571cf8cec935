package cache

import (
	"bytes"
	"context"
	"errors"
	"io"
	iofs "io/fs"
	"slices"

	"github.com/wsmount/wsmount/cache/internal/lines"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/providers"
)

// mostCombined is the size up to which a text is merged, of each side: it is in
// memory then, all three.
const mostCombined = 16 << 20

// combines reports whether texts are merged line by line.
func (c Conflict) combines() bool { return c == Combine || c == Markers }

// splits reports whether what cannot be merged becomes two files.
func (c Conflict) splits() bool { return c == SplitConflicts || c == Markers }

// A union is what became of a text that was changed here and there.
type union struct {
	newContent      // that was made for it; ino 0: it is what one side has
	theirs     bool // theirs has all that is ours
	conflicts  int  // places where both changed the same lines
}

// unionOf is what x here and r there become, which began from base, where the policy
// says so and both are text; nil when they are to stay two. ok is false while that is
// not known.
func (m *merge) unionOf(v *Tx, l table.Link, x table.Ino, base *table.Remote, r *providers.Info) (u *union, ok bool) {
	n, policy := v.table.Inode(x), v.o.Policy.Conflict
	switch {
	case !policy.combines(), base == nil, !n.IsRegular(), r.Kind != providers.KindFile, r.Opaque, base.Kind != providers.KindFile,
		max(n.Size, r.Size, base.Version.Size) > mostCombined:
		return nil, true
	case m.dry: // either way nothing is deleted
		return nil, false
	}
	q := query{question: question{ino: x, gen: n.ContentVersion, at: r.Locator, theirs: r.Version, what: askLines}, info: *r, l: l, base: base}
	a, ok := m.look(q)
	if u = a.union; u != nil && u.conflicts > 0 && policy != Markers {
		u = nil
	}
	return u, ok
}

// unite gives a name that was changed here and there the text that both became.
func (m *merge) unite(v *Tx, l table.Link, rec table.Name, r *providers.Info, u *union) {
	n := *v.table.Inode(rec.Ino)
	ours := n.AttrGen != rec.Remote.AttrGen
	switch {
	case u.theirs && ours && rec.Remote.Ino == rec.Ino: // their text, with our attributes
		m.replace(v, l, rec, r)
	case u.theirs:
		m.takeTheirs(v, l, rec, r)
	case u.ino == 0:
		if !ours {
			m.takeAttr(v, rec.Ino, r)
		}
		m.overwrite(v, l, rec, r)
	default:
		m.putUnion(v, l, rec, r, u, &n, ours)
	}
	m.united(v, l, u)
}

// uniteOrphan is unite for a nameless file, whose name has theirs by now.
func (m *merge) uniteOrphan(v *Tx, l table.Link, rec table.Name, ino table.Ino, r *providers.Info, u *union) {
	n := *v.table.Inode(ino)
	switch {
	case u.theirs:
		m.orphanDone(v, ino)
	case u.ino == 0:
		m.nameOrphan(v, l, &rec, ino)
		m.overwrite(v, l, rec, r)
	default:
		m.putUnion(v, l, rec, r, u, &n, false)
		m.orphanDone(v, ino)
	}
	m.united(v, l, u)
}

// putUnion gives a name the content file that was made. Attributes are those of
// who changed them.
func (m *merge) putUnion(v *Tx, l table.Link, rec table.Name, r *providers.Info, u *union, was *table.Inode, ours bool) {
	m.put(v, l, rec, r, u.newContent)
	n := v.table.Edit(u.ino)
	if n.Mode = was.Mode; !ours {
		n.Mode = takeMode(was.Mode, r.Attr)
	}
	m.used = append(m.used, u.ino)
	m.shown(v, l)
}

func (m *merge) united(v *Tx, l table.Link, u *union) {
	m.report.Changed++
	if u.conflicts > 0 {
		m.tell(v, l, "the same lines were modified locally and on the remote: the file has both, between conflict markers", true)
		return
	}
	m.tell(v, l, "modified locally and on the remote, in different lines: merged", false)
}

// mergeLines makes the union of three texts: what ours began from, ours, and
// theirs. Without one of them, or if one is no text, there is none.
func (m *merge) mergeLines(q query) (*union, error) {
	base, err := m.v.baseText(m.ctx, q)
	if err != nil || base == nil {
		return nil, err
	}
	var ours, theirs []byte
	if _, err = m.v.readLocal(m.ctx, q.ino, func(r io.Reader) (err error) { ours, err = io.ReadAll(r); return err }); err == nil {
		err = m.v.readRemoteVersion(m.ctx, m.remote, q.info, func(b []byte) { theirs = b })
	}
	switch {
	case isElsewhere(err), errors.Is(err, errVersionGone):
		return nil, nil // it has changed again; the next look tells
	case err != nil:
		return nil, err
	}
	merged, ok := m.v.mergeTexts(base, ours, theirs)
	if !ok {
		return nil, nil
	}
	u := &union{conflicts: merged.Conflicts}
	switch {
	case u.conflicts > 0 && m.v.o.Policy.Conflict != Markers: // nobody wants it
	case bytes.Equal(merged.Content, theirs):
		u.theirs = true
	case !bytes.Equal(merged.Content, ours):
		u.newContent, err = m.make(q.l, merged.Content)
	}
	return u, err
}

// mergeTexts merges, where the policy says so and all three are text.
func (v *Volume) mergeTexts(base, ours, theirs []byte) (merged lines.Merged, ok bool) {
	if !v.o.Policy.Conflict.combines() || !lines.Text(base) || !lines.Text(ours) || !lines.Text(theirs) {
		return merged, false
	}
	return lines.Merge(base, ours, theirs, lines.Labels{Ours: "ours", Base: "base", Theirs: "theirs"}), true
}

// combineTexts is mergeTexts as a providers.Combine.
func (v *Volume) combineTexts(base, a, b []byte, union bool) ([]byte, bool) {
	if union && v.o.Policy.Conflict.combines() && lines.Text(base) && lines.Text(a) && lines.Text(b) {
		return lines.Union(base, a, b), true
	}
	merged, ok := v.mergeTexts(base, a, b)
	return merged.Content, ok && merged.Conflicts == 0
}

// make puts a text into a content file of its own. What no run of the merge uses
// is removed at its end.
func (m *merge) make(l table.Link, text []byte) (newContent, error) {
	locked := m.v.lock()
	at, _ := locked.LocalPath(l)
	locked.unlock()
	made, err := m.v.makeContent(m.ctx, at.String(), bytes.NewReader(text))
	if err == nil {
		m.made = append(m.made, made.ino)
	}
	return made, err
}

// dropMade removes the content files that no name has got.
func (m *merge) dropMade() {
	for _, x := range m.made {
		if !slices.Contains(m.used, x) {
			m.v.store.Remove(x)
		}
	}
	m.made = nil
}

// baseText is what ours began from; nil when that is nowhere any more.
func (v *Volume) baseText(ctx context.Context, q query) (text []byte, err error) {
	body, err := v.baseOfConflict(ctx, q.l, table.Name{Remote: q.base})
	if errors.Is(err, iofs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer body.Close()
	text, err = io.ReadAll(io.LimitReader(body, mostCombined+1))
	if text == nil {
		text = []byte{}
	}
	if len(text) > mostCombined {
		text = nil
	}
	return text, err
}
