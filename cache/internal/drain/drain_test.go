package drain

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/wsmount/wsmount/cache/internal/pending"
	"github.com/wsmount/wsmount/cache/internal/revision"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
)

var (
	errStore  = errors.New("the store is down")
	errServer = errors.New("the server is down")
	errFlush  = errors.New("the disk is full")
)

// copied is a working copy with a few files, whose commits do what the rounds say.
type copied struct {
	*testing.T
	tree   *tree.Tree
	rounds []func(tx *tree.Tx) error // what a commit does; after the last one nothing
	push   error
	flush  error
	held   map[string]string // why names are not sent
	log    []string
}

func link(name string) table.Link { return table.Link{Dir: table.Root, Name: name} }

func (c *copied) update(do func(tx *tree.Tx) error) { assert.OK(c, c.tree.Update(do, nil)) }

// change makes a file differ from the remote, and sent has the remote have it.
func change(tx *tree.Tx, name string) { tx.ContentChanged(tx.Record(link(name)).Ino, 1, table.Time{}) }

func sent(tx *tree.Tx, name string) {
	ino := tx.Record(link(name)).Ino
	tx.SetRemote(link(name), &table.Remote{Ino: ino, Kind: providers.KindFile, ContentVersion: tx.Inode(ino).ContentVersion})
}

func (c *copied) Inos(*tree.View) []table.Ino { return []table.Ino{10, 99} } // a, and one that is gone

func (c *copied) note(what string, err error) error {
	c.log = append(c.log, what)
	assert.Must(c, len(c.log) < 100, "it does not end")
	return err
}

func (c *copied) SendOpen(_ *tree.View, ino table.Ino, _ *table.Inode) {
	_ = c.note(fmt.Sprint("send ", ino), nil)
}

func (c *copied) IsBeingWritten(v *tree.View, rec table.Name) bool { return c.held["writing"] != "" }

func (c *copied) Of(v *tree.View, l table.Link) pending.HeldBack {
	of := pending.HeldBack{Path: l.Name, Reason: pending.OnItsWay}
	if why := c.held[l.Name]; why != "" {
		of.Reason = why
	}
	return of
}

func (c *copied) Commit(context.Context) (r pending.Report, err error) {
	if len(c.rounds) > 0 {
		r.Changes = 1
		c.update(func(tx *tree.Tx) error { err = c.rounds[0](tx); return nil })
		c.rounds = c.rounds[1:]
	}
	return r, c.note("commit", err)
}

func (c *copied) Push(context.Context) error {
	if c.push == nil && len(c.rounds) == 0 { // else another was noted meanwhile
		c.update(func(tx *tree.Tx) error { return revision.SetUnpushed(tx, nil) })
	}
	return c.note("push", c.push)
}

