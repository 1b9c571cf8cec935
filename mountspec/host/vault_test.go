package host

import (
	"os"
	"strings"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
)

// A vault is granted like any other directory, and is there or refused.
func TestVaultGrant(t *testing.T) {
	for _, c := range []struct {
		name, at string // DIR is the world's directory
		listed   bool   // srv is in allow_paths
		class    Class
		words    string // empty: granted
	}{
		{name: "below the workspace", at: "DIR/ws/vault"},
		{name: "relative", at: "./vault"},
		{name: "elsewhere", at: "DIR/srv/vault", class: Denied, words: "allow_paths"},
		{name: "a link that leads out", at: "DIR/ws/out/vault", class: Denied, words: "allow_paths"},
		{name: "allowed", at: "DIR/srv/vault", listed: true},
		{name: "not there", at: "DIR/srv/no", listed: true, class: Unresolvable, words: "does not exist"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			w.mkdir("ws/vault")
			w.mkdir("srv/vault")
			w.symlink(w.path("srv"), "ws/out")
			at := strings.Replace(c.at, "DIR", w.dir, 1)
			w.manifest("ws", "@acme/ops", `{ inline: { provider: vault, config: { vault_path: `+at+` } } }`)
			w.config = "allow_write_back: [ \"@acme/*\" ]\n"
			if c.listed {
				w.config += "allow_paths: [ " + w.path("srv") + " ]\n"
			}
			r := w.resolver()
			r.o.Providers = func(name string) bool { return name == "vault" }
			got, err := r.Resolve(t.Context(), w.path("ws"), ResolveOptions{Trust: true})
			if c.words != "" {
				checkError(t, err, c.class, c.words)
				return
			}
			assert.OK(t, err)
			assert.OK(t, assert.ErrOf(os.Stat(got.Local.Path)))
			assert.False(t, got.Local.Ino == 0, "nobody can tell whether it was replaced")
			assert.Equal(t, got.Location.Service, ServiceDir)
			assert.True(t, got.Grants.WriteBack, "its working copy may not write back")
		})
	}
}

// A Unix socket that a manifest names is granted like a directory.
func TestSocketGrant(t *testing.T) {
	for _, c := range []struct {
		name, at     string // DIR is the world's directory
		listed       bool   // srv is in allow_paths
		unregistered bool
		class        Class
		words        string // empty: granted
	}{
		{name: "none"},
		{name: "below the workspace", at: "DIR/ws/run/s"},
		{name: "elsewhere", at: "DIR/srv/s", class: Denied, words: "allow_paths"},
		{name: "beside the workspace", at: "DIR/ws2/s", class: Denied, words: "allow_paths"},
		{name: "allowed", at: "DIR/srv/s", listed: true},
		{name: "a link that leads out", at: "DIR/ws/out/s", class: Denied, words: "allow_paths"},
		{name: "not registered", at: "DIR/ws/run/s", unregistered: true, class: Denied, words: "registered manifests only"},
		{name: "relative", at: "./s", class: Unresolvable, words: "socket is ./s"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			w.symlink(w.mkdir("srv"), "ws/out")
			config := ""
			if c.at != "" {
				config = "socket: " + strings.Replace(c.at, "DIR", w.dir, 1)
			}
			w.manifest("ws", "@acme/ops", `{ inline: { provider: memory, config: { `+config+` } } }`)
			if c.listed {
				w.config = "allow_paths: [ " + w.path("srv") + " ]\n"
			}
			r := w.resolver()
			r.o.Providers = func(name string) bool { return name == "memory" }
			_, err := r.Resolve(t.Context(), w.path("ws"), ResolveOptions{Trust: !c.unregistered})
			if c.words == "" {
				assert.OK(t, err)
				return
			}
			checkError(t, err, c.class, c.words)
		})
	}
}
