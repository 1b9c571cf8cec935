package cache

import (
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/memory"
)

// picky is a store that cannot have every name.
type picky struct{ *memory.Provider }

func (p picky) Capabilities() providers.Capabilities {
	c := p.Provider.Capabilities()
	c.AnyNames, c.Names = false, providers.NameLimits{UTF8: true, Ending: "%2F", Path: 40}
	return c
}

// A name that the backend cannot have is refused before anything is written, with
// the reason, by whatever would give it; one that stays here may be any.
func TestNamesThatTheBackendCannotHave(t *testing.T) {
	w := newWorld(t, func(w *world, _ *Options) { w.repo = picky{w.p} }, excluding)
	w.do("mkdir d", "put d/f text", "put x text", "mkdir out", "put out/x%2F text")
	dir, f := w.walk("d"), w.walk("d/f")
	long := strings.Repeat("n", 40)
	for _, name := range []string{"x%2F", "\xff", long} {
		_, _, created := w.v.Create(me, dir, name, syscall.O_WRONLY, 0o644)
		_, mkdir := w.v.Mkdir(me, dir, name, 0o755)
		_, symlink := w.v.Symlink(me, dir, name, "f")
		_, link := w.v.Link(me, f, dir, name)
		renamed := w.v.Rename(me, dir, "f", dir, name, 0)
		for what, err := range map[string]error{"create": created, "mkdir": mkdir, "symlink": symlink, "link": link, "rename": renamed} {
			want := fs.ErrName
			if name == long {
				want = syscall.ENAMETOOLONG
			}
			if w.is(err, want); len(fmt.Sprint(err)) < 40 {
				t.Errorf("%s of %q does not say why: %v", what, name, err)
			}
		}
	}
	w.is(w.rename("out/x%2F", "d/x%2F"), fs.ErrName)
	w.ok(w.put("d/x%2F%2F", "twice"))
	w.settle()
	w.backend("d/", "d/f: text", "d/x%2F%2F: twice", "x: text")
	w.noProblems()
}
