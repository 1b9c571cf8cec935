package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/tier"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/seam"
)

// put runs `wsmount store write` with content as standard input.
func (w *world) put(content string, args ...string) outcome {
	w.t.Helper()
	cmd := w.command(append([]string{"store", "write"}, args...)...)
	var errOut bytes.Buffer
	cmd.Stdin, cmd.Stderr = strings.NewReader(content), &errOut
	out, _ := cmd.Output()
	return outcome{exit.Code(cmd.ProcessState.ExitCode()), string(out), errOut.String()}
}

// puts is put that must end so.
func (w *world) puts(code exit.Code, says, content string, args ...string) {
	w.t.Helper()
	o := w.put(content, args...)
	assert.Equal(w.t, o.code, code, "store write", args, o.out, o.errOut)
	assert.Contains(w.t, o.errOut, says)
}

// storeJSON is what the verbs print with --json.
type storeJSON struct {
	Schema, Locator, Content string
	ETag                     seam.ETag
	Children                 []string
	Exists, IsDir            bool
	Size                     int64
}

func (w *world) storeJSON(args ...string) (s storeJSON) {
	w.t.Helper()
	w.asJSON(&s, append([]string{"store"}, args...)...)
	assert.Equal(w.t, s.Schema, "wsmount.store/v1")
	return s
}

// asMemory holds the verbs to what a script may rely on, in a directory that is not there
// yet; args are the workspace, or nothing.
func (w *world) asMemory(dir string, args ...string) {
	w.t.Helper()
	with := func(verb string, more ...string) []string {
		return append(append([]string{"store", verb}, args...), more...)
	}
	verb := func(name string, more ...string) string { w.t.Helper(); return w.ok(with(name, more...)...) }
	const text = "# Plan\r\nno end of line"
	w.puts(exit.Done, "", text, append(args, dir+"/atlas/plan.md")...)
	assert.Equal(w.t, verb("read", dir+"/atlas/plan.md"), text)
	assert.Equal(w.t, verb("list", dir), dir+"/atlas\n")
	assert.Equal(w.t, verb("list", dir+"/nothing"), "")
	assert.Equal(w.t, verb("exists", dir+"/atlas"), "")
	assert.Equal(w.t, w.run(with("exists", dir+"/nothing")...), outcome{code: exit.Unresolvable}, "exists where nothing is")
	assert.Equal(w.t, verb("mkdir", dir+"/made"), "")
	assert.Contains(w.t, verb("info", dir+"/atlas"), "directory 0 ")
	assert.Contains(w.t, verb("info", dir+"/atlas/plan.md"), "file 22 ")
	w.refused(exit.Unresolvable, dir+`/nothing"`, with("read", dir+"/nothing")...)
	w.refused(exit.Unresolvable, dir+`/nothing"`, with("info", dir+"/nothing")...)
	w.refused(exit.Failed, "is a directory", with("read", dir+"/atlas")...)
	w.refused(exit.Usage, `".." leads upwards`, with("read", dir+"/../x")...)

	was := w.storeJSON(with("read", dir+"/atlas/plan.md")[1:]...)
	assert.Equal(w.t, was.Locator, dir+"/atlas/plan.md")
	assert.Equal(w.t, was.Content, text)
	assert.Equal(w.t, was.ETag, seam.ETagOf(text))
	if len(args) == 0 || args[0] != ops { // which has no directories without files
		assert.Slice(w.t, w.storeJSON(with("list", dir)[1:]...).Children, []string{dir + "/atlas", dir + "/made"})
	}
	w.puts(exit.Conflict, "storage_conflict", "mine", append(args, dir+"/atlas/plan.md", "--if-match=none")...)
	w.puts(exit.Conflict, "storage_conflict", "mine", append(args, dir+"/atlas/new.md", "--if-match="+string(was.ETag))...)
	w.puts(exit.Usage, "is no etag", "mine", append(args, dir+"/atlas/plan.md", "--if-match=*")...)
	w.puts(exit.Done, "", "second", append(args, dir+"/atlas/plan.md", "--if-match="+string(was.ETag))...)
	w.puts(exit.Done, "", "new", append(args, dir+"/atlas/new.md", "--if-match=none")...)
	w.puts(exit.Failed, "not UTF-8", "\xff", append(args, dir+"/atlas/plan.md")...)
	assert.Equal(w.t, w.storeJSON(with("info", dir+"/atlas/plan.md")[1:]...).Size, 6)
	assert.Equal(w.t, w.storeJSON(with("read", dir+"/atlas/plan.md")[1:]...).ETag, seam.ETagOf("second"))
}

