package past

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/wsmount/wsmount/cache/internal/history"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
	"github.com/wsmount/wsmount/integration/assert"
)

// remembers is the past of a tree that has these records of a file, a second apart, the first
// with the number 1.
func remembers(t *testing.T, by ...history.Actor) *Past {
	t.Helper()
	tab := assert.Of(table.Open("/past", table.Options{FS: vfs.NewMem()})).OK(t)
	t.Cleanup(func() { assert.OK(t, tab.Close()) })
	in := tree.New(tab, tree.Options{})
	assert.OK(t, in.Update(func(tx *tree.Tx) error {
		l := table.Link{Dir: table.Root, Name: "f"}
		tx.Put(table.Root, &table.Inode{Mode: syscall.S_IFDIR, Loaded: true})
		for i, actor := range by {
			id := history.Append(tx, history.HeadOf(tx, l), &history.Record{Change: history.Written, Dir: l.Dir, Name: l.Name, Ino: 9,
				Time: int64(i+1) * int64(time.Second), Actor: actor})
			assert.Must(t, id == uint64(i+1), "record", i, "has the number", id)
		}
		return nil
	}, nil))
	return New(Options{Tree: in})
}

// A state has one name, and each kind of name leads to the record before which the state
// ends: that after the last change of the name, or the first.
func TestCutOf(t *testing.T) {
	h := remembers(t, history.Actor{},
		history.Actor{Turn: "1", Conversation: "x", Event: "tool-call"},
		history.Actor{Turn: "2", Conversation: "x", Event: "turn-start"},
		history.Actor{Turn: "2", Conversation: "x", Event: "tool-call"},
		history.Actor{Turn: "3", Conversation: "y", Event: "tool-call"},
		history.Actor{Turn: "3", Conversation: "y", Event: "tool-call"},
		history.Actor{})
	for _, c := range []struct {
		name          string
		s             State
		after, before uint64
	}{
		{"version", State{Version: "4"}, 5, 4},
		{"time", State{Time: time.Unix(3, 1)}, 4, 4},
		{"time of a change", State{Time: time.Unix(4, 0)}, 5, 4},
		{"time to come", State{Time: time.Date(2500, 1, 1, 0, 0, 0, 0, time.UTC)}, ^uint64(0), ^uint64(0)},
		{"time long ago", State{Time: time.Date(1600, 1, 1, 0, 0, 0, 0, time.UTC)}, 1, 1},
		{"event", State{Event: "turn-start"}, 4, 3},
		{"event of many turns", State{Event: "tool-call"}, 7, 5},
		{"turn", State{Turn: "2"}, 5, 3},
		{"conversation", State{Conversation: "x"}, 5, 2},
		{"turn of a conversation", State{Turn: "3", Conversation: "y"}, 7, 5},
	} {
		for _, want := range []uint64{c.after, c.before} {
			assert.Equal(t, assert.Of(h.cutOf(t.Context(), c.s)).OK(t), want, c.name, "before", c.s.Before)
			c.s.Before = true
		}
	}
}

// A state with no name, or with two, is none; nor is one that never was.
func TestNoState(t *testing.T) {
	h := remembers(t, history.Actor{})
	for _, c := range []struct {
		s    State
		want error
	}{
		{State{}, syscall.EINVAL},
		{State{Before: true}, syscall.EINVAL},
		{State{Version: "1", Turn: "7"}, syscall.EINVAL},
		{State{Event: "turn-start", Time: time.Unix(1, 0)}, syscall.EINVAL},
		{State{Event: "no-such"}, ErrNoVersion},
		{State{Version: "4711", Before: true}, ErrNoVersion},
		{State{Version: "f", Before: true}, ErrNoVersion},
	} {
		assert.Is(t, assert.ErrOf(h.Plan(t.Context(), "f", c.s)), c.want, fmt.Sprintf("%+v", c.s))
	}
}
