package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/cmd/internal/mountpoint"
	"github.com/wsmount/wsmount/cmd/internal/store"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/tier"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/all"
	"github.com/wsmount/wsmount/providers/providertest"
	"github.com/wsmount/wsmount/providers/seam"
	"github.com/wsmount/wsmount/providers/seam/seamtest"
)

func (w *world) host() store.Host {
	return store.Host{StateRoot: func() (string, error) { return w.path("state"), nil }}
}

// place opens a path in a mount as the verbs do.
func (w *world) place(t providertest.T, name string) seam.Conditional {
	t.Helper()
	b, err := w.host().OpenPlace(t.Context(), w.path(name))
	assert.OK(t, err, name)
	return b.(seam.Conditional)
}

// memoryAt opens memory whose directory is a place.
func (w *world) memoryAt(t *testing.T, protocol, name string, s seam.Settings) seam.Conditional {
	t.Helper()
	t.Setenv("XDG_CACHE_HOME", w.path("cache"))
	s.Home, s.Vault, s.Backend, s.Config = t.TempDir(), w.path(name), protocol, seam.Config{Err: fs.ErrNotExist}
	assert.OK(t, os.Mkdir(filepath.Join(s.Home, ".agentm"), 0o700))
	assert.OK(t, os.Symlink(w.path(name), filepath.Join(s.Home, ".agentm", "memory")))
	return assert.Of(all.Backends().Select(t.Context(), s, seam.Capabilities{})).OK(t).(seam.Conditional)
}

// A place in a mount is a backend like any, whatever the mount is of.
func TestStoreMountedContract(t *testing.T) {
	for name, c := range map[string]struct {
		mount func(t *testing.T) (*world, *remote) // nil remote: a local directory
		lacks []string                             // what the mount refuses
	}{
		"local": {mount: func(t *testing.T) (*world, *remote) { return mountNotes(t), nil }},
		"files": {mount: func(t *testing.T) (*world, *remote) { return mountFiles(t, "mode: canonical") }},
		"repository": {mount: func(t *testing.T) (*world, *remote) { return mountRepository(t, perTurn+", push: {on: per-commit}") },
			lacks: []string{"write-if/unchanged", "write-if/changed", "write-if/counted", "routing/repos", "routing/counted"}}, // which sends later
	} {
		t.Run(name, func(t *testing.T) {
			w, r := c.mount(t)
			n := 0
			seamtest.Run(t, func(t providertest.T) seam.Backend {
				n++
				dir := "mnt/" + strconv.Itoa(n)
				assert.OK(t, os.Mkdir(w.path(dir), 0o755))
				again := func() seam.Conditional { return w.place(t, dir) }
				proved := seamtest.Proved{Conditional: again(), Proof: seamtest.Proof{Again: again}}
				if r != nil {
					proved.Put = func(key, content string) {
						w.ok("commit", w.path("mnt")) // of what is written at once there is nothing to commit
						assert.OK(t, r.Tamper(t.Context(), providers.MustLocator(strconv.Itoa(n)+"/"+key), []byte(content)))
						w.ok("pull", w.path("mnt"))
					}
				}
				return proved
			}, c.lacks...)
		})
	}
}

// A file of a local workspace is one, under whatever name a writer has it: in the mount, at a
// place in it, through a link, as memory that lies there, and past all of them. Who has its lock
// keeps all others out, and none of them loses what another wrote.
func TestStoreOneFile(t *testing.T) {
	w := mountNotes(t)
	w.write("notes/d/f", "")
	assert.OK(t, os.Symlink("d", w.path("notes/link")))
	bare := assert.Of(all.Directory(w.path("notes"))).OK(t).(seam.Conditional)
	var names []seam.Conditional
	var keys []seam.Locator
	for _, n := range []struct {
		b   seam.Conditional
		key string
	}{{bare, "d/f"}, {w.place(t, "mnt"), "d/f"}, {w.place(t, "mnt"), "/link/f"}, {w.place(t, "mnt/d"), "f"}, {w.place(t, "mnt/link"), "f"},
		{w.memoryAt(t, seam.DeviceLocal, "mnt", seam.Settings{Mounted: w.host().Mounted}), "d/f"}, {w.memoryAt(t, seam.Vault, "mnt/d", seam.Settings{Mounted: w.host().Mounted}), "f"}} {
		defer n.b.Close()
		names, keys = append(names, n.b), append(keys, assert.Of(n.b.Resolve(n.key)).OK(t))
	}

	dir := assert.Of(os.Open(w.path("notes/d"))).OK(t)
	defer dir.Close()
	assert.OK(t, syscall.Flock(int(dir.Fd()), syscall.LOCK_EX))
	for i, b := range names {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond) // which is what ends the waiting
		_, err := b.WriteIf(ctx, keys[i], seam.ETagOf(""), "locked out")
		cancel()
		assert.True(t, errors.Is(err, context.DeadlineExceeded) && w.read("notes/d/f") == "", i, "wrote while another had the lock:", err)
	}
	assert.OK(t, syscall.Flock(int(dir.Fd()), syscall.LOCK_UN))

	each := tier.Pick(6, 200)
	var writers sync.WaitGroup
	for i, b := range names {
		writers.Go(func() {
			for range each {
				err := seam.Update(t.Context(), b, keys[i], func(text string, _ bool) (string, bool, error) { return text + "x", true, nil })
				assert.Is(t, err, nil, i)
			}
		})
	}
	writers.Wait()
	assert.Equal(t, len(w.read("notes/d/f")), len(names)*each, "updates")
	entries, err := os.ReadDir(filepath.Dir(w.path("notes/d/f")))
	assert.OK(t, err)
	assert.Equal(t, len(entries), 1, "entries")
}

