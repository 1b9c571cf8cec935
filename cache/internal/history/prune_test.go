package history_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/wsmount/wsmount/cache/internal/history"
	"github.com/wsmount/wsmount/cache/internal/history/historytest"
	"github.com/wsmount/wsmount/integration/assert"
)

// The budget is kept: by count, by age and by bytes. What was given up is counted.
func TestBudget(t *testing.T) {
	small := history.Budget{Versions: 4, Age: time.Hour, Bytes: 1 << 17}
	budget := func(t *testing.T) *historytest.Copy {
		t.Helper()
		c := historytest.New(t, history.Options{Budget: small, Small: 1 << 15})
		assert.Equal(t, c.Keeper.Usage().Versions, -1, "versions, before they were counted")
		c.Later(0)
		return c
	}
	t.Run("count", func(t *testing.T) {
		c := budget(t)
		for i := range 2 * history.PruneEach {
			c.Do(fmt.Sprint("put f ", i))
		}
		assert.Equal(t, len(c.Records()), 2*history.PruneEach, "records, before they are looked at")
		c.Do("wait")
		has(c, "written written f: =", "written written f: -", "written written f: -", "written written f: -")
		u := c.Keeper.Usage()
		assert.True(t, u.Versions == 4 && u.Pruned.Versions == 2*history.PruneEach-4 && u.Pruned.Contents == 1 && u.Bytes == 0, u)
	})
	t.Run("age", func(t *testing.T) {
		c := budget(t)
		c.Do("put old x", "rm old")
		c.Later(59 * time.Minute)
		c.Do("put new x")
		c.Later(10 * time.Minute)
		has(c, "written written new: =")
		assert.Equal(t, c.Store.KeptBytes(), 0, "content without a record")
		assert.Equal(t, c.Keeper.Usage().Versions, 1)
	})
	t.Run("bytes", func(t *testing.T) {
		c := budget(t)
		big := strings.Repeat("x", 48<<10)
		for _, name := range []string{"a", "b", "c", "d"} {
			c.Do("put "+name+" "+big, "rm "+name)
		}
		c.Do("wait")
		kept := c.Store.KeptBytes()
		assert.True(t, kept <= 1<<17 && kept >= 96<<10 && c.Keeper.Usage().Pruned.Contents == 2, kept, c.Keeper.Usage())
		log := c.Records()
		assert.True(t, len(log) == 8 && strings.HasSuffix(log[0], big) && strings.HasSuffix(log[6], ": -"), len(log), "records")
		c.Do("put large "+strings.Repeat("y", 1<<15+1), "wait", "put large x")
		assert.Equal(t, c.Records()[1], "written written large: -", "more than an eighth of the budget")
	})
}