// A drain goes on as long as a round has sent something and something is left that may be
// sent, and says what the remote does not have in the end, and why.
func TestDrain(t *testing.T) {
	type round = func(tx *tree.Tx) error
	sends := func(names ...string) round {
		return func(tx *tree.Tx) error {
			for _, name := range names {
				sent(tx, name)
			}
			return nil
		}
	}
	commits := func(names ...string) round {
		return func(tx *tree.Tx) error {
			return errors.Join(sends(names...)(tx), revision.SetUnpushed(tx, (*revision.Unpushed)(nil).Committed(1, time.Time{})))
		}
	}
	for what, c := range map[string]struct {
		changed []string
		rounds  []round
		pushes  bool
		push    error
		flush   error
		held    map[string]string
		does    string // beside the flush of each round
		left    string
		cause   error
	}{
		"nothing differs":       {does: "commit", left: "[]"},
		"all is sent":           {changed: []string{"a", "b"}, rounds: []round{sends("a", "b")}, does: "commit", left: "[]"},
		"changed meanwhile":     {changed: []string{"a"}, rounds: []round{func(tx *tree.Tx) error { change(tx, "b"); return sends("a")(tx) }, sends("b")}, does: "commit commit", left: "[]"},
		"one is held back":      {changed: []string{"a", "b"}, rounds: []round{sends("a")}, held: map[string]string{"b": "too large"}, does: "commit", left: "[b: too large]"},
		"one is being written":  {changed: []string{"a"}, rounds: []round{sends("b"), sends("a")}, held: map[string]string{"a": "a program is writing it", "writing": "a"}, does: "commit commit", left: "[]"},
		"nothing moves":         {changed: []string{"a"}, rounds: []round{sends("b")}, does: "commit commit", left: "[a: " + pending.OnItsWay + "]"},
		"the store is down":     {changed: []string{"a"}, rounds: []round{func(*tree.Tx) error { return errStore }}, pushes: true, does: "commit", left: "[a: " + pending.OnItsWay + "]", cause: errStore},
		"down, nothing differs": {rounds: []round{func(*tree.Tx) error { return errStore }}, does: "commit", left: "[]", cause: errStore},
		"pushed":                {changed: []string{"a"}, rounds: []round{commits("a")}, pushes: true, does: "commit push", left: "[]"},
		"not to be pushed":      {changed: []string{"a"}, rounds: []round{commits("a")}, does: "commit", left: "[]"},
		"pushed, and one is left": {changed: []string{"a", "b"}, rounds: []round{commits("a"), commits("b")}, pushes: true,
			does: "commit push commit push", left: "[]"},
		"committed meanwhile":    {changed: []string{"a"}, rounds: []round{commits("a"), commits()}, pushes: true, does: "commit push commit push", left: "[]"},
		"owed by the run before": {rounds: []round{commits()}, pushes: true, does: "commit push", left: "[]"},
		"the server is down":     {changed: []string{"a"}, rounds: []round{commits("a")}, pushes: true, push: errServer, does: "commit push", left: "[]", cause: errServer},
		"the disk is full":       {changed: []string{"a"}, flush: errFlush, left: "[a: " + pending.OnItsWay + "]", cause: errFlush},
	} {
		t.Run(what, func(t *testing.T) {
			tab := assert.Of(table.Open("/drain", table.Options{FS: vfs.NewMem(), Strict: true})).OK(t)
			defer func() { assert.OK(t, tab.Close()) }()
			w := &copied{T: t, tree: tree.New(tab, tree.Options{}), rounds: c.rounds, push: c.push, flush: c.flush, held: c.held}
			w.update(func(tx *tree.Tx) error {
				tx.Put(table.Root, &table.Inode{Mode: syscall.S_IFDIR})
				for i, name := range []string{"a", "b"} {
					tx.Put(table.Ino(10+i), &table.Inode{Mode: syscall.S_IFREG, ContentVersion: 1})
					tx.SetLocal(link(name), table.Ino(10+i), false, false)
					sent(tx, name)
				}
				for _, name := range c.changed {
					change(tx, name)
				}
				return nil
			})
			d := &Drain{Tree: w.tree, Open: w, Queue: w, Holds: w, Commits: w, Pushes: c.pushes,
				Flush: func(ino table.Ino) error { return w.note(fmt.Sprint("flush ", ino), w.flush) }}
			err := d.All(t.Context())
			var does []string
			for _, one := range w.log {
				if one == "commit" || one == "push" {
					does = append(does, one)
				}
			}
			assert.Equal(t, fmt.Sprint(does), "["+c.does+"]")
			assert.Equal(t, fmt.Sprint(w.log[:3]), "[flush 10 send 10 flush 99]", "before the commit")
			left := []string{}
			if e := (*pending.UnsavedError)(nil); errors.As(err, &e) {
				assert.Equal(t, e.Count, len(e.Files), "names that differ")
				for _, f := range e.Files {
					left = append(left, f.Path+": "+f.Reason)
				}
			}
			assert.Equal(t, fmt.Sprint(left), c.left, "left")
			assert.True(t, c.cause == nil && (err == nil || len(left) > 0) || c.cause != nil && errors.Is(err, c.cause), "error", err)
		})
	}
}
