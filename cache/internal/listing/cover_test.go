package listing

import (
	"strings"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/memory"
)

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
		a := newScene(t, memory.Options{ImpliedDirs: true}, nil).Ahead
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
