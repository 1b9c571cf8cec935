package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/wsmount/wsmount/cmd/internal/control"
	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/cmd/internal/lifecycle"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/tier"
)

// manifest writes a local-fs workspace @acme/<name> with further lines.
func (w *world) manifest(name, more string) {
	w.write(name+"/WORKSPACE.md", "---\nschema: workspace/v1\nid: \"@acme/"+name+"\"\nversion: \"1.0.0\"\nname: "+name+
		"\nowner: {type: user, id: acme-1, slug: acme}\nstorage: {inline: {provider: local-fs, config: {mount_path: \""+
		w.path(name)+"\"}}}\n"+more+"---\n")
	w.ok("registry", "add", w.path(name))
}

func TestComposition(t *testing.T) {
	tier.RequireFUSE(t)
	w := newWorld(t)
	w.workspace("docs")
	w.workspace("extra")
	w.manifest("lib", "metadata: {wsmount: {mounts: [{at: /docs, source: \"@acme/docs\"}]}}\n")
	for _, name := range []string{"lib", "docs", "extra"} {
		w.write(name+"/from", name)
	}
	w.manifest("app", "metadata: {wsmount: {mounts: ["+
		"{at: /vendor/lib, source: \"@acme/lib\", mode: read-only}, "+
		"{at: /gone, source: \"@acme/gone\", optional: true}]}}\n")
	w.write("app/from", "app")
	w.workspace("deep")
	w.mount("@acme/app", "mnt", "--mount", "at=/extra,source=@acme/extra", "--mount", "at=/vendor/lib/deep,source=@acme/deep")
	for path, want := range map[string]string{"from": "app", "vendor/lib/from": "lib", "vendor/lib/docs/from": "docs", "extra/from": "extra"} {
		assert.Equal(t, w.read("mnt/"+path), want, path)
	}
	create := func(path string) error { return os.WriteFile(w.path("mnt/"+path), nil, 0o644) }
	for path, want := range map[string]error{"new": nil, "extra/new": nil, "vendor/lib/new": syscall.EROFS, "vendor/lib/deep/new": syscall.EROFS,
		"vendor/lib/docs/new": syscall.EROFS /* a child cannot loosen its parent */} {
		assert.Is(t, create(path), want, "create", path)
	}
	assert.True(t, assert.ErrOf(os.ReadDir(w.path("mnt/gone"))) != nil, "the missing optional part can be read")
	reason := make([]byte, 1000)
	n, err := syscall.Getxattr(w.path("mnt/gone"), "user.wsmount.reason", reason)
	if err != nil || !strings.Contains(string(reason[:max(n, 0)]), "@acme/gone") {
		t.Errorf("its reason: %q, %v", reason[:max(n, 0)], err)
	}
	assert.Contains(t, w.read("mnt/gone/.wsmount/errors.log"), "@acme/gone")
	parts := map[string]control.Part{}
	for _, p := range w.status().Parts {
		parts[p.At] = p
	}
	assert.Contains(t, parts["/gone"].Unavailable, "@acme/gone", "status of the optional part")
	lib := parts["/vendor/lib"]
	assert.True(t, strings.Contains(lib.ReadOnly, "mount") && lib.Refused != 0, "status of the read-only part", lib)
	assert.Contains(t, parts["/vendor/lib/docs"].ReadOnly, "parent", "status of its child")
	for _, out := range []string{w.shown("mnt"), w.shown("--all"), w.shown()} { // in a pipe
		assert.Contains(t, out, w.path("mnt"))
	}
}

// checkWidth wants help to fit a page.
func checkWidth(t *testing.T, out string) {
	t.Helper()
	for _, line := range strings.Split(out, "\n") {
		assert.True(t, len([]rune(line)) <= 80, "wider than a page:", line)
	}
}