// Memory lies where agentm's configuration says, or nowhere.
func TestStoreMemory(t *testing.T) {
	w := newWorld(t)
	w.asMemory("memory")
	assert.Equal(t, w.read("home/.agentm/memory/memory/atlas/plan.md"), "second")
	assert.Equal(t, w.ok("store", "list"), "memory\n")

	w.mkdir("vault")
	w.env = append(w.env, "MEMORY_VAULT_PATH="+w.path("vault"), "XDG_CACHE_HOME="+w.path("cache"))
	w.asMemory("memory")
	assert.Equal(t, w.read("vault/memory/atlas/plan.md"), "second")
	assert.Equal(t, w.ok("store", "list", ".", "--backend", "device-local"), "memory\n")
	w.refused(exit.Failed, "(device-local, vault are)", "store", "list", "--backend", "redis")
	w.refused(exit.Usage, "is a workspace", "store", "list", notes, ".", "--backend", "vault")
	assert.Equal(t, w.ok("store", "list", "--requires", "sync"), "memory\n")
	for backend, lacks := range map[string]string{"device-local": "conflict_files, sync", "vault": "encryption"} {
		w.refused(exit.Failed, "does not promise "+lacks, "store", "list", "--backend", backend, "--requires", "conflict_files,"+lacks)
	}
	w.refused(exit.Usage, "no capability", "store", "list", "--requires", "speed")

	full := assert.Of(os.OpenFile("/dev/full", os.O_WRONLY, 0)).OK(t)
	defer full.Close()
	for _, flags := range [][]string{nil, {"--json"}} { // what is printed to a full disk is not there
		cmd := w.command(append([]string{"store", "read", "memory/atlas/plan.md"}, flags...)...)
		cmd.Stdout = full
		assert.True(t, cmd.Run() != nil && exit.Code(cmd.ProcessState.ExitCode()) == exit.Failed, "printed to a full disk", flags)
	}

	w.write("home/.claude/.agentm-config.json", `{"storage.backend": "vault", "vault_path": "/nowhere"}`)
	w.ok("store", "list") // $MEMORY_VAULT_PATH says where the vault is
	w.env = w.env[:len(w.env)-2]
	for _, args := range [][]string{{"list"}, {"read", "memory/atlas/plan.md"}, {"exists", "memory"}} {
		w.refused(exit.Unreachable, "nothing else is used in its place", append([]string{"store"}, args...)...)
	}
	w.puts(exit.Unreachable, "nothing else is used in its place", "x", "lost.md")
	w.mkdir("state/acme")
	for _, vault := range []string{"home", "home/.claude", "state/acme"} { // where what is written would rule the machine
		w.env = append(w.env, "MEMORY_VAULT_PATH="+w.path(vault))
		w.puts(exit.Denied, "which this machine is ruled by", "x", "lost.md")
	}
}

