package cache

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wsmount/wsmount/cache/internal/history"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
)

// What was never here is found in the commit that has it, as often as it is asked for,
// also when the deletion was committed since.
func TestRestoreAsksTheStore(t *testing.T) {
	for _, committed := range []bool{false, true} {
		t.Run(fmt.Sprintf("committed=%v", committed), func(t *testing.T) {
			clock := newTestClock()
			c := newClone(t, seeded(t, "src/a", "A", "src/in/b", "B", "other", "1"), func(w *world, o *Options) {
				o.Now, o.Policy.Commit, o.Policy.NoWait = clock.now, DueAsked, true
			})
			remove := func(turn string) {
				c.v.SetActor(Actor{Turn: turn})
				c.do("rm src/a", "rm src/in/b", "rmdir src/in", "rmdir src")
				if committed {
					c.commits()
				}
				c.later(clock, 3*time.Second)
			}
			c.v.SetActor(Actor{Turn: "1"})
			c.ok(c.put("other", "2"))
			c.commits()
			c.later(clock, 3*time.Second)
			for _, turn := range []string{"2", "3", "4"} {
				remove(turn)
				r := c.restore(RestoreOptions{To: State{Turn: "1"}})
				assert.Slice(t, r.Restored, []string{"src", "src/a", "src/in", "src/in/b"}, "turn", turn, "restored")
				assert.Equal(t, len(r.Skipped), 0, "turn", turn, "skipped", r.Skipped)
				c.commits()
				c.later(clock, 3*time.Second)
				assert.Equal(t, c.get("src/a")+c.get("src/in/b"), "AB", "turn", turn)
			}
		})
	}
}

// archive is a store that keeps, as a bucket with versioning does, what its files had.
type archive struct {
	providers.Everything
	mu  sync.Mutex        // guards had
	had map[string]string // by path and ETag
}

func (a *archive) keep(info providers.Info) string {
	return info.Locator.String() + " " + info.Version.ETag
}

func (a *archive) Write(ctx context.Context, l providers.Locator, b providers.Body, o providers.WriteOptions) (providers.Info, error) {
	content, err := io.ReadAll(b.Reader)
	if err != nil {
		return providers.Info{}, err
	}
	info, err := a.Everything.Write(ctx, l, providers.Bytes(content), o)
	if err == nil {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.had[a.keep(info)] = string(content)
	}
	return info, err
}

func (a *archive) Read(ctx context.Context, l providers.Locator, o providers.ReadOptions) (providers.Content, error) {
	content, err := a.Everything.Read(ctx, l, o)
	info := providers.Info{Locator: l, Kind: providers.KindFile, Size: o.Version.Size, Version: o.Version}
	a.mu.Lock()
	was, kept := a.had[a.keep(info)]
	a.mu.Unlock()
	switch {
	case err == nil || !o.Past:
		return content, err
	case !kept:
		return content, err
	}
	return providers.Content{Info: info, Body: io.NopCloser(strings.NewReader(was))}, nil
}

// archived is a world whose store has two files, which were seen here in turn 1 and not
// read, and keeps what they had. Turn 2 begins.
func archived(t *testing.T) (*scene, *testClock) {
	a := &archive{had: map[string]string{}}
	w, c := sameTime(t, func(w *world, _ *Options) {
		w.wrap = func(p providers.Provider) providers.Provider {
			a.Everything = providers.Wrap(p, providers.WrapOptions{})
			return a
		}
	}, holding("d/f", "old\n", "g", "another\n"))
	for _, path := range []string{"d/f", "g"} {
		info := w.stat(path)
		a.had[a.keep(info)] = map[string]string{"d/f": "old\n", "g": "another\n"}[path]
		w.walk(path)
	}
	w.v.SetActor(Actor{Turn: "1"})
	w.ok(w.put("mine", "mine\n"))
	w.settle()
	w.turn(c, "2")
	return w, c
}

// loses are the ways to lose what a file had that was never read here.
var loses = map[string]func(w *scene, c *testClock){
	"overwritten, settled, and again": func(w *scene, c *testClock) {
		w.ok(w.put("d/f", "1\n"))
		w.settle()
		w.later(c, 3*time.Second)
		w.ok(w.put("d/f", "22\n"))
	},
	"overwritten by another": func(w *scene, c *testClock) { w.brings(c, "d/f", "theirs\n") },
}

// What was never here is found among the versions that the store keeps, however it was
// lost, as often as it is asked for.
func TestRestoreAsksForVersions(t *testing.T) {
	for name, lose := range loses {
		t.Run(name, func(t *testing.T) {
			w, c := archived(t)
			lose(w, c)
			w.settle()
			w.turn(c, "3")
			for range 2 {
				w.goesBack(State{Turn: "1"}, "d/", "d/f: old\n", "g: another\n", "mine: mine\n")
				w.later(c, 3*time.Second)
				w.ok(w.put("d/f", "and lost once more\n"))
				w.settle()
				w.later(c, 3*time.Second)
			}
		})
	}
}

// Each version that was sent can be had from the store when it is not kept here.
func TestVersionsThatWereSent(t *testing.T) {
	w, c := archived(t)
	w.o.Policy.History.Bytes = 0
	for _, content := range []string{"1\n", "22\n", "333\n"} {
		w.ok(w.put("d/f", content))
		w.settle()
		w.later(c, 3*time.Second)
	}
	w.ok(w.unlink("d/f"))
	w.settle()
	w.forgetAll()
	w.ok(w.v.update(func(v *Tx) error {
		v.Scan(history.Prefix, "", func(key string, value []byte) bool {
			if r := history.Decode(value); r.Kept { // as when there is no room for it
				r.Kept, r.Copy = false, 0
				history.Put(v, history.IDOf(key), r)
			}
			return true
		})
		return nil
	}))
	w.logs("d/f", "ended removed d/f: 333\n", "written written d/f: 333\n", "written written d/f: 22\n", "written written d/f: 1\n")
}
