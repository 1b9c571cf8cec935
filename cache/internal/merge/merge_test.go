package merge

import (
	"fmt"
	"strings"
	"testing"

	"github.com/wsmount/wsmount/cache/internal/files"
	"github.com/wsmount/wsmount/cache/internal/reconcile"
	"github.com/wsmount/wsmount/cache/internal/revision"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/memory"
)

// A file that both sides changed becomes what the policy says: the text of both, or two files, or
// ours until a person decides. What has no base, or is no text, is never merged.
func TestMergeTexts(t *testing.T) {
	const base, ours, theirs = "1\n2\n3\n4\n5\n", "one\n2\n3\n4\n5\n", "1\n2\n3\n4\nfive\n"
	errDown := fmt.Errorf("read f: %w", providers.ErrUnavailable)
	for what, c := range map[string]struct {
		policy             reconcile.Conflict
		base, ours, theirs string
		lost               bool  // the base is nowhere any more
		down               error // of each read of theirs
		want               string
		told               string
		conflicts          int
	}{
		"other lines": {policy: reconcile.Combine, base: base, ours: ours, theirs: theirs, want: "[f: one\n2\n3\n4\nfive\n]", told: "in different lines: merged"},
		"the same":    {policy: reconcile.Combine, base: base, ours: ours, theirs: ours, want: "[f: " + ours + "]"},
		"they have all of it": {policy: reconcile.Combine, base: base, ours: ours, theirs: "one\n2\n3\n4\nfive\n",
			want: "[f: one\n2\n3\n4\nfive\n]", told: "in different lines: merged"},
		"ours has all of it": {policy: reconcile.Combine, base: base, ours: "one\n2\n3\n4\nfive\n", theirs: theirs, want: "[f: one\n2\n3\n4\nfive\n]", told: "in different lines: merged"},
		"the same line":      {policy: reconcile.Combine, base: base, ours: ours, theirs: "eins\n2\n3\n4\n5\n", want: "[f: " + ours + "]", conflicts: 1},
		"between markers": {policy: reconcile.Markers, base: "1\n", ours: "one\n", theirs: "eins\n", told: "between conflict markers",
			want: "[f: <<<<<<< ours\none\n=======\neins\n>>>>>>> theirs\n]", conflicts: 1},
		"no base":                 {policy: reconcile.Markers, base: base, ours: ours, theirs: theirs, lost: true, want: "[copy: " + ours + " f: " + theirs + "]", conflicts: 1},
		"no text":                 {policy: reconcile.Combine, base: base, ours: "one\x00\n2\n3\n4\n5\n", theirs: theirs, want: "[f: one\x00\n2\n3\n4\n5\n]", conflicts: 1},
		"not combined":            {policy: reconcile.Split, base: base, ours: ours, theirs: theirs, want: "[copy: " + ours + " f: " + theirs + "]", told: "the local version was saved as", conflicts: 1},
		"down":                    {policy: reconcile.Combine, base: base, ours: ours, theirs: theirs, down: errDown, want: "[f: " + ours + "]"},
		"changed again meanwhile": {policy: reconcile.Combine, base: base, ours: ours, theirs: theirs, down: providers.ErrConflict, want: "[f: " + ours + "]", conflicts: 1},
	} {
		t.Run(what, func(t *testing.T) {
			w := newText(t, memory.Options{}, c.policy, c.base, c.ours)
			if c.lost {
				w.was = ""
			}
			w.theirs("put f " + c.theirs)
			w.calls = func(call *providers.Call) error {
				if call.Method == providers.MethodRead {
					return c.down
				}
				return nil
			}
			r := w.pull()
			w.calls = func(*providers.Call) error { return nil }
			assert.Equal(t, fmt.Sprint(w.lines()), strings.ReplaceAll(c.want, "copy:", "f.conflict-"+short(c.ours)+":"), "texts")
			assert.True(t, c.told == "" || strings.Contains(strings.Join(w.told, "\n"), c.told), "a person was told", w.told)
			held := c.policy == reconcile.Combine && c.conflicts > 0
			assert.Equal(t, len(w.Held().Conflicts()) > 0, held, "held back")
			assert.Equal(t, len(r.Conflicts), c.conflicts, "conflicts", r.Conflicts)
			var made []table.Ino
			assert.OK(t, w.o.Store.Each(func(ino uint64, _ string, _ int64, _ bool) { made = append(made, ino) }))
			assert.True(t, len(made) <= 3, "content files are left over", made)
		})
	}
}