// A local workspace is used as a mount would, with nothing mounted.
func TestStoreDirectory(t *testing.T) {
	w := newWorld(t)
	w.workspace("notes")
	w.edit("notes/WORKSPACE.md", "    provider: local-fs\n", "    provider: local-fs\n    exclude: [ \"*.local\" ]\n")
	w.ok("registry", "accept", notes, "--yes")
	w.asMemory("memory", notes)
	w.puts(exit.Done, "", "x", notes, "a.local") // as in a mount: the directory mirrors nothing
	assert.Equal(t, w.read("notes/memory/atlas/plan.md"), "second")
	w.asMemory("again", w.path("notes/WORKSPACE.md"), "--trust")
	assert.OK(t, os.Symlink(".", w.path("notes/link")))
	for _, name := range []string{"WORKSPACE.md", "./WORKSPACE.md", "WORKSPACE.md/x", ".wsmount/x"} {
		w.puts(exit.Denied, "storage_read_only", "mine", notes, name)
	}
	w.puts(exit.Failed, "symbolic link", "mine", notes, "link/WORKSPACE.md")
	assert.Contains(t, w.read("notes/WORKSPACE.md"), "@acme/notes")

	w.puts(exit.Denied, "storage_read_only", "x", notes, "a", "--read-only")
	w.refused(exit.Denied, "storage_read_only", "store", "mkdir", notes, "a", "--read-only")
	w.edit("notes/WORKSPACE.md", "version:", "defaults: {read_only: true}\nversion:")
	w.ok("registry", "accept", notes, "--yes")
	w.puts(exit.Denied, "storage_read_only", "x", notes, "a")
	assert.Equal(t, w.ok("store", "read", notes, "memory/atlas/plan.md"), "second")
	w.refused(exit.Failed, "@acme/nobody", "store", "exists", "@acme/nobody", "a") // 4 is that nothing is there
	w.refused(exit.Usage, "no LOCATOR follows", "store", "list", notes)
	closed := w.command("store", "write", notes, "memory/atlas/plan.md")
	closed.Path, closed.Args = "/bin/sh", append([]string{"sh", "-c", `exec "$0" "$@" <&-`, closed.Path}, closed.Args[1:]...)
	out, _ := closed.CombinedOutput()
	assert.Contains(t, string(out), "standard input is closed")
	assert.Equal(t, w.ok("store", "read", notes, "memory/atlas/plan.md"), "second")
	w.refused(exit.Failed, "does not promise sync", "store", "read", notes, "memory/atlas/plan.md", "--requires", "sync")
}

// A store is reached without a mount and without a working copy, with what the manifest keeps out
// of it kept out.
func TestStoreRemote(t *testing.T) {
	w, r := newWorld(t), serve(t, false)
	w.remoteWorkspace("ops", r, "mode: canonical", "")
	w.asMemory("memory", ops)
	assert.Contains(t, r.dump(t), "memory/atlas/plan.md")
	w.puts(exit.Denied, "storage.exclude", "x", ops, "a.local")
	assert.False(t, strings.Contains(r.dump(t), "a.local"), "the store has what is excluded")
	copies, _ := filepath.Glob(w.path("state/acme/ops/*"))
	assert.Equal(t, len(copies), 0, "working copies")
}

// A mounted workspace is used through its mount, by address and by path.
func TestStoreMounted(t *testing.T) {
	w := mountNotes(t)
	w.asMemory("memory", notes)
	w.asMemory("again", "mnt")
	assert.Equal(t, w.read("mnt/memory/atlas/plan.md"), "second")
	assert.Equal(t, w.ok("store", "list", "mnt/memory", "atlas"), "atlas/new.md\natlas/plan.md\n")
	w.puts(exit.Denied, "storage_read_only", "mine", notes, "WORKSPACE.md")
	assert.Contains(t, w.read("notes/WORKSPACE.md"), "@acme/notes")
	for _, dir := range []string{"mnt/p/", "notes/p/"} { // the state of a checkout, by both its names
		w.mkdir("notes/p/.harness")
		cmd := w.command("store", "state", "write", dir, "PLAN.md", "--if-match=none")
		cmd.Stdin = strings.NewReader("plan")
		assert.OK(t, cmd.Run())
		assert.Equal(t, w.read("notes/p/.harness/PLAN.md"), "plan")
		assert.OK(t, os.RemoveAll(w.path("notes/p")))
	}

	stop(t, w.status().PID)
	w.refused(exit.Unreachable, "not-responding", "store", "read", notes, "memory/atlas/plan.md")
	w.refused(exit.Unreachable, "not-responding", "store", "list", "mnt", ".")
	w.refused(exit.Unreachable, "not-responding", "store", "state", "read", "mnt/p", "PLAN.md")
	env := w.env
	for _, in := range [][]string{{"HOME=" + w.path("mnt"), "XDG_CONFIG_HOME=" + w.path("home")}, {"MEMORY_VAULT_PATH=" + w.path("mnt/memory")}} {
		w.env = append(slices.Clone(env), in...)
		w.refused(exit.Unreachable, "not-responding", "store", "read", "atlas/plan.md")
		w.refused(exit.Unreachable, "not-responding", "store", "repos", "list")
		o := w.run("doctor", "--requires=sync")
		assert.True(t, o.code == exit.Unreachable && strings.Contains(o.out, "not-responding"), in, "doctor:", o.code, o.out, o.errOut)
	}
	w.env = env
	w.ok("umount", "--force", w.path("mnt"))
}