// A changed manifest mounts only after it has been accepted.
func TestAccept(t *testing.T) {
	w := newWorld(t)
	addr := w.workspace("notes")
	w.edit("notes/WORKSPACE.md", `version: "0.1.0"`, `version: "0.2.0"`)
	w.refused(exit.Denied, "not what was accepted", addr, "mnt")
	assert.Contains(t, w.ok("registry", "accept", addr, "--show"), `+version: "0.2.0"`, "--show")
	w.refused(exit.Denied, "was not accepted", "registry", "accept", addr) // nobody to ask
	assert.Contains(t, w.ok("registry", "accept", addr, "--yes"), `+version: "0.2.0"`, "what was accepted")
	assert.Contains(t, w.ok("registry", "accept", addr), "nothing has changed", "again")
	w.ok("resolve", addr)
	assert.Contains(t, w.ok("registry", "remove", addr), "forgot "+addr+"; its files", "its answer")
	w.refused(exit.Unresolvable, addr, addr, "mnt")
}

func TestEvents(t *testing.T) {
	tier.RequireFUSE(t)
	w := newWorld(t)
	w.workspace("lib")
	w.mount(w.workspace("notes"), "mnt", "--mount", "at=/lib,source=@acme/lib")
	f := w.follow()
	f.await("turn-end", func() { w.ok("event", "mnt", "per-turn", "--var", "turnId=a,b") },
		func(e lifecycle.Event) bool {
			return e.Name == "turn-end" && e.Payload["turnId"] == "a,b" && e.Source.Kind == "session"
		})
	f.await("write through the mount", func() { w.write("mnt/lib/file", time.Now().String()) },
		func(e lifecycle.Event) bool {
			return e.Name == "write" && e.Payload["path"] == "/lib/file" && e.Source == lifecycle.Source{Kind: "storage", ID: "@acme/lib"}
		})
	f.await("write behind it", func() { w.write("notes/behind", time.Now().String()) },
		func(e lifecycle.Event) bool { return e.Name == "write" && e.Payload["path"] == "/behind" })
	f.await("delete", func() { w.write("mnt/x", ""); os.Remove(w.path("mnt/x")) },
		func(e lifecycle.Event) bool { return e.Name == "delete" && e.Payload["path"] == "/x" })

	r := w.event(exit.Done, "event", "mnt", "turn-end")
	assert.True(t, r.Parts == 2 && r.Event == "turn-end" && r.Pulled+r.Committed+r.Pushed+r.Conflicts+r.HeldBack == 0, "got", r)
	assert.Equal(t, w.event(exit.Done, "event", "mnt", "turn-end", "--at", "/lib").Parts, 1, "--at")
	w.refused(exit.Unresolvable, "no part of this mount is at /nowhere", "event", "mnt", "turn-end", "--at", "/nowhere")
	w.refused(exit.Usage, "knows no event", "event", "mnt", "turn-strat")
	w.refused(exit.Usage, "knows no event", "event", "mnt", "*")
	w.refused(exit.Usage, "is not KEY=VALUE", "event", "mnt", "turn-end", "--var", "x")
	server := w.command("mcp", "mnt")
	server.Stdin = strings.NewReader("no JSON\n")
	said, _ := server.CombinedOutput()
	assert.Contains(t, string(said), "the messages of the MCP client broke off: ")
	w.ok("umount", "mnt")
	assert.Is(t, f.wait(), nil, "--follow ends after the mount")
}

// No secret that the daemon was started with may be in a bundle, nor in any
// file that it wrote.
func TestDebugBundleHoldsNoSecret(t *testing.T) {
	tier.RequireFUSE(t)
	const planted = "hunter2-planted-secret"
	w := newWorld(t)
	addr := w.workspace("notes")
	w.env = append(w.env, "AWS_SECRET_ACCESS_KEY="+planted, "GITHUB_TOKEN="+planted)
	w.mount(addr, "mnt", "--log-level", "debug")
	w.write("mnt/file", "x")
	got := w.ok("debug", "mnt", "-o", "-")
	assert.True(t, strings.HasPrefix(got, "\x1f\x8b"), "-o -", got, "want a gzip stream")
	w.ok("debug", "mnt", "-o", "bundle.tar.gz")
	files := readBundle(t, w.path("bundle.tar.gz"))
	for _, name := range []string{"status.json", "config.json", "stats.json", "goroutines.txt", "metrics.txt", "log", "machine.txt", "version.json"} {
		if len(files[name]) < 10 {
			t.Errorf("%s: %d bytes in the bundle", name, len(files[name]))
		}
	}
	for name, text := range files {
		assert.False(t, strings.Contains(text, planted), name, "holds the secret")
	}
	filepath.WalkDir(w.path("state"), func(path string, _ fs.DirEntry, _ error) error {
		b, _ := os.ReadFile(path)
		assert.False(t, bytes.Contains(b, []byte(planted)), path, "holds the secret")
		return nil
	})
	w.refused(exit.Failed, "file exists", "debug", "mnt", "-o", "bundle.tar.gz")
}

