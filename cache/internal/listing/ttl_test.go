package listing

import (
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/integration/assert"
)

var start = time.Unix(100_000, 0)

const (
	ttl      = 10 * time.Second
	patience = 30 * time.Second
	usual    = 50 * time.Millisecond
)

func newBelief(now *time.Time) *Belief {
	return &Belief{Now: func() time.Time { return *now }, TTL: ttl, Patience: patience, Log: slog.New(slog.DiscardHandler)}
}

// What a look does depends on how old what is known is, how the remote answers, and
// whether it shows content.
func TestJudge(t *testing.T) {
	answers := map[string]func(*Belief){
		"never asked": func(*Belief) {},
		"fast":        func(b *Belief) { b.Answered(usual) },
		"slow":        func(b *Belief) { b.Answered(2 * time.Second) },
		"late":        func(b *Belief) { b.Answered(usual); b.Overdue(usual) },
		"gone":        func(b *Belief) { b.Answered(usual); b.Unanswered(patience/3, errors.New("no answer")) },
	}
	for _, c := range []struct {
		answers string
		age     time.Duration // less than 0: never listed
		strict  bool
		want    Freshness
		limit   time.Duration
	}{
		{"fast", ttl - 1, true, Fresh, -1},
		{"gone", ttl - 1, true, Fresh, -1},
		{"never asked", ttl, false, Stale, LeastWait},
		{"fast", ttl, false, Stale, 4 * usual},
		{"fast", ttl, true, Stale, MostWait},
		{"slow", ttl, false, Stale, 0},
		{"slow", ttl, true, Stale, 8 * time.Second},
		{"late", ttl, false, Stale, 0},
		{"late", ttl, true, Stale, 0},
		{"never asked", StaleFor, false, Stale, MostWait},
		{"fast", StaleFor, false, Stale, 4 * usual},
		{"slow", StaleFor, false, Stale, 8 * time.Second},
		{"late", StaleFor, false, Stale, 0},
		{"fast", StaleFor, true, Old, -1},
		{"gone", StaleFor, true, Old, -1},
		{"fast", -1, false, Unknown, -1},
		{"late", -1, false, Unknown, -1},
		{"gone", -1, false, Unknown, patience - patience/3},
	} {
		now := start
		b := newBelief(&now)
		answers[c.answers](b)
		n := &table.Inode{Loaded: c.age >= 0, Listed: now.Add(-c.age).UnixNano()}
		a, limit := b.Judge(table.Root, n, now, c.strict)
		assert.Equal(t, a, c.want, c.answers, c.age, "old, strict", c.strict)
		assert.Equal(t, limit, c.limit, c.answers, c.age, "old, strict", c.strict, "limit")
	}
}

// What the remote does not have, it cannot change; and without a TTL it changes nothing.
func TestWhatIsAlwaysFresh(t *testing.T) {
	now := start
	old := now.Add(-24 * time.Hour).UnixNano()
	for _, c := range []struct {
		dir  table.Ino
		n    table.Inode
		ttl  time.Duration
		want Freshness
		ends time.Duration // for the kernel
	}{
		{2, table.Inode{Loaded: true, Listed: old}, ttl, Fresh, kernelMax},
		{2, table.Inode{Loaded: true, Listed: old, RemoteLinks: []table.Link{{}}}, ttl, Old, 0},
		{2, table.Inode{Loaded: true, Listed: old, RemoteLinks: []table.Link{{}}, From: "moving"}, ttl, Fresh, 0},
		{table.Root, table.Inode{Loaded: true, Listed: old}, ttl, Old, 0},
		{table.Root, table.Inode{Loaded: true, Listed: old}, 0, Fresh, kernelMax},
		{table.Root, table.Inode{Loaded: true, Listed: now.Add(-ttl / 4).UnixNano()}, ttl, Fresh, ttl - ttl/4},
		{table.Root, table.Inode{Loaded: true, Listed: now.Add(time.Hour).UnixNano()}, ttl, Old, ttl}, // the clock was set back
	} {
		b := newBelief(&now)
		b.TTL = c.ttl
		got, _ := b.Judge(c.dir, &c.n, now, true)
		assert.Equal(t, got, c.want, c)
		assert.Equal(t, b.KernelTTL(c.dir, &c.n), c.ends, c)
	}
}

// A listing that ended after a look came is as new as the look can want, however long it
// took.
func TestListedMeanwhile(t *testing.T) {
	now := start.Add(2 * ttl)
	b := newBelief(&now)
	n := &table.Inode{Loaded: true, Listed: start.Add(1).UnixNano()}
	a, _ := b.Judge(table.Root, n, start, true)
	assert.Equal(t, a, Fresh)
}

// An answer ends an outage, which is not what a listing usually takes.
func TestOutageEnds(t *testing.T) {
	now := start
	b := newBelief(&now)
	assert.False(t, b.Answered(usual), "it was gone before it was asked")
	b.Unanswered(patience, errors.New("no answer"))
	assert.Equal(t, b.FailingSince(), now.Add(-patience))
	assert.True(t, b.Answered(patience), "it was not gone")
	assert.False(t, b.IsFailing(), "after an answer")
	assert.Equal(t, b.usual, (3*usual+4*usual)/4)
	b.Overdue(0)
	assert.False(t, b.IsFailing(), "because a look did not wait")
}