// A name of which a change is under way is left as it is, and the merge says so: another has to see
// it.
func TestLeft(t *testing.T) {
	w := newCopy(t, memory.Options{}, reconcile.Split, "f", "one", "g", "two")
	w.ours("put f ours")
	f, _ := w.find("f")
	attempt := func(a *table.Attempt) {
		w.ok(w.update(func(tx *Tx) error {
			rec := tx.Record(f)
			rec.Attempt = a
			tx.SetName(f, rec)
			return nil
		}))
	}
	attempt(&table.Attempt{Op: "1"})
	w.theirs("put f theirs", "put g theirs")
	for _, left := range []bool{true, false} {
		m, err := w.merge(revision.Gone)
		w.ok(err)
		assert.Equal(t, m.Left, left, "a name is left")
		assert.Equal(t, w.conflictCopies() == 0, left, "it stays as it was")
		attempt(nil)
	}
	w.sees("f: theirs", "f.conflict-"+short("ours")+": ours", "g: theirs")
}

// Attributes of a merged text are those of who changed them, ours before theirs.
func TestMergeTextsMode(t *testing.T) {
	const base, theirs = "1\n2\n3\n4\n5\n", "1\n2\n3\n4\nfive\n"
	for what, ours := range map[string]string{"both": "one\n2\n3\n4\n5\n", "ours has all": "one\n2\n3\n4\nfive\n", "they have all": "one\n2\n3\n4\n5\n"} {
		for mode, script := range map[uint32][]string{0o755: {"chmod f 755", "chmod f 711"}, 0o711: {"", "chmod f 711"}} {
			there := theirs
			if what == "they have all" {
				there = "one\n2\n3\n4\nfive\n"
			}
			w := newText(t, memory.Options{}, reconcile.Combine, base, ours)
			w.ours(script[0])
			w.theirs("put f "+there, script[1])
			w.pull()
			assert.Equal(t, w.inode("f").Mode&0o7777, mode, what, "mode, of", w.lines())
			assert.Equal(t, len(w.Held().Conflicts()), 0, what, "held back")
		}
	}
}

// What the answer to a read says of attributes that a listing left out is taken for the state that
// it is of, but for what was changed locally, and not where a change of ours may have overtaken it.
func TestAttrsFetched(t *testing.T) {
	const fetched, changed = 0o100600, 0o100711
	for what, c := range map[string]struct {
		change func(tx *Tx, l table.Link, n *table.Inode)
		info   func(*providers.Info)
		want   error
		mode   uint32 // 0: as it was
		stays  bool   // unknown
	}{
		"as they were":  {mode: fetched},
		"known already": {change: func(_ *Tx, _ table.Link, n *table.Inode) { n.AttrsUnknown = false }},
		"changed locally": {change: func(_ *Tx, _ table.Link, n *table.Inode) {
			n.Mode = changed
			n.AttrGen++
		}, mode: changed},
		"and sent meanwhile": {change: func(tx *Tx, l table.Link, _ *table.Inode) {
			rec := tx.Record(l)
			rec.Remote.AttrGen++
			tx.SetName(l, rec)
		}, want: ErrOvertaken, stays: true},
		"of another version": {info: func(i *providers.Info) { i.Version.ETag = "another" }, stays: true},
		"of a link":          {info: func(i *providers.Info) { i.Kind = providers.KindSymlink }, want: files.ErrVersionGone, stays: true},
	} {
		t.Run(what, func(t *testing.T) {
			w := newText(t, memory.Options{Without: providers.Capabilities{ListComplete: true}}, reconcile.Split, "1", "1")
			f, x := w.find("f")
			assert.OK(t, w.update(func(tx *Tx) error { tx.Edit(x).AttrsUnknown = true; return nil }))
			asked := w.AttrGen(x, at("f"))
			was := uint32(0)
			assert.OK(t, w.update(func(tx *Tx) error {
				n := tx.Edit(x)
				was = n.Mode
				if c.change != nil {
					c.change(tx, f, n)
				}
				return nil
			}))
			info, mode := w.info("f"), uint32(fetched&0o777)
			info.Attr.Mode, info.Attr.Valid = mode, info.Attr.Valid|providers.AttrMode
			if c.info != nil {
				c.info(&info)
			}
			assert.Is(t, w.AttrsFetched(x, at("f"), asked, info), c.want)
			v := w.lock()
			defer v.unlock()
			n := v.Inode(x)
			if c.mode != 0 {
				was = c.mode
			}
			assert.Equal(t, n.Mode, was, "mode")
			assert.Equal(t, n.AttrsUnknown, c.stays, "attributes are unknown")
		})
	}
}
