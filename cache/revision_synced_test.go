package cache

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/wsmount/wsmount/cache/internal/merge"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
)

// unlevel is what the table does not know of the head once it is said to have it,
// told by listing all that is known.
func unlevel(v *Volume) (wrong []string, err error) {
	if !v.follower.IsStore() {
		return nil, nil
	}
	w := v.waits.For(nil, 5*time.Second)
	defer w.Close()
	head, err := v.follower.Hold(w)
	if err != nil {
		return nil, err
	}
	defer head.Release()
	locked := v.lock()
	defer locked.unlock()
	for _, dir := range locked.KnownRemoteDirs() {
		at, ok := locked.RemotePathOf(dir)
		if !ok {
			continue
		}
		seen := map[string]bool{}
		for info, err := range providers.All(w, v.p, at, providers.ListOptions{}) {
			if err != nil {
				return wrong, err
			}
			name := info.Locator.Name()
			seen[name] = true
			rec, _ := locked.Name(dir, name)
			if rec.Local || v.border.Excluded(info.Locator, info.Kind) || v.send.Jobs().StandsAside(locked.View, table.Link{Dir: dir, Name: name}, rec) {
				continue
			}
			isDir := rec.Remote != nil && rec.Remote.Kind == providers.KindDir && info.Kind == providers.KindDir
			if !isDir && !merge.Unchanged(rec, &info) {
				wrong = append(wrong, fmt.Sprintf("%s: known is %+v, and there is %+v", info.Locator, rec.Remote, info))
			}
		}
		locked.Names(dir, "", func(name string, rec table.Name) bool {
			if rec.Remote != nil && rec.Remote.Kind != providers.KindDir && !seen[name] { // a directory without entries is in no revision
				wrong = append(wrong, fmt.Sprintf("%s/%s: known is %+v, and there is nothing", at, name, rec.Remote))
			}
			return true
		})
	}
	return wrong, nil
}

// wantLevel holds the table to what it says of itself. A store that does not
// answer cannot be asked.
func wantLevel(t interface {
	Helper()
	Fatalf(format string, args ...any)
}, v *Volume) {
	t.Helper()
	wrong, err := unlevel(v)
	if len(wrong) > 0 {
		t.Fatalf("the table is not level: %v\n%s", err, strings.Join(wrong, "\n"))
	}
}

// What a pull costs depends on what is new and not on what is known: nothing is
// listed, not in another run, and not after a crash between what the store noted
// and what the table did.
func TestPullListsNothing(t *testing.T) {
	var calls calls
	c := newClone(t, seeded(t, "a", "1", "d/b", "1", "d/deep/c", "1", "e/f", "1", "e/x.o", "1"), calls.asks)
	c.sees("a: 1", "d/", "d/b: 1", "d/deep/", "d/deep/c: 1", "e/", "e/f: 1", "e/x.o: 1")
	wants := func(what string, lists bool, want ...string) {
		t.Helper()
		calls.of("")
		c.pull()
		assert.Equal(t, calls.of(providers.MethodList) > 0, lists, what, "listings")
		c.sees(want...)
	}
	wants("the first pull", false, "a: 1", "d/", "d/b: 1", "d/deep/", "d/deep/c: 1", "e/", "e/f: 1", "e/x.o: 1")
	c.there("d/deep/c", "2")
	c.there("e/f", "")
	wants("a pull", false, "a: 1", "d/", "d/b: 1", "d/deep/", "d/deep/c: 2", "e/", "e/x.o: 1")
	c.ok(c.put("a", "ours"))
	c.commit()
	c.push()
	c.again()
	c.there("d/new", "1")
	wants("another run", false, "a: ours", "d/", "d/b: 1", "d/deep/", "d/deep/c: 2", "d/new: 1", "e/", "e/x.o: 1")
	c.there("d/b", "2")
	from := assert.Of(c.repo.Head(t.Context())).OK(c)
	to := assert.Of(c.repo.Fetch(t.Context())).OK(c)
	c.killed()
	c.ok(c.repo.Adopt(t.Context(), from, to))
	wants("the head had gone on", false, "a: ours", "d/", "d/b: 2", "d/deep/", "d/deep/c: 2", "d/new: 1", "e/", "e/x.o: 1")
	c.o.Exclude = excludes(".o")
	c.again()
	wants("other rules", true, "a: ours", "d/", "d/b: 2", "d/deep/", "d/deep/c: 2", "d/new: 1", "e/")
	c.o.Exclude = nil
	c.again()
	wants("no rules any more", true, "a: ours", "d/", "d/b: 2", "d/deep/", "d/deep/c: 2", "d/new: 1", "e/", "e/x.o: 1")
}
