package listing

import (
	"context"
	"log/slog"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
)

type noLister struct{}

func (noLister) MayList(*tree.View) bool            { return true }
func (noLister) Answered(*tree.View, time.Duration) {}
func (noLister) List(context.Context, providers.Locator, providers.ListOptions) (providers.Page, error) {
	return providers.Page{}, providers.ErrUnavailable
}

type noRoom struct{}

func (noRoom) TryTake(any, int64) (func(), bool) { return nil, false }

func newAhead(t *testing.T) *Ahead {
	t.Helper()
	tab, err := table.Open("/listing", table.Options{FS: vfs.NewMem(), Strict: true})
	assert.OK(t, err)
	t.Cleanup(func() { tab.Close() })
	tr := tree.New(tab, tree.Options{})
	assert.OK(t, tr.Update(func(tx *tree.Tx) error {
		tx.Put(table.Root, &table.Inode{Mode: syscall.S_IFDIR})
		return nil
	}, nil))
	return NewAhead(AheadOptions{Tree: tr, Lists: noLister{}, Room: noRoom{}, Context: t.Context(), Go: func(f func()) { go f() }, CanCover: true,
		Belief: &Belief{Now: time.Now, TTL: time.Minute, Patience: time.Minute, Log: slog.New(slog.DiscardHandler)}})
}

// A directory is known when all below it has come, whatever lies in it and on however many
// pages, and when none of it is missing.
func TestWhatPagesCover(t *testing.T) {
	for name, c := range map[string]struct {
		pages []string // names, of directories with a slash
		want  string   // the directories that are whole by then
	}{
		"one page":                       {[]string{"a/ a/f b/ b/c/ b/c/f g"}, "a: a/f|b: b/c|b/c: b/c/f"},
		"one that goes on":               {[]string{"a/ a/f", "a/g b"}, "a: a/f a/g"},
		"one that ends with a page":      {[]string{"a/ a/f b/ b/f", "c"}, "a: a/f|b: b/f"},
		"one below another that goes on": {[]string{"a/ a/b/ a/b/f", "a/b/g a/c", "d"}, "a: a/b a/c|a/b: a/b/f a/b/g"},
		"an empty one":                   {[]string{"a/ b"}, "a: "},
		"one that was not told":          {[]string{"a/ a/b/f a/c", "d"}, ""},
	} {
		a := newAhead(t)
		r := a.Tree(providers.Locator{})
		for i, names := range c.pages {
			page := providers.Page{}
			for name := range strings.FieldsSeq(names) {
				info := providers.Info{Kind: providers.KindFile}
				if path, isDir := strings.CutSuffix(name, "/"); isDir {
					name, info.Kind = path, providers.KindDir
				}
				info.Locator = providers.MustLocator(name)
				page.Entries = append(page.Entries, info)
			}
			if i < len(c.pages)-1 {
				page.Next = "more"
			}
			_, last, err := r.Bring(func(providers.ListOptions) (providers.Page, error) { return page, nil })
			assert.OK(t, err)
			assert.Equal(t, last, page.Next == "", name)
		}
		var got []string
		for _, one := range r.All() {
			names := []string{}
			for _, e := range one.Entries {
				names = append(names, e.Locator.String())
			}
			got = append(got, one.At.String()+": "+strings.Join(names, " "))
			a.Drop(one)
		}
		r.Drop()
		assert.Equal(t, strings.Join(got, "|"), c.want, name)
		v := a.o.Tree.Lock()
		assert.False(t, v.IsObserved(), name, "is still observed")
		a.o.Tree.Unlock()
	}
}
