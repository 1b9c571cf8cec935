package cache

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/memoryrepo"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/memory"
)

// says is what programs read of an inode beside its content; "" where they read nothing.
func (w *world) says(ino fs.Ino, what string) string {
	w.Helper()
	value, ok := w.v.Describe(me, ino, what)
	assert.Equal(w, ok, value != "", what, "is there")
	return value
}

// The etag and the version of a file are those of the content that it stands on, and the
// revision is that which the working copy stands on: also while the file is changed, and
// anew once the change was sent.
func TestDescribeVersions(t *testing.T) {
	remote := memoryrepo.NewRemote(nil)
	for _, tt := range []struct {
		name  string
		store func(*world, *Options)
	}{
		{"names", holding("f", "theirs", "d/f", "theirs")},
		{"commits", remoteWith(remote, "f", "theirs", "d/f", "theirs")},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, tt.store, onlyAsked)
			is := func(when, path string, there providers.Version, revision providers.Revision) {
				t.Helper()
				ino := w.walk(path)
				version := ""
				if !there.IsZero() {
					version = fmt.Sprintf("%s;%d;%d", there.ETag, there.Modified, there.Size)
				}
				assert.Equal(t, w.says(ino, "etag"), there.ETag, when, path, "etag")
				assert.Equal(t, w.says(ino, "version"), version, when, path, "version")
				assert.Equal(t, w.says(ino, "revision"), string(revision), when, path, "revision")
				assert.Equal(t, w.says(ino, "provider"), "memory", when, path, "provider")
			}
			there := func(path string) providers.Version {
				t.Helper()
				info := assert.Of(w.remote().Stat(t.Context(), at(path))).OK(w)
				assert.True(t, info.Version.ETag != "", "the store says no etag of", path)
				return info.Version
			}
			w.get("f")
			first, begun := there("f"), w.v.Status().Revision
			assert.Equal(t, begun != "", w.repo != nil, "there is a revision")
			is("at first", "f", first, begun)
			is("at first", "d", providers.Version{}, begun)
			w.do("put f ours", "put new ours")
			is("changed", "f", first, begun)
			is("changed", "new", providers.Version{}, begun)
			sent := w.upload().Revision
			assert.Equal(t, sent != begun, w.repo != nil, "another revision")
			assert.Equal(t, w.v.Status().Revision, sent, "the revision in the status")
			is("sent", "f", there("f"), sent)
			is("sent", "new", there("new"), sent)
			assert.True(t, there("f") != first, "the version did not change")
			if w.repo != nil {
				another(t, remote, "d/f", "another")
				pulled := w.pull().Revision
				assert.True(t, pulled != sent, "nothing was pulled")
				is("pulled", "d/f", there("d/f"), pulled)
			}
			assert.Equal(t, w.says(w.walk("f"), "other"), "", "what is not described")
		})
	}
}

// promising is a provider that promises no more than that.
type promising struct {
	providers.Provider
	all providers.Capabilities
}

func (p promising) Capabilities() providers.Capabilities { return p.all }

// What changes need and a store does not promise refuses to open, with what it lacks, but
// for reading.
func TestMissingPromises(t *testing.T) {
	for lacks, less := range map[string]func(*providers.Capabilities){
		"Writable":           func(c *providers.Capabilities) { c.Writable = false },
		"Conditions.Create":  func(c *providers.Capabilities) { c.Conditions.Create = providers.GuardNone },
		"Conditions.Replace": func(c *providers.Capabilities) { c.Conditions.Replace = providers.GuardNone },
		"Conditions.Delete":  func(c *providers.Capabilities) { c.Conditions.Delete = providers.GuardNone },
	} {
		p := memory.New(memory.Options{})
		all := p.Capabilities()
		less(&all)
		_, err := Open(t.Context(), promising{p, all}, Options{StateDir: t.TempDir()})
		var lacking *providers.CapabilityError
		assert.True(t, errors.As(err, &lacking) && len(lacking.Missing) == 1 && strings.HasPrefix(lacking.Missing[0], lacks), lacks, err)
		v := assert.Of(Open(t.Context(), promising{p, all}, Options{StateDir: t.TempDir(), ReadOnly: true})).OK(t, lacks)
		assert.OK(t, v.Close())
	}
}