// What programs changed in a mount is what a reader gets, sent or not, and what is unsent without
// a mount is not gone around.
func TestStoreMountedRemote(t *testing.T) {
	tier.RequireFUSE(t)
	w, r := mountFiles(t, byHand)
	w.write("mnt/a.md", "unsent")
	assert.Equal(t, w.ok("store", "read", ops, "a.md"), "unsent")
	w.puts(exit.Failed, "sends later", "mine", ops, "b.md", "--if-match=none")
	w.puts(exit.Done, "", "also unsent", ops, "b.md")
	assert.False(t, strings.Contains(r.dump(t), "b.md"), "it went to the store without a commit")
	w.ok("umount", w.path("mnt"))
	assert.Equal(t, w.ok("store", "read", ops, "a.md"), "unsent") // mounted for it, the working copy has it
}

// TestStoreMountedCondition: the condition of a write is asked of the store, whatever the mount
// shows of it, and what it then has is what the mount shows.
func TestStoreMountedCondition(t *testing.T) {
	w, r := mountFiles(t, "mode: canonical, conflict: {policy: last-writer-wins}")
	w.puts(exit.Done, "", "one", ops, "f", "--if-match=none")
	assert.OK(t, r.Tamper(t.Context(), providers.MustLocator("f"), []byte("two")))
	for _, where := range [][]string{{ops}, {"mnt"}} {
		w.puts(exit.Conflict, "storage_conflict", "mine", append(where, "f", "--if-match="+string(seam.ETagOf("one")))...)
		assert.Equal(t, w.read("mnt/f"), "two")
	}
	w.puts(exit.Done, "", "three", ops, "f", "--if-match="+string(seam.ETagOf("two")))
	assert.Equal(t, w.read("mnt/f"), "three")
	assert.Contains(t, r.dump(t), `"f" file 5 `)
	before, err := r.Calls(t.Context())
	assert.OK(t, err)
	w.puts(exit.Done, "", "four", ops, "g")
	after, err := r.Calls(t.Context())
	assert.OK(t, err)
	assert.Equal(t, after[providers.MethodMove], before[providers.MethodMove], "moves: it was sent by another name first")
	w.puts(exit.Denied, "storage.exclude", "x", ops, "a.local", "--if-match=none")
	w.puts(exit.Denied, "storage_read_only", "x", ops, ".wsmount/x", "--if-match=none")
}

// TestStoreSynchronised: a workspace whose changes are gathered into commits is used without
// a mount, by one call after another, which ends when they are sent.
func TestStoreSynchronised(t *testing.T) {
	w, r := newWorld(t), serve(t, true)
	w.env = append(w.env, "TMPDIR="+w.path("none")) // where it would be mounted
	w.remoteWorkspace("ops", r, perTurn+", push: {on: per-commit}", "identity: {name: Ann, email: ann@acme.test}\n")
	w.puts(exit.Done, "", "text", ops, "d/a.md")
	assert.Contains(t, r.dump(t), "d/a.md")
	assert.Equal(t, w.ok("store", "read", ops, "d/a.md"), "text")
	assert.Equal(t, w.run("store", "exists", ops, "none").code, exit.Unresolvable)
	w.puts(exit.Denied, "storage_read_only", "x", ops, "b.md", "--read-only")
	var all sync.WaitGroup
	for _, name := range []string{"one.md", "two.md", "three.md"} {
		all.Go(func() { w.puts(exit.Done, "", name, ops, name, "--if-match=none") })
	}
	all.Wait()
	for _, name := range []string{"one.md", "two.md", "three.md"} {
		assert.Contains(t, r.dump(t), name)
	}
	for _, name := range []string{".git/config", ".wsmount/x"} {
		w.puts(exit.Denied, "storage_read_only", "x", ops, name)
	}
}

