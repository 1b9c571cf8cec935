package merge

import (
	"fmt"
	"strings"
	"testing"

	"github.com/wsmount/wsmount/cache/internal/files"
	"github.com/wsmount/wsmount/cache/internal/history"
	"github.com/wsmount/wsmount/cache/internal/reconcile"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/memory"
)

// replaced is a file that a program has open when a pull brings what another writer does.
func replaced(c *copied, script ...string) *files.OpenInode {
	c.Helper()
	o := c.open("f", files.ForWriting)
	c.theirs(script...)
	c.pull()
	c.told = nil
	return o
}

// What is written to a file that lost its name to a pull while it was open is a change of that
// name: it becomes what the policy says, and the next report tells of a conflict, once.
func TestOrphanConflict(t *testing.T) {
	const base, theirs = "1\n2\n3\n4\n5\n", "1\n2\n3\n4\nfive\n"
	copyOf, put := "f.conflict-"+short("ours")+": ours", []string{"put f theirs"}
	for what, c := range map[string]struct {
		policy          reconcile.Conflict
		base, ours      string // "": "one", "ours"
		there           []string
		want            []string
		held, unwritten bool
		unreported      string
		kept            int // of theirs
		ended           int // times that the history has that theirs ended
	}{
		"split":        {there: put, want: []string{"f: theirs", copyOf}, unreported: "f"},
		"same":         {there: []string{"put f ours"}, want: []string{"f: ours"}},
		"deleted":      {there: []string{"rm f"}, want: []string{"f: ours"}},
		"a directory":  {there: []string{"rm f", "put f/x y"}, want: []string{"f/", "f/x: y", copyOf}, unreported: "f"},
		"copied":       {there: []string{"put f theirs", "put " + strings.Replace(copyOf, ":", "", 1)}, want: []string{"f: theirs", copyOf}, unreported: "f"},
		"abort":        {policy: reconcile.Abort, there: put, want: []string{"f: ours"}, held: true, ended: 1, unreported: "f"},
		"manual":       {policy: reconcile.Manual, there: put, want: []string{"f: ours"}, held: true, ended: 1, unreported: "f"},
		"last writer":  {policy: reconcile.LastWriterWins, there: put, want: []string{"f: ours"}, kept: 1, ended: 1, unreported: "f"},
		"only read":    {there: put, want: []string{"f: theirs"}, unwritten: true},
		"merged":       {policy: reconcile.Combine, base: base, ours: "one\n2\n3\n4\n5\n", there: []string{"put f " + theirs}, want: []string{"f: one\n2\n3\n4\nfive\n"}},
		"ours has all": {policy: reconcile.Combine, base: base, ours: "one\n2\n3\n4\nfive\n", there: []string{"put f " + theirs}, ended: 1, want: []string{"f: one\n2\n3\n4\nfive\n"}},
		"they have all": {policy: reconcile.Combine, base: base, ours: "one\n2\n3\n4\n5\n", there: []string{"put f one\n2\n3\n4\nfive\n"},
			want: []string{"f: one\n2\n3\n4\nfive\n"}},
	} {
		t.Run(what, func(t *testing.T) {
			base, ours := "one", "ours"
			if c.base != "" {
				base, ours = c.base, c.ours
			}
			w := newText(t, memory.Options{}, c.policy, base, base)
			o := replaced(w, c.there...)
			if c.unwritten {
				w.ok(w.opener.Close(o, true))
			} else {
				w.ok(w.opener.Change(o, func() error { return o.Content().Truncate(t.Context(), 0) }))
				w.writeLast(o, ours, 0)
			}
			w.sees(c.want...)
			assert.Equal(t, len(w.Held().Conflicts()) > 0, c.held, "held back")
			assert.Equal(t, len(w.kept), c.kept, "the history has", w.kept)
			assert.Equal(t, w.ended(history.WhyConflict), c.ended, "how often the history has that theirs ended")
			for _, unreported := range []string{c.unreported, ""} {
				assert.Equal(t, strings.Join(w.Held().UnreportedConflicts(), " "), unreported, "not told yet")
			}
			if !c.held {
				w.sendable()
				w.pull()
				w.sees(c.want...)
			}
			locked := w.lock()
			defer locked.unlock()
			assert.Equal(t, len(OrphanConflicts(locked.View)), 0, "left for later")
		})
	}
}

// What could not be decided is decided later, and what is decided twice has one outcome.
func TestOrphanConflictAgain(t *testing.T) {
	for what, c := range map[string]struct {
		fails error
		later int
	}{"after a failure": {fails: fmt.Errorf("read: %w", providers.ErrPermission), later: 1}, "meanwhile": {}} {
		t.Run(what, func(t *testing.T) {
			w := newText(t, memory.Options{}, reconcile.LastWriterWins, "one", "one")
			o, reads := replaced(w, "put f theirs"), 0
			w.calls = func(call *providers.Call) error {
				if reads++; call.Method != providers.MethodRead || reads > 1 {
					return nil
				}
				if c.fails == nil {
					w.ResolveOrphanConflicts()
				}
				return c.fails
			}
			w.writeLast(o, "ours", 0)
			assert.Must(t, len(w.later) == c.later, "left for later", len(w.later))
			for _, f := range w.later {
				f()
			}
			w.sees("f: ours")
			w.sendable()
			assert.True(t, strings.Contains(strings.Join(w.kept, " "), "theirs"), "the history has", w.kept)
		})
	}
}

// What a person has to decide about is not sent over the present version of the remote, though it
// began from the same, or from none.
func TestOrphanConflictIsNotSent(t *testing.T) {
	for what, c := range map[string]struct{ start, ours, first string }{
		"the same": {"f", "read f", "put f theirs"},
		"none":     {"f.conflict-" + short("one"), "put f one", "mkdir f"},
	} {
		t.Run(what, func(t *testing.T) {
			w := newCopy(t, memory.Options{Without: providers.Capabilities{UniqueVersions: true}}, reconcile.Manual, c.start, "one")
			w.ours(c.ours)
			o := replaced(w, c.first)
			w.theirs("rm f", "put f one")
			w.pull()
			w.writeLast(o, "ours", 0)
			all := w.Held().Conflicts()
			assert.Must(t, len(all) == 1 && all[0].Theirs.Matches(w.info("f").Version), "conflicts", all)
			assert.True(t, all[0].Base.IsZero(), "the base is", all[0].Base)
			l, _ := w.find("f")
			rec, _ := w.record(l)
			assert.False(t, rec.Remote.Version.Matches(w.info("f").Version) || rec.Remote.Version.IsZero(), "it is sent over", rec.Remote.Version)
		})
	}
}

// What needed no name, because something else has that content, may change again.
func TestOrphanConflictAfterOneThatNeededNoName(t *testing.T) {
	for _, first := range []string{"them", "copy"} {
		w := newText(t, memory.Options{}, reconcile.Split, "base", "base")
		o := replaced(w, "put f them", "put f.conflict-"+short("copy")+" copy")
		w.write(o, first, 0)
		w.ok(w.opener.Flush(o, true))
		w.writeLast(o, "ours", 0)
		w.sees("f: them", "f.conflict-"+short("copy")+": copy", "f.conflict-"+short("ours")+": ours")
	}
}
