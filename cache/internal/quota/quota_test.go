package quota

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/wsmount/wsmount/integration/assert"
)

type clock struct{ at time.Time }

func (c *clock) now() time.Time { return c.at }

func open(t *testing.T, name string, total int64, c *clock) *Share {
	t.Helper()
	s := assert.Of(Open(name, Options{Total: total, Now: c.now})).OK(t)
	t.Cleanup(func() { s.Close() })
	return s
}

func look(t *testing.T, s *Share, own int64) {
	t.Helper()
	assert.OK(t, s.Look(own))
}

// Who holds most gives most, nobody more than is wanted, and all together keep
// just the bound.
func TestMine(t *testing.T) {
	for _, tt := range []struct {
		name       string
		total      int64
		held, want []int64
	}{
		{"alone and below", 100, []int64{80}, []int64{80}},
		{"alone and above", 100, []int64{180}, []int64{100}},
		{"just the bound", 100, []int64{60, 40}, []int64{60, 40}},
		{"two that are equal", 100, []int64{80, 80}, []int64{50, 50}},
		{"a small one keeps all", 100, []int64{10, 200}, []int64{10, 90}},
		{"three levels", 100, []int64{10, 50, 90}, []int64{10, 45, 45}},
		{"in no order", 100, []int64{90, 10, 50}, []int64{45, 10, 45}},
		{"most below", 100, []int64{20, 30, 60, 0}, []int64{20, 30, 50, 0}},
		{"many equal", 100, []int64{50, 50, 50, 50}, []int64{25, 25, 25, 25}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, name := &clock{time.Unix(1e9, 0)}, filepath.Join(t.TempDir(), "clean")
			var shares []*Share
			for range tt.held {
				shares = append(shares, open(t, name, tt.total, c))
			}
			for range 2 { // all have said it before anybody looks
				for i, s := range shares {
					look(t, s, tt.held[i])
				}
			}
			for i, s := range shares {
				assert.Equal(t, s.Mine(tt.held[i]), tt.want[i], i, "of", tt.held, "keeps")
			}
		})
	}
}

// What one holds that has gone, was killed or hangs does not count, and its slot
// is taken again.
func TestGone(t *testing.T) {
	c, name := &clock{time.Unix(1e9, 0)}, filepath.Join(t.TempDir(), "clean")
	first, second := open(t, name, 100, c), open(t, name, 100, c)
	keeps := func(what string, want int64) {
		t.Helper()
		look(t, second, 90)
		assert.Equal(t, second.Mine(90), want, what, "keeps")
	}
	look(t, first, 90)
	keeps("beside another", 50)
	c.at = c.at.Add(silence + time.Second)
	keeps("beside one that hangs", 90)
	look(t, first, 90)
	keeps("once it goes on", 50)
	slot := first.slot
	first.file.Close() // as the end of a process does
	third := open(t, name, 100, c)
	assert.True(t, third.slot == slot && third.slot != second.slot, "slots", third.slot, "and", second.slot, "want that of the first", slot)
	keeps("beside a new one", 90)
	look(t, third, 40)
	keeps("beside what that holds", 60)
	third.Close()
	keeps("alone", 90)
}

// A loop tells the others what is held, and has given up at once what they leave no room for.
func TestLoop(t *testing.T) {
	name, c := filepath.Join(t.TempDir(), "clean"), &clock{at: time.Unix(1e9, 0)}
	mine, other := open(t, name, 100, c), open(t, name, 100, c)
	look(t, other, 100)
	var may []int64
	rounds := 0
	mine.Loop(t.Context(), func(context.Context, time.Duration) error {
		if rounds++; rounds > 1 {
			return context.Canceled
		}
		return nil
	}, func() int64 {
		may = append(may, mine.Mine(80))
		return 80
	}, func(err error) { assert.OK(t, err) })
	assert.Slice(t, may, []int64{80, 50}, "of 80 bytes, before a look and after it")
	look(t, other, 100)
	assert.Equal(t, other.Mine(100), 50, "what is left for the other")
}