// server is what serves a mount, as all.Mounted has it.
type server interface {
	Sends(dir string) bool
	Lock(ctx context.Context, dir, name string, old *seam.ETag) (unlock func(), err error)
}

// held is a server with something that happens after it has compared and before what is new has
// its name.
type held struct {
	server
	then func()
}

func (h held) Sends(dir string) bool {
	h.then()
	return h.server.Sends(dir)
}

// What a program in the mount writes while memory there is written is kept, and who has the file by
// the workspace's name waits. Where the mount cannot be asked no condition is kept.
func TestStoreMemoryHeld(t *testing.T) {
	w := mountNotes(t)
	w.mkdir("notes/d")
	bare := assert.Of(all.Directory(w.path("notes"))).OK(t).(seam.Conditional)
	defer bare.Close()
	for _, protocol := range []string{seam.DeviceLocal, seam.Vault} {
		for _, old := range []seam.ETag{seam.ETagOf("old"), seam.None} {
			name := "d/" + protocol + old.String()
			l := assert.Of(seam.ParseLocator(name)).OK(t)
			if old != seam.None {
				w.write("notes/"+name, "old")
			}
			happened := 0
			memory := w.memoryAt(t, protocol, "mnt", seam.Settings{Mounted: func(ctx context.Context, dir string, plain bool) (seam.Conditional, error, error) {
				m, foreign, err := w.host().Mounted(ctx, dir, plain)
				assert.True(t, m != nil && foreign == nil && err == nil, "not in the mount:", err)
				b := assert.Of(all.Mounted(w.path("mnt"), held{m.(server), func() {
					ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond) // which is what ends the waiting
					defer cancel()
					assert.Is(t, assert.ErrOf(bare.WriteIf(ctx, l, old, "by name")), context.DeadlineExceeded, name)
					w.write("mnt/d/temp", "program")
					assert.OK(t, os.Rename(w.path("mnt/d/temp"), w.path("mnt/"+name)))
					happened++
				}}, plain)).OK(t)
				return b, nil, m.Close()
			}})
			assert.Is(t, assert.ErrOf(memory.WriteIf(t.Context(), l, old, "memory")), providers.ErrConflict, name)
			assert.Equal(t, happened, 1, name)
			assert.Equal(t, w.read("notes/"+name), "program", name)
			assert.OK(t, memory.Close())
		}
	}
	env := w.env
	w.env = append(w.env, "MEMORY_VAULT_PATH="+w.path("mnt"), "XDG_CACHE_HOME="+w.path("cache"))
	w.puts(exit.Done, "", "x", "d/f", "--if-match=none")
	w.env = append(w.env, "WSMOUNT_STATE_DIR="+w.path("other")) // which does not know the mount
	for _, says := range []string{"nothing keeps writers apart there: ", "XDG_STATE_HOME, as mount had it"} {
		w.puts(exit.Failed, says, "y", "d/f", "--if-match="+string(seam.ETagOf("x")))
	}
	w.puts(exit.Done, "", "z", "d/f")
	w.env = env
	assert.Equal(t, w.read("notes/d/f"), "z")
}

