package host

import (
	"context"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
)

// A Unix socket that a manifest names is granted like a directory.
func TestSocketGrant(t *testing.T) {
	socket := func(path string) string {
		return `{ inline: { provider: memory, config: { socket: ` + path + ` } } }`
	}
	for _, c := range []struct {
		name, at, config string
		unregistered     bool
		class            Class
		words            string // empty: granted
	}{
		{name: "none", at: ""},
		{name: "below the workspace", at: "ws/run/s"},
		{name: "elsewhere", at: "srv/s", class: Denied, words: "allow_paths"},
		{name: "beside the workspace", at: "ws2/s", class: Denied, words: "allow_paths"},
		{name: "allowed", at: "srv/s", config: "srv"},
		{name: "a link that leads out", at: "ws/out/s", class: Denied, words: "allow_paths"},
		{name: "not registered", at: "ws/run/s", unregistered: true, class: Denied, words: "registered manifests only"},
		{name: "relative", at: "./s", class: Unresolvable, words: "socket is ./s"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			w.symlink(w.mkdir("srv"), "ws/out")
			switch c.at {
			case "":
				w.manifest("ws", "@acme/ops", `{ inline: { provider: memory, config: {} } }`)
			case "./s":
				w.manifest("ws", "@acme/ops", socket(c.at))
			default:
				w.manifest("ws", "@acme/ops", socket(w.path(c.at)))
			}
			if c.config != "" {
				w.config = "allow_paths: [ " + w.path(c.config) + " ]\n"
			}
			r := w.resolver()
			r.o.Providers = func(name string) bool { return name == "memory" }
			_, err := r.Resolve(context.Background(), w.path("ws"), ResolveOptions{Trust: !c.unregistered})
			if c.words == "" {
				assert.OK(t, err)
				return
			}
			checkError(t, err, c.class, c.words)
		})
	}
}