func readBundle(t *testing.T, name string) map[string]string {
	t.Helper()
	f := assert.Of(os.Open(name)).OK(t)
	defer f.Close()
	zip := assert.Of(gzip.NewReader(f)).OK(t)
	files := map[string]string{}
	for r := tar.NewReader(zip); ; {
		h, err := r.Next()
		if err == io.EOF {
			return files
		}
		assert.OK(t, err)
		b := assert.Of(io.ReadAll(r)).OK(t)
		files[filepath.Base(h.Name)] = string(b)
	}
}

func TestMetrics(t *testing.T) {
	w := mountNotes(t, "--metrics-addr", "127.0.0.1:0")
	w.write("mnt/file", "x")
	os.Remove(w.path("mnt/WORKSPACE.md"))
	got := w.metrics()
	for _, want := range []string{`wsmount_ops_total{errno="0",op="create",workspace="@acme/notes"} 1`,
		`wsmount_op_seconds_bucket{op="create",workspace="@acme/notes",le="+Inf"} 1`,
		`wsmount_unsaved_bytes{part="@acme/notes",workspace="@acme/notes"} 0`, `wsmount_oldest_unsaved_seconds{`, `wsmount_conflicts{`,
		`wsmount_backend_errors_total{kind=`, `wsmount_inodes{`, `go_memstats_heap_inuse_bytes`, `process_resident_memory_bytes`} {
		assert.Contains(t, got, want)
	}
}

// doctor goes the mount's way and leaves no trace of it.
func TestDoctorChangesNothing(t *testing.T) {
	tier.RequireFUSE(t)
	w := newWorld(t)
	w.write("ws/WORKSPACE.md", "---\nschema: workspace/v1\nid: \"@acme/ws\"\nversion: \"1.0.0\"\nname: ws\n"+
		"owner: {type: user, id: a, slug: acme}\nstorage: {inline: {provider: dev-local, config: {}}}\n---\n")
	before := w.snapshot()
	out := w.ok("doctor", "./ws", "mnt", "--trust")
	assert.True(t, strings.Contains(out, "does not exist yet") && !strings.Contains(out, "problem"), "got", out)
	if o := w.run("doctor", "@acme/none"); o.code != exit.Unresolvable || !strings.Contains(o.out, "problem") {
		t.Errorf("an unknown workspace: exit %d, %s", o.code, o.out)
	}
	if o := w.run("doctor", "./ws", "ws", "--trust"); o.code != exit.Done && !strings.Contains(o.out, "problem") {
		t.Errorf("got exit %d, %s", o.code, o.out)
	}
	w.ok("doctor", "--requires", "")
	if o := w.run("doctor", "--requires", "sync"); o.code != exit.Failed || !strings.Contains(strings.Join(strings.Fields(o.out), " "), "does not promise sync") {
		t.Errorf("memory that is to be replicated: exit %d, %s", o.code, o.out)
	}
	o := w.run("doctor", "./ws", "--trust", "--requires", "sync")
	assert.Contains(t, strings.Join(strings.Fields(o.out), " "), "@acme/ws does not promise sync")
	assert.Equal(t, w.run("doctor", "--requires", "speed").code, exit.Usage, "a promise that there is not")
	w.ok("resolve", "./ws")
	assert.Equal(t, w.snapshot(), before, "something changed")
	w.mount("./ws", "mnt", "--trust") // and what it said would work does
	w.write("mnt/file", "x")
}