// A workspace keeps its own rules, whoever else has its directory mounted, and nothing but those;
// so do a flag of the call, and rules that are newer than the mount.
func TestStoreMountedRules(t *testing.T) {
	tier.RequireFUSE(t)
	w := newWorld(t)
	w.config("allow_overlap: [ { from: \"@acme/*\", to: \"@acme/*\" } ]\n")
	w.mkdir("data/below")
	assert.OK(t, os.Symlink(".", w.path("data/link")))
	only := func(action string) string {
		return "policy: {schema: policy/v1, grants: [{principal: \"*\", actions: [{action: \"storage:" + action + "\"}]}]}\n"
	}
	over := func(at, name, more string) string {
		w.write(at+"/WORKSPACE.md", "---\nschema: workspace/v1\nid: \"@acme/"+name+"\"\nversion: \"1.0.0\"\nname: "+name+
			"\nowner: {type: user, id: acme-1, slug: acme}\n"+more+"storage: {inline: {provider: local-fs, config: {mount_path: "+w.path("data")+"}}}\n---\n")
		w.ok("registry", "add", w.path(at))
		return "@acme/" + name
	}
	fixed, unwritten, unread := over("fixed", "fixed", "defaults: {read_only: true}\n"), over("unwritten", "unwritten", only("read")), over("unread", "unread", only("write"))
	inside, other, x := over("data", "inside", ""), over("other", "other", ""), over("x", "x", "")

	w.mount(x, "mnt")
	w.puts(exit.Done, "", "one", x, "f")
	for _, mounted := range []string{"", "-r"} {
		for _, args := range [][]string{{fixed, "f"}, {unwritten, "f"}, {fixed, "f", "--if-match=" + string(seam.ETagOf("one"))}, {inside, "WORKSPACE.md"}, {x, "f", "-r"}, {"mnt", "f", "-r"}, {"mnt/below", "f", "-r"}, {"f", "-r"}} {
			w.puts(exit.Denied, "storage_read_only", "mine", args...)
		}
		w.refused(exit.Denied, "storage_read_only", "store", "mkdir", fixed, "made")
		for _, verb := range []string{"read", "list", "exists", "info"} {
			w.refused(exit.Denied, "policy does not let", "store", verb, unread, "f")
		}
		assert.Equal(t, w.ok("store", "read", fixed, "f"), "one")
		w.puts(exit.Conflict, "storage_conflict", "mine", other, "f", "--if-match=none")
		w.puts(exit.Done, "", "two", other, "f", "--if-match="+string(seam.ETagOf("one")))
		w.puts(exit.Done, "", "one", other, "f", "--if-match="+string(seam.ETagOf("two")))
		if mounted == "" {
			w.ok("umount", w.path("mnt"))
			w.mount(x, "mnt", "-r")
			w.puts(exit.Denied, "storage_read_only", "mine", "mnt", "f")
		}
	}
	w.ok("umount", w.path("mnt"))

	w.mount(x, "mnt")
	w.edit("x/WORKSPACE.md", "schema: ", "defaults: {read_only: true}\nschema: ")
	w.ok("registry", "accept", x, "--yes")
	w.puts(exit.Denied, "storage_read_only", "mine", x, "f")
	w.puts(exit.Done, "", "two", "mnt", "f") // as any program in the mount, which is as it was made

	used := assert.Of(os.Open(w.path("mnt/f"))).OK(t) // keeps the mount, out of sight
	assert.OK(t, mountpoint.Unmount(w.path("mnt"), true))
	assert.Equal(t, w.ok("store", "read", x, "f"), "two")
	assert.OK(t, used.Close())
}

