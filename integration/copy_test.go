package integration

import (
	"os"
	"slices"
	"testing"

	"github.com/wsmount/wsmount/integration/internal/harness"
	"github.com/wsmount/wsmount/integration/model"
	"github.com/wsmount/wsmount/integration/s3server"
	"github.com/wsmount/wsmount/integration/tier"
)

// A copyFlavour is a way to mount a working copy of a service that runs apart
// from the mount.
type copyFlavour struct {
	name    string
	service []string // flags of memoryd
	server  string   // a bucket is the service instead: of an s3server.Kind, or of one of the others
	config  string   // further YAML of the storage's config
	sync    string   // YAML of its sync block
	flags   []string // of the mount
	user    bool     // mounted and used by an ordinary user
}

const (
	canonicalSync = "mode: canonical"
	// Whatever is changed is committed and pushed a moment later; what others
	// changed comes with the event turn-start.
	pullPushSync = "mode: pull-push, pull: {on: turn-start}, commit: {on: write, batch_window_ms: 50}, push: {on: per-commit}"
)

var (
	canonicalStore = copyFlavour{name: "canonical store", sync: canonicalSync}
	bucket         = copyFlavour{name: "bucket", service: []string{"-without", "empty-dirs,unique-versions,mode,owner,mtime,move,attr,commit"}, sync: canonicalSync}
	writeBack      = copyFlavour{name: "write-back", sync: canonicalSync + ", commit: {on: write, batch_window_ms: 50}", flags: []string{"--write-back"}}
	repository     = copyFlavour{name: "repository", service: []string{"-repository"}, config: "clone: a, branch: main", sync: pullPushSync}
)

// served are the flavours of buckets of real servers.
func served() (flavours []copyFlavour) {
	for _, kind := range s3server.Kinds() {
		flavours = append(flavours, bucketFlavours(string(kind))...)
	}
	return flavours
}

// everywhere are served and those of the other services: in make test one of each.
func everywhere() []copyFlavour {
	azure, gcs := bucketFlavours("azure"), bucketFlavours("gcs")
	if !tier.Soak {
		azure, gcs = azure[:1], gcs[1:]
	}
	return slices.Concat(served(), azure, gcs)
}

// bucketFlavours are those of a bucket: closes wait for it or not.
func bucketFlavours(server string) []copyFlavour {
	return []copyFlavour{{name: server, server: server, sync: canonicalSync},
		{name: server + ", write-back", server: server, sync: writeBack.sync, flags: writeBack.flags}}
}

// later says that closes do not wait for the store.
func (f copyFlavour) later() bool { return len(f.flags) > 0 }

// as is the flavour for an ordinary user.
func (f copyFlavour) asUser() copyFlavour {
	f.name += ", ordinary user"
	f.user = true
	return f
}

// with is the flavour with further flags of the mount.
func (f copyFlavour) with(flags ...string) copyFlavour {
	f.flags = append(slices.Clone(f.flags), flags...)
	return f
}

// A store is what lies behind a working copy, for who does not go through it.
type store interface {
	other() model.Other
	// stored lists what there is in modelDir, as model.Digests does.
	stored() (map[string]string, error)
	// disturb makes the store fail in one of its ways, for a few calls.
	disturb(n int) error
	calm() error // ends that
	// tamper gives a file content; nil removes it.
	tamper(path string, content []byte) error
}

// A workingCopy is one that is mounted, and what lies behind it.
type workingCopy struct {
	*harness.Mount
	store
	t      testing.TB
	w      *harness.World
	flags  []string
	socket string // of the mount's control API, once it was asked for
}

func (f copyFlavour) mount(t testing.TB) *workingCopy {
	t.Helper()
	var o harness.Options
	if f.user {
		tier.RequireRoot(t)
		o.UID = userID
	}
	c := &workingCopy{t: t, w: harness.New(t, o), flags: slices.Clone(f.flags)}
	if f.server != "" {
		c.store = newBucketStore(t, c.w, f)
	} else {
		c.store = newServiceStore(t, c.w, f)
	}
	if os.Geteuid() == 0 && !f.user {
		c.flags = append(c.flags, "--allow-other")
	}
	c.Mount = c.w.Mount("@acme/copy", c.flags...)
	return c
}

// beside is another mount of the same bucket.
func (c *workingCopy) beside() *workingCopy {
	c.t.Helper()
	two := &workingCopy{t: c.t, w: c.w, store: c.store, flags: c.flags}
	two.Mount = c.w.Mount("@acme/beside", c.flags...)
	return two
}

// tamper lets another writer give a file content; nil removes it.
func (c *workingCopy) tamper(path string, content []byte) {
	c.t.Helper()
	c.must(c.store.tamper(path, content))
}