func (w *world) snapshot() string {
	var b strings.Builder
	filepath.WalkDir(w.dir, func(path string, _ fs.DirEntry, _ error) error {
		fi, err := os.Lstat(path)
		if err == nil {
			b.WriteString(path + " " + fi.Mode().String() + " " + fi.ModTime().String() + "\n")
		}
		return nil
	})
	return b.String()
}

// A user without privilege mounts through fusermount3, and keeps the daemon's
// memory and environment to himself.
func TestUnprivileged(t *testing.T) {
	tier.RequireFUSE(t)
	tier.RequireRoot(t)
	tier.RequireTools(t, "fusermount3")
	w := newWorld(t)
	w.cred = nobody
	for _, name := range []string{"home", "tmp", "mnt", "."} {
		w.own(name)
	}
	w.openToOthers()
	addr := w.workspace("notes")
	w.ok(addr, "mnt")
	s := w.status()
	assert.True(t, s.State == control.Ready && !s.Passthrough.On, s.State, "passthrough", s.Passthrough)
	fi, err := os.Stat("/proc/" + strconv.Itoa(s.PID) + "/environ")
	assert.True(t, err == nil && fi.Sys().(*syscall.Stat_t).Uid == 0, "the daemon can be dumped by its user:", err)
	touch := exec.Command("sh", "-c", "echo hello > mnt/file && cat mnt/file")
	touch.Dir, touch.SysProcAttr = w.dir, &syscall.SysProcAttr{Credential: w.cred}
	assert.Of(touch.CombinedOutput()).Equal(t, []byte("hello\n"), "in the mount")
	w.ok("umount", "mnt")
	w.refused(exit.Denied, "--map-ids is for root", addr, "mnt", "--map-ids")
	os.Mkdir(w.path("roots"), 0o755)
	w.refused(exit.Usage, "not yours to write", addr, "roots")
	os.Mkdir(w.path("shared"), 0o755)
	os.Chmod(w.path("shared"), 0o777|os.ModeSticky)
	w.refused(exit.Usage, "not yours to write", addr, "shared")
	if conf, err := os.ReadFile("/etc/fuse.conf"); err != nil || !strings.Contains("\n"+string(conf), "\nuser_allow_other") {
		w.refused(exit.Denied, "user_allow_other", addr, "mnt", "--allow-other")
	}
}

// A provider that is no directory is mounted as a working copy, at the root
// and as a part.
func TestMemoryProvider(t *testing.T) {
	tier.RequireFUSE(t)
	w := newWorld(t)
	w.write("scratch/WORKSPACE.md", "---\nschema: workspace/v1\nid: \"@acme/scratch\"\nversion: \"1.0.0\"\nname: scratch\n"+
		"owner: {type: user, id: acme-1, slug: acme}\nstorage: {inline: {provider: memory, config: {}}}\n---\n")
	w.ok("registry", "add", w.path("scratch"))
	for _, args := range [][]string{{"@acme/scratch", "mnt"}, {w.workspace("notes"), "mnt", "--mount", "at=/tmp,source=@acme/scratch"}} {
		o := w.run(args...)
		assert.Must(t, o.code == exit.Done && strings.Contains(o.errOut, "gone when the mount ends"), args, "exit", o.code, o.errOut)
		parts := w.status().Parts
		p := parts[len(parts)-1]
		dir := filepath.Join(w.path("mnt"), p.At)
		assert.Is(t, os.WriteFile(dir+"/file", []byte("kept"), 0o644), nil)
		got, err := os.ReadFile(dir + "/file")
		assert.Is(t, err, nil)
		assert.Equal(t, string(got), "kept")
		assert.True(t, p.Provider == "memory" && p.Durability == "volatile: memory" && p.Unsaved.Files == 0, "status: got", p)
		w.ok("umount", "mnt")
	}
}