// The registry of repositories is on the memory that is used, in agentm's format.
func TestStoreRepos(t *testing.T) {
	w := newWorld(t)
	var none struct{ Repos []any }
	w.asJSON(&none, "store", "repos", "list")
	assert.True(t, none.Repos != nil && len(none.Repos) == 0, "repositories of a new machine:", none.Repos)
	w.refused(exit.Usage, "--root is needed: where the checkout is", "store", "repos", "register", "atlas")
	w.refused(exit.Usage, "is no slug", "store", "repos", "register", "a/b", "--root", "src")
	assert.Equal(t, w.ok("store", "repos", "register", "atlas", "--root", "src/atlas"), "registered\n")
	w.ok("store", "repos", "register", "b", "--root", "/srv/b", "--wiki", "/srv/wiki")
	assert.Equal(t, w.ok("store", "repos", "list"), "atlas\t"+w.path("src/atlas")+"\nb\t/srv/b\n")
	assert.Contains(t, w.read("home/.agentm/memory/_meta/repos.json"), "{\n  \"version\": 1,\n  \"repos\": [\n    {\n      \"slug\": \"atlas\",")
	assert.Equal(t, w.ok("store", "repos", "unregister", "b"), "removed\n")
	assert.Equal(t, w.ok("store", "repos", "unregister", "b"), "noop\n")
	w.write("home/.agentm/memory/_meta/repos.json", "{")
	w.refused(exit.Failed, "_meta/repos.json cannot be read", "store", "repos", "list")
	w.refused(exit.Failed, "_meta/repos.json cannot be read", "store", "repos", "unregister", "atlas")
	w.refused(exit.Failed, "not built into this wsmount", "store", "repos", "list", "--backend", "redis")
	assert.Equal(t, w.read("home/.agentm/memory/_meta/repos.json"), "{")
}