// A workspace whose directory lies in a mount of another, by whatever name, would have locks that
// who has its files there does not see: it is only read.
func TestStoreInAnotherMount(t *testing.T) {
	tier.RequireFUSE(t)
	tier.RequireRoot(t) // to bind a directory
	w := newWorld(t)
	w.config("allow_overlap: [ { from: \"@acme/*\", to: \"@acme/*\" } ]\n")
	w.write("notes/d/f", "text")
	w.mkdir("bound")
	w.mkdir("mnt2")
	w.mount(w.workspace("notes"), "mnt")
	assert.OK(t, os.Symlink("mnt/d", w.path("link")))
	assert.OK(t, unix.Mount(w.path("mnt/d"), w.path("bound"), "", unix.MS_BIND, ""))
	defer unix.Unmount(w.path("bound"), unix.MNT_DETACH)
	dir := assert.Of(os.Open(w.path("notes/d"))).OK(t)
	defer dir.Close()
	assert.OK(t, syscall.Flock(int(dir.Fd()), syscall.LOCK_EX)) // as one who changes it has
	for name, storage := range map[string]string{"plain": "local-fs, config: {mount_path: W/mnt/d}", "linked": "local-fs, config: {mount_path: W/link}", "other": "local-fs, config: {mount_path: W/bound}",
		"new": "dev-local, config: {root: W/mnt/new}", "vault": "vault, config: {vault_path: W/mnt/d}"} {
		w.write(name+"/WORKSPACE.md", "---\nschema: workspace/v1\nid: \"@acme/"+name+"\"\nversion: \"1.0.0\"\nname: "+name+
			"\nowner: {type: user, id: acme-1, slug: acme}\nstorage: {inline: {provider: "+strings.ReplaceAll(storage, "W", w.dir)+"}}\n---\n")
		w.ok("registry", "add", w.path(name))
		const says = "lies in the mount of @acme/notes at "
		w.puts(exit.Failed, says, "lost", "@acme/"+name, "f", "--if-match="+string(seam.ETagOf("text")))
		w.refused(exit.Failed, says, "mount", "@acme/"+name, "mnt2")
		if name != "new" {
			assert.Equal(t, w.ok("store", "read", "@acme/"+name, "f", "-r"), "text")
		}
	}
	w.mkdir("home/.agentm/memory/in")
	assert.OK(t, unix.Mount(w.path("mnt/d"), w.path("home/.agentm/memory/in"), "", unix.MS_BIND, ""))
	defer unix.Unmount(w.path("home/.agentm/memory/in"), unix.MNT_DETACH)
	w.puts(exit.Failed, "what is mounted there has locks of its own", "lost", "in/f", "--if-match="+string(seam.ETagOf("text")))
	assert.Equal(t, w.read("notes/d/f"), "text")
	w.puts(exit.Done, "", "asks nothing", "in/f")
}

// Memory in a mount is memory in what the mount shows, and so it is below one and by another name.
func TestStorePersonalMounted(t *testing.T) {
	tier.RequireFUSE(t)
	tier.RequireRoot(t) // to bind a directory
	w := newWorld(t)
	w.mkdir("Vault/Agent")
	w.ok("init", w.path("Vault/Diary"), "--id", "@acme/diary", "--owner-id", "acme-1", "--register")
	w.mount("@acme/diary", "mnt")
	w.config("allow_personal: [ { path: " + w.path("Vault") + ", by: [ ann ] } ]\n")
	refused := func() {
		t.Helper()
		w.puts(exit.Denied, "allow_personal", "x", "today.md")
		w.refused(exit.Denied, "allow_personal", "store", "list", "--backend=device-local")
	}
	w.mkdir("mnt/below")
	w.mkdir("home/.agentm")
	for _, to := range []string{"mnt", "mnt/below"} {
		assert.OK(t, os.Symlink(w.path(to), w.path("home/.agentm/memory")))
		refused()
		w.env = append(w.env, "MEMORY_VAULT_PATH="+w.path(to))
		refused()
		w.env = w.env[:len(w.env)-1]
		assert.OK(t, os.Remove(w.path("home/.agentm/memory")))
	}
	w.mkdir("home/.agentm/memory/in")
	for _, at := range []string{"home/.agentm/memory", "home/.agentm/memory/in"} {
		for _, from := range []string{"mnt/below", "Vault/Diary"} {
			assert.OK(t, unix.Mount(w.path(from), w.path(at), "", unix.MS_BIND, ""))
			refused()
			assert.OK(t, unix.Unmount(w.path(at), unix.MNT_DETACH))
		}
	}
	w.puts(exit.Done, "", "x", "today.md")
}

// A working copy is used through the mount that has it, with the rules that its workspace has by now.
func TestStoreMountedCopyRules(t *testing.T) {
	w, r := mountFiles(t, "mode: canonical")
	w.puts(exit.Done, "", "one", ops, "f.md")
	w.puts(exit.Done, "", "kept here", ops, "a.local")
	w.puts(exit.Denied, "storage_read_only", "mine", ops, "f.md", "-r")
	w.edit("remote/ops/WORKSPACE.md", "*.local", "*.md")
	w.ok("registry", "accept", ops, "--yes")
	w.puts(exit.Denied, "storage.exclude", "mine", ops, "g.md")
	w.puts(exit.Done, "", "mine", ops, "g")
	w.edit("remote/ops/WORKSPACE.md", "schema: ", "defaults: {read_only: true}\nschema: ")
	w.ok("registry", "accept", ops, "--yes")
	for _, args := range [][]string{{ops, "g"}, {ops, "g", "--if-match=" + string(seam.ETagOf("mine"))}} {
		w.puts(exit.Denied, "storage_read_only", "more", args...)
	}
	assert.Equal(t, w.ok("store", "read", ops, "g"), "mine")
	assert.Contains(t, r.dump(t), `"g" file 4 `)
	assert.False(t, strings.Contains(r.dump(t), "g.md"), "the store has what is excluded")
}
