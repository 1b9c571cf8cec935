package cache

import (
	"fmt"
	"maps"
	"strings"
	"syscall"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/memory"
)

// TestHeadersOfObjects: what an object is served with outlives every change of it, but
// for what is true of its old bytes only.
func TestHeadersOfObjects(t *testing.T) {
	page := map[string]string{"header:content-type": "text/html", "header:content-encoding": "gzip", "colour": "red"}
	changed := map[string]string{"header:content-type": "text/html", "colour": "red"}
	inherited := map[string]string{"header:content-type": "text/html"}
	save := func(w *world, path string) {
		o := w.open(path, syscall.O_WRONLY|syscall.O_TRUNC)
		w.writeLast(o, "new", 0)
	}
	atomicSave := func(w *world) {
		w.do("put page.new new", "mv page.new page")
	}
	for _, c := range []struct {
		name string
		do   func(w *world)
		path string
		want map[string]string
	}{
		{"chmod", func(w *world) { w.do("chmod page") }, "page", page},
		{"chmod of what is local", func(w *world) { w.get("page"); w.do("chmod page") }, "page", page},
		{"rename", func(w *world) { w.ok(w.rename("page", "moved")) }, "moved", page},
		{"rename of what is local", func(w *world) { w.get("page"); w.ok(w.rename("page", "moved")) }, "moved", page},
		{"save", func(w *world) { save(w, "page") }, "page", changed},
		{"chmod after save", func(w *world) { save(w, "page"); w.settle(); w.do("chmod page") }, "page", changed},
		{"save and rename", func(w *world) { save(w, "page"); w.ok(w.rename("page", "moved")) }, "moved", changed},
		{"atomic save", atomicSave, "page", inherited},
		{"atomic save of what is known", func(w *world) { w.get("page"); atomicSave(w) }, "page", inherited},
		{"atomic save, later", func(w *world) {
			w.ok(w.put("page.new", "new"))
			w.settle()
			w.ok(w.rename("page.new", "page"))
		}, "page", inherited},
		{"another object in its place", func(w *world) { w.ok(w.rename("other", "page")) }, "page", map[string]string{"header:content-type": "a/b"}},
	} {
		for _, tells := range []bool{true, false} {
			for _, dear := range []bool{true, false} {
				t.Run(strings.ReplaceAll(fmt.Sprintf("%s/%t,%t", c.name, tells, dear), " ", "-"), func(t *testing.T) {
					w := newWorld(t, func(w *world, _ *Options) {
						less := providers.Capabilities{Abilities: providers.AbilityMove | providers.AbilityCommit}
						if !tells {
							less = asKeys
						}
						w.p = memory.New(memory.Options{Without: less, DearCopy: dear})
						for path, metadata := range map[string]map[string]string{"page": page, "other": {"header:content-type": "a/b"}} {
							_, err := w.p.Write(t.Context(), at(path), providers.String("old"), providers.WriteOptions{If: providers.IfAbsent(), Metadata: metadata})
							w.ok(err)
						}
					})
					c.do(w)
					w.settle()
					info := w.stat(c.path)
					assert.True(t, maps.Equal(info.Metadata, c.want), "got", info.Metadata, "want", c.want)
				})
			}
		}
	}
}