// The state of a project lies in its checkout, with a vault in that, and by the checkout's own
// word in the checkout whatever there is.
func TestStoreState(t *testing.T) {
	w := newWorld(t)
	w.mkdir("src/atlas")
	state := func(args ...string) []string { return append([]string{"store", "state"}, args...) }
	puts := func(content string, args ...string) {
		t.Helper()
		cmd := w.command(state(append([]string{"write"}, args...)...)...)
		cmd.Stdin = strings.NewReader(content)
		out, err := cmd.CombinedOutput()
		assert.OK(t, err, out)
	}
	assert.Equal(t, w.ok(state("dir", "src/atlas")...), w.path("src/atlas/.harness")+"\n")
	w.refused(exit.Unresolvable, "PLAN.md", state("read", "src/atlas", "PLAN.md")...)
	puts("here", "src/atlas", "PLAN.md")
	assert.Equal(t, w.read("src/atlas/.harness/PLAN.md"), "here")
	w.refused(exit.Usage, `".." leads upwards`, state("read", "src/atlas", "../x")...)
	w.refused(exit.Unresolvable, `"atlas" is not registered`, state("dir", "atlas")...)

	w.mkdir("vault")
	w.env = append(w.env, "MEMORY_VAULT_PATH="+w.path("vault"), "XDG_CACHE_HOME="+w.path("cache"))
	w.ok("store", "repos", "register", "map", "--root", "src/atlas")
	assert.Equal(t, w.ok(state("dir", "map")...), "projects/map/_harness\n")
	puts("in the vault", "map", "PLAN.md", "--if-match=none")
	w.write("src/other/.harness/project.json", `{"vault_project": "map"}`)
	w.refused(exit.Manifest, w.path("src/atlas"), state("write", "src/other/", "PLAN.md")...)
	for _, dirs := range [][2]string{{"src/other", "src/atlas"}, {"src/atlas", "src/other"}} {
		o := w.run("store", "repos", "register", "map", "--root", dirs[0])
		assert.Contains(t, o.errOut, w.path(dirs[1])+` had the memory of "map"`)
	}
	assert.OK(t, os.Rename(w.path("src/atlas"), w.path("src/moved")))
	for _, verb := range []string{"read", "write"} {
		w.refused(exit.Manifest, w.path("src/atlas")+" of this machine, which is not there any more", state(verb, "src/other/", "PLAN.md")...)
	}
	w.refused(exit.Manifest, "is registered for "+w.path("src/atlas")+", which is not there", state("read", "map", "PLAN.md")...)
	w.ok("store", "repos", "register", "map", "--root", "src/moved")
	assert.Equal(t, w.ok(state("read", "src/moved/", "PLAN.md")...), "in the vault")
	assert.OK(t, os.Rename(w.path("src/moved"), w.path("src/atlas")))
	w.ok("store", "repos", "register", "map", "--root", "src/atlas")
	puts("beside it", "src/atlas/", "progress.md")
	assert.Equal(t, w.read("vault/projects/map/_harness/PLAN.md"), "in the vault")
	assert.Equal(t, w.read("vault/projects/map/_harness/progress.md"), "beside it")
	assert.Equal(t, w.ok(state("read", "src/atlas/", "PLAN.md")...), "in the vault")

	w.write("src/atlas/.harness/.project-mode", "local\n")
	assert.Equal(t, w.ok(state("read", "src/atlas/", "PLAN.md")...), "here")
	assert.OK(t, os.Rename(w.path("vault"), w.path("away")))
	assert.Equal(t, w.ok(state("read", "src/atlas/", "PLAN.md")...), "here")
	assert.OK(t, os.Remove(w.path("src/atlas/.harness/.project-mode")))
	w.refused(exit.Unreachable, "nothing else is used in its place", state("read", "src/atlas/", "PLAN.md")...)
	w.write("src/atlas/.harness/.project-mode", "elsewhere")
	w.refused(exit.Manifest, `says "elsewhere"`, state("dir", "src/atlas/")...)
	w.write("src/atlas/.harness/.project-mode", "")
	w.write("home/.claude/.agentm-config.json", `{"state_mode": "local"}`)
	assert.Equal(t, w.ok(state("read", "src/atlas/", "PLAN.md")...), "here")
	w.write("home/.claude/.agentm-config.json", `{"state_mode": "vault"}`)
	w.refused(exit.Unreachable, "nothing else is used in its place", state("read", "src/atlas/", "PLAN.md")...)
	assert.Equal(t, w.read("home/.claude/.agentm-config.json"), `{"state_mode": "vault"}`)
}

// The operator's own space is written to at the operator's request, which the host grants and the
// audit log has; and no other verb gets there.
func TestStorePersonalWrite(t *testing.T) {
	w := newWorld(t)
	w.mkdir("home/Vault/Agent")
	personal := func(code exit.Code, says, content string, args ...string) {
		t.Helper()
		cmd := w.command(append([]string{"store", "personal-write"}, args...)...)
		var errOut bytes.Buffer
		cmd.Stdin, cmd.Stderr = strings.NewReader(content), &errOut
		_ = cmd.Run()
		assert.Equal(t, exit.Code(cmd.ProcessState.ExitCode()), code, args, errOut.String())
		assert.Contains(t, errOut.String(), says, args)
	}
	const day, ann = "Diary/today.md", "--authorized-by=ann"
	w.config("")
	personal(exit.Usage, "--authorized-by is needed: who asked for this change", "x", day)
	personal(exit.Failed, "no space of the operator's lies above", "x", day, ann)
	w.env = append(w.env, "MEMORY_VAULT_PATH="+w.path("home/Vault/Agent"), "XDG_CACHE_HOME="+w.path("home/.cache"))
	personal(exit.Denied, "grants no writing", "x", day, ann)
	assert.Contains(t, w.read("state/audit.log"), "personal write of Diary/today.md")
	w.config("allow_personal: [ { path: " + w.path("home/Vault") + ", by: [ ann ] }, { path: " + w.path("home") + ", by: [ cleo ] } ]\n")
	for _, other := range []string{"bob", "Ann", "*"} {
		personal(exit.Denied, "grants no writing", "x", day, "--authorized-by="+other)
	}
	assert.False(t, strings.Contains(w.read("state/audit.log"), `"memory.personal-write`), "a write is on record that did not happen")

	personal(exit.Done, "", "one", day, ann)
	assert.Equal(t, w.read("home/Vault/Diary/today.md"), "one")
	recorded := func(says ...string) {
		t.Helper()
		record := w.read("state/audit.log")
		for _, one := range says {
			_, after, is := strings.Cut(record, one)
			assert.True(t, is, "the audit log has no", one, "in its place")
			record = after
		}
	}
	recorded(`"memory.personal-write.asked"`, `"authorizedBy":"ann"`, `"memory.personal-write"`, `"locator":"Diary/today.md"`)
	personal(exit.Conflict, "storage_conflict", "two", day, ann, "--if-match=none")
	recorded(`"memory.personal-write"`, `"memory.personal-write.asked"`, `"memory.personal-write.failed"`, "its etag is ")
	personal(exit.Done, "", "one", "Vault/"+day, "--authorized-by=cleo")
	locks, _ := filepath.Glob(w.path("home/.cache/agentm/locks/*"))
	assert.Equal(t, len(locks), 1, "locks of one file:", locks)
	for _, place := range []string{".claude/.agentm-config.json", ".claude", ".claude/.agentm-config.json/x", ".cache/agentm/locks/x"} {
		personal(exit.Denied, "storage_read_only", "{}", place, "--authorized-by=cleo")
		recorded(`"denied"`, `"personal write of `+place+`"`, "for cleo: ")
	}
	personal(exit.Done, "", "two", day, ann, "--if-match="+string(seam.ETagOf("one")))
	assert.Equal(t, w.read("home/Vault/Diary/today.md"), "two")
	for _, inMemory := range []string{"Agent", "Agent/projects/x.md"} {
		personal(exit.Usage, "lies in memory", "x", inMemory, ann)
		recorded(`"personal write of `+inMemory+`"`, "lies in memory")
	}
	for _, up := range []string{"../Diary/today.md", "../../Vault/Diary/today.md"} {
		w.puts(exit.Usage, "leads upwards", "x", up)
		w.refused(exit.Usage, "leads upwards", "store", "read", up)
	}
	assert.OK(t, os.Symlink("../Diary", w.path("home/Vault/Agent/way-out")))
	w.puts(exit.Failed, "", "x", "way-out/today.md")
	assert.Equal(t, w.read("home/Vault/Diary/today.md"), "two")

	assert.OK(t, os.Symlink("Vault/Diary", w.path("home/.agentm"))) // in which memory would be made
	assert.OK(t, os.MkdirAll(w.path("home/Vault/Diary/p/.harness"), 0o755))
	for _, args := range [][]string{{"list"}, {"repos", "register", "p", "--root", "src"}, {"mkdir", "made"}, {"state", "dir", "p"}} {
		w.refused(exit.Denied, "home/Vault/Agent alone", append(append([]string{"store"}, args...), "--backend=device-local")...)
	}
	w.refused(exit.Denied, "home/Vault/Agent alone", "store", "state", "write", w.path("home/Vault/Diary/p"), "PLAN.md")
	assert.OK(t, os.Remove(w.path("home/.agentm")))

	w.ok("init", w.path("home/Vault/Diary"), "--id", "@acme/diary", "--owner-id", "acme-1", "--register")
	w.refused(exit.Denied, "allow_personal", "store", "list", "@acme/diary", ".")
	for _, vault := range []string{"home/Vault", "home", "home/Vault/Diary"} { // which have the operator's space in them, or lie in it
		w.env = append(w.env, "MEMORY_VAULT_PATH="+w.path(vault))
		w.puts(exit.Denied, "allow_personal", "x", "Vault/Diary/today.md")
		w.refused(exit.Denied, "allow_personal", "store", "read", "Diary/today.md")
	}
	assert.Equal(t, w.read("home/Vault/Diary/today.md"), "two")
}
