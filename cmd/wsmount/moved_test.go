package main

import (
	"crypto/sha1"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/cmd/internal/state"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/gitserver"
	"github.com/wsmount/wsmount/integration/tier"
	"github.com/wsmount/wsmount/providers/flock"
)

// aRow makes @acme/ops a row of the configuration, which lies in a repository. The result
// is its storage on a branch.
func aRow(t *testing.T) (w *world, s *gitserver.Server, on func(branch string) string) {
	t.Helper()
	tier.RequireFUSE(t)
	w, s = newWorld(t), gitserver.Start(t)
	other := s.Create(t, "acme/ops").Clone(w.path("other"))
	other.Write(map[string]string{"a": "1"})
	other.Commit("main", "begin")
	on = func(branch string) string {
		return "{provider: github, config: {repo: acme/ops, branch: " + branch + "}, sync: {" + pushEach + "}}"
	}
	w.mkdir("row")
	w.config(fmt.Sprintf("allow_endpoints: [ %[1]q ]\nproviders: { github: { base_url: %[1]q } }\n"+
		"workspaces: {%[2]q: {path: %[3]q, owner_id: acme-1, identity: {name: Bob, email: bob@acme.test}, storage: %[4]s}}\n",
		s.URL, ops, w.path("row"), on("main")))
	return w, s, on
}

// unsent mounts @acme/ops, writes a file, and ends the daemon before that is sent.
func (w *world) unsent() {
	w.t.Helper()
	w.mount(ops, "mnt")
	w.write("mnt/f", "precious")
	w.killed()
}

// sends mounts @acme/ops, sees the file of unsent, and sends it.
func (w *world) sends() {
	w.t.Helper()
	w.mount(ops, "mnt")
	assert.Equal(w.t, w.read("mnt/f"), "precious", "what the working copy has")
	got := w.event(exit.Done, "event", "mnt", "turn-end")
	assert.Equal(w.t, fmt.Sprint(got.Committed, got.Pushed), "1 1", "committed and pushed")
	w.ok("umount", "mnt")
}

// A WORKSPACE.md that is added to a row leaves the working copy in use, with what is
// unsent in it.
func TestAddedManifestKeepsWorkingCopy(t *testing.T) {
	for name, add := range map[string][]string{
		"init":         {"init", "--from-row", ops},
		"registry add": {"registry", "add", "row", "--id", ops, "--write-manifest"},
	} {
		t.Run(name, func(t *testing.T) {
			w, _, _ := aRow(t)
			w.unsent()
			w.ok(add...)
			assert.Contains(t, w.read("row/WORKSPACE.md"), ops)
			w.sends()
			assert.Contains(t, w.ok("recover"), "nothing is unsaved", "recover")
		})
	}
}

// So does another wording of the same place.
func TestRewordedEndpointKeepsWorkingCopy(t *testing.T) {
	w, s, _ := aRow(t)
	w.unsent()
	w.edit("home/.config/wsmount/config.yaml", fmt.Sprintf("base_url: %q", s.URL), fmt.Sprintf("base_url: %q", s.URL+"/"))
	w.sends()
}

// Another storage is not set while the workspace is mounted with the old one, or lacks
// something there, unless somebody insists; a mount with the new one is refused then.
func TestSetStorageWithUnsent(t *testing.T) {
	w, s, on := aRow(t)
	place := s.URL + "/acme/ops#main"
	set := func(storage string, more ...string) []string {
		return append([]string{"registry", "set", ops, "storage=" + storage}, more...)
	}
	w.mount(ops, "mnt")
	w.refused(exit.Unsafe, "@acme/ops is mounted at "+w.path("mnt"), set(on("next"))...)
	w.ok("umount", "mnt")
	copies := assert.Of(state.Copies(w.path("state"), "acme", "ops")).OK(t)
	held := assert.Of(state.Lock(copies[0])).OK(t) // as a mount that it is a part of does
	w.refused(exit.Unsafe, "@acme/ops is in use, with the storage that it had", set(on("next"))...)
	assert.OK(t, held.Close())
	w.ok(set(on("next"))...)
	w.ok(set(on("main"))...)

	w.unsent()
	for _, more := range []string{"--json", "--show"} {
		w.refused(exit.Unsafe, "a working copy of @acme/ops ("+place+") holds unsaved changes (1)", set(on("next"), more)...)
	}
	w.ok("registry", "set", ops, "name=Still ours")
	w.mkdir("files")
	for _, storage := range []string{on("next"), "{provider: local-fs, config: {mount_path: " + w.path("files") + "}}"} {
		w.ok(set(storage, "--force")...)
		const says = "another working copy of @acme/ops "
		w.refused(exit.Unsafe, says+"("+place+") holds unsaved changes (1)", "mount", ops, "mnt")
		w.refused(exit.Unsafe, "recover export ", "mount", ops, "mnt")
		w.refused(exit.Unsafe, ops+" is now kept elsewhere than when ", "recover", "upload", ops)
		assert.Contains(t, flat(w.run("doctor", ops).out), says)
	}
	assert.Contains(t, flat(w.ok("recover")), "storage "+place)
	w.ok(set(on("main"))...) // the working copy is that of this one
	w.sends()
}

// committed mounts @acme/ops and leaves two commits in its working copy that are not pushed.
func (w *world) committed() {
	w.t.Helper()
	w.edit("home/.config/wsmount/config.yaml", "on: per-commit", "on: manual")
	w.mount(ops, "mnt")
	for _, name := range []string{"f", "dir/g"} {
		w.write("mnt/"+name, name)
		w.event(exit.Done, "event", "mnt", "turn-end")
	}
	w.run("umount", "mnt")
}

var hinted = regexp.MustCompile("`wsmount (recover [^`]*)`")

// obey runs each command of recover that a hint names, and reports where one has exported to.
func (w *world) obey(o outcome) (into []string) {
	w.t.Helper()
	all := hinted.FindAllStringSubmatch(flat(o.errOut), -1)
	assert.True(w.t, len(all) > 0, "no hint:", o.errOut)
	for i, h := range all {
		to := w.path(fmt.Sprint("out", i))
		args := strings.Fields(strings.ReplaceAll(h[1], " DIR", " "+to))
		if w.ok(args...); args[1] == "export" {
			into = append(into, to)
		}
	}
	return into
}

// Commits that were not pushed come out of a working copy whatever became of its workspace: each
// hint on the way names a command that does it.
func TestUnpushedCommitsComeOut(t *testing.T) {
	const config = "home/.config/wsmount/config.yaml"
	next := func(w *world, _ *gitserver.Server) { w.edit(config, "branch: main", "branch: next") }
	same := func(*world, *gitserver.Server) {}
	without := func(w *world, name string) (copied string) {
		copied = assert.Of(filepath.Glob(w.path("state/acme/ops/*/copy"))).OK(w.t)[0]
		assert.OK(w.t, os.RemoveAll(filepath.Join(copied, name)))
		return copied
	}
	for name, c := range map[string]struct {
		leave func(*world, *gitserver.Server)
		run   string // what is refused then
		code  exit.Code
		sends bool // a hint does
	}{
		"base_url": {func(w *world, s *gitserver.Server) {
			w.write(config, strings.ReplaceAll(w.read(config), s.URL, gitserver.Start(t).URL))
		}, "mount @acme/ops mnt", exit.Unsafe, false},
		"branch":       {next, "recover upload STATE", exit.Unsafe, false},
		"other owner":  {func(w *world, _ *gitserver.Server) { w.edit(config, ops, "@other/ops") }, "recover upload STATE", exit.Unresolvable, false},
		"set":          {same, `registry set @acme/ops storage={"provider":"github","config":{"repo":"acme/ops","branch":"next"}} --show`, exit.Unsafe, true},
		"working copy": {same, "mount @acme/ops mnt --working-copy review", exit.Unsafe, true},
		"new":          {func(w *world, _ *gitserver.Server) { without(w, "") }, "mount @acme/ops mnt --working-copy review", exit.Unsafe, true},
		"rebuilt": {func(w *world, _ *gitserver.Server) {
			w.ok("recover", "--scan", filepath.Dir(without(w, "names")))
		}, "mount @acme/ops mnt --working-copy review", exit.Unsafe, true},
	} {
		t.Run(name, func(t *testing.T) {
			w, s, _ := aRow(t)
			w.committed()
			state := filepath.Dir(assert.Of(filepath.Glob(w.path("state/acme/ops/*/copy"))).OK(t)[0])
			c.leave(w, s)
			o := w.run(strings.Fields(strings.ReplaceAll(c.run, "STATE", state))...)
			assert.Must(t, o.code == c.code, "refused with", o)
			listed := flat(w.ok("recover", "list", state))
			for _, says := range []string{"unpushed 2 commits, ", "main: 2 commits", "(Bob <bob@acme.test>)"} {
				assert.Contains(t, listed, says)
			}
			out := append([]string{w.path("out")}, w.obey(o)...)
			if c.sends {
				assert.Contains(t, w.ok("recover"), "nothing is unsaved")
				return
			}
			says := w.ok("recover", "export", state, "out")
			for _, into := range out {
				f, err := os.ReadFile(into + "/f")
				g, gerr := os.ReadFile(into + "/dir/g")
				assert.True(t, err == nil && gerr == nil && string(f)+string(g) == "fdir/g", "exported to", into, err, gerr)
			}
			_, fetch, _ := strings.Cut(says, "in a clone of the repository: ")
			cmd := exec.Command("sh", "-ec", fetch+"git log --format='%an <%ae> %s' origin/main..recovered/main")
			cmd.Dir, cmd.Env = w.path("other"), w.env
			log, err := cmd.CombinedOutput()
			assert.True(t, err == nil && strings.Count(string(log), "Bob <bob@acme.test> ") == 2, "git says", log, err)
		})
	}
}

// spoilBlob damages a blob in the packs of a clone, and gives what puts it back.
func spoilBlob(t *testing.T, dir, content string) (mend func()) {
	t.Helper()
	id := fmt.Sprintf("%x", sha1.Sum(fmt.Appendf(nil, "blob %d\x00%s", len(content), content)))
	for _, pack := range assert.Of(filepath.Glob(dir + "/objects/pack/*.pack")).OK(t) {
		index := assert.Of(exec.Command("sh", "-c", "git show-index <"+strings.TrimSuffix(pack, "pack")+"idx").Output()).OK(t)
		for line := range strings.Lines(string(index)) {
			if f := strings.Fields(line); f[1] == id {
				was := assert.Of(os.ReadFile(pack)).OK(t)
				at := assert.Of(strconv.Atoi(f[0])).OK(t)
				put := func(b []byte) { assert.OK(t, errors.Join(os.Remove(pack), os.WriteFile(pack, b, 0o400))) }
				put(slices.Replace(slices.Clone(was), at+3, at+6, 0xff, 0xff, 0xff))
				return func() { put(was) }
			}
		}
	}
	t.Fatal("no pack has a blob of ", content)
	return nil
}

// What is not pushed is known while others look at it too. Of a working copy that something has
// alone, and of one whose commits are gone, nobody is told that nothing is unsaved, and no mount
// from another storage leaves it behind.
func TestUnpushedCommitsThatCannotBeRead(t *testing.T) {
	const config, says = "home/.config/wsmount/config.yaml", "another working copy of @acme/ops "
	w, s, _ := aRow(t)
	w.committed()
	dir := filepath.Dir(assert.Of(filepath.Glob(w.path("state/acme/ops/*/copy"))).OK(t)[0])
	assert.OK(t, os.RemoveAll(dir+"/copy")) // another knows of them as well
	w.mount(ops, "mnt")
	assert.Equal(t, w.read("mnt/f")+w.read("mnt/dir/g"), "fdir/g", "in a new working copy")
	assert.Contains(t, w.shown("mnt"), "unpushed    2 commits, ")
	assert.OK(t, os.Rename(dir+"/git/refs", dir+"/refs")) // lost while it is mounted
	for _, args := range [][]string{{"cache", "clear", "mnt"}, {"cache", "clear", ops}} {
		o := w.run(args...)
		assert.True(t, o.code == exit.Unsafe && strings.Contains(flat(o.out), "given up 0 B copies 0 B that the store has, too"), args, o)
		assert.Contains(t, flat(o.out), "as commits that are not pushed are lost: the clone cannot be read: ", args)
	}
	assert.OK(t, os.Rename(dir+"/refs", dir+"/git/refs"))
	assert.False(t, strings.Contains(w.ok("cache", "show", "mnt"), "lost"), "of a clone that is whole again")
	assert.Contains(t, flat(w.run("umount", "mnt").out), "2 commits stay in the working copy, not pushed")
	mend := spoilBlob(t, dir+"/git", "f")
	assert.Contains(t, flat(w.run("doctor", ops).out), "commits that are not pushed (2) are damaged: ")
	w.refused(exit.Failed, "the object database is damaged", "recover", "upload", ops)
	spoilt := w.run("cache", "clear", ops)
	assert.True(t, spoilt.code == exit.Unsafe && strings.Contains(flat(spoilt.out), "as commits that are not pushed are lost: the clone cannot be read: "), "cache clear where the clone is damaged", spoilt)
	spoilt = w.run("recover", "export", ops, "out-damaged")
	assert.True(t, spoilt.code == exit.Unsafe && strings.Contains(flat(spoilt.out), "2 files copied to ") && strings.Contains(flat(spoilt.out), "not copied: commits that are not pushed (2): "), "export of what is damaged", spoilt)
	assert.Equal(t, w.read("out-damaged/f")+w.read("out-damaged/dir/g"), "fdir/g", "exported, as the working copy has it")
	mend()
	w.edit(config, "branch: main", "branch: next")
	locks := []string{dir + "/copy/lock", dir + "/git/wsmount/lock"}
	var readers []*flock.Lock
	for _, lock := range locks {
		readers = append(readers, assert.Of(flock.Shared(lock)).OK(t))
	}
	assert.Contains(t, flat(w.ok("recover")), "unpushed 2 commits, ", "while another looks")
	w.refused(exit.Unsafe, says+"("+s.URL+"/acme/ops#main) holds commits that are not pushed (2)", "mount", ops, "mnt")
	for _, reader := range readers {
		assert.OK(t, reader.Close())
	}
	for _, lock := range locks {
		alone := assert.Of(flock.Exclusive(lock)).OK(t)
		o := w.run("recover")
		assert.True(t, o.code == exit.Unsafe && strings.Contains(flat(o.out), "in use by another command, or a mount that is starting"), "recover beside", lock, o)
		w.refused(exit.Unsafe, "is in use, and may hold what no store has: "+dir, "mount", ops, "mnt")
		assert.OK(t, alone.Close())
	}
	assert.OK(t, os.Rename(dir+"/copy", dir+"/away"))
	assert.Contains(t, flat(w.run("recover").out), "unpushed 2 commits, ", "without the copy")
	w.refused(exit.Unsafe, "holds commits that are not pushed (2): "+dir, "mount", ops, "mnt")
	assert.OK(t, os.Rename(dir+"/away", dir+"/copy"))
	branch, theirs := filepath.Join(dir, "git/refs/heads/main"), assert.Of(os.ReadFile(filepath.Join(dir, "git/refs/remotes/origin/main"))).OK(t)
	for _, lost := range []string{"commits", "git/refs", "git"} {
		if lost == "commits" { // as if an older clone was put back
			assert.OK(t, os.WriteFile(branch, theirs, 0o600))
		} else {
			assert.OK(t, os.RemoveAll(filepath.Join(dir, lost)))
		}
		for _, args := range [][]string{{"recover"}, {"recover", "list", ops}, {"recover", "discard", ops}} {
			o := w.run(args...)
			assert.True(t, o.code != exit.Done && strings.Contains(flat(o.out), "unpushed 2 commits, "), args, "without", lost, o)
			assert.Contains(t, flat(o.out), "unread the clone cannot be read: ", args, "without", lost)
		}
		for code, args := range map[exit.Code][]string{exit.Done: {"cache", "show"}, exit.Unsafe: {"cache", "clear"}} {
			o := w.run(args...)
			assert.True(t, o.code == code && strings.Contains(flat(o.out), "copies 0 B that the store has, too"), args, "without", lost, o)
			assert.Contains(t, flat(o.out), "as commits that are not pushed are lost: the clone cannot be read: ", args, "without", lost)
			assert.Contains(t, flat(o.out), "`wsmount recover export "+dir+" DIR` copies the files", args, "without", lost)
		}
		o := w.run("recover", "export", ops, "out-"+lost)
		assert.True(t, o.code == exit.Unsafe && strings.Contains(o.out, "not copied: commits that are not pushed (2 noted): the clone cannot be read"), "export without", lost, o)
		assert.Equal(t, w.read("out-"+lost+"/f")+w.read("out-"+lost+"/dir/g"), "fdir/g", "exported of what is local without", lost)
		w.refused(exit.Unsafe, "holds commits that are not pushed (2), and commits cannot be read: "+dir, "mount", ops, "mnt")
		w.edit(config, "branch: next", "branch: main")
		for _, args := range [][]string{{"mount", ops, "mnt"}, {"recover", "upload", ops}} { // which would have the files without them
			w.refused(exit.Unsafe, "commits of @acme/ops that are not pushed (2) are lost to its clone: ", args...)
		}
		rebuilt := func(why string, args ...string) {
			o := w.run(append([]string{"recover", "--scan", dir}, args...)...)
			assert.True(t, o.code == exit.Unsafe && strings.Contains(flat(o.out), "commits that are not pushed may be lost, but for the files that are there again: "+why), "scan without", lost, o)
			restored := strings.Contains(flat(o.out), "2 files have their names again; `wsmount recover export "+dir+" DIR` copies them")
			assert.Equal(t, restored, lost == "git", "scan without", lost, o)
		}
		if lost == "git/refs" { // which nothing has noted
			assert.OK(t, os.Rename(dir+"/copy", dir+"/away"))
			unknown := "commits of @acme/ops may not be pushed, and its working copy is gone or was rebuilt: the clone cannot be read: "
			w.refused(exit.Unsafe, unknown, "mount", ops, "mnt")
			assert.OK(t, os.CopyFS(dir+"/copy", os.DirFS(dir+"/away")))
			assert.OK(t, os.RemoveAll(dir+"/copy/names"))
			rebuilt("the clone cannot be read: ")
			w.refused(exit.Unsafe, unknown, "mount", ops, "mnt")
			assert.OK(t, os.RemoveAll(dir+"/copy"))
			assert.OK(t, os.Rename(dir+"/away", dir+"/copy"))
		}
		if lost == "git" { // what the database knows of them is noted in the new one
			rebuilt("the clone cannot be read: ", "--force")
			w.refused(exit.Unsafe, "commits of @acme/ops that are not pushed (2) are lost to its clone: ", "mount", ops, "mnt")
			assert.OK(t, os.RemoveAll(dir+"/copy/names"))
			rebuilt("the clone is gone, and the old database cannot say whether it had any")
		}
		w.edit(config, "branch: main", "branch: next")
	}
	w.edit(config, "branch: next", "branch: main")
	w.ok("recover", "discard", ops, "--yes")
	assert.Contains(t, w.ok("recover"), "nothing is unsaved")
	w.mount(ops, "mnt")

	// Where all is pushed there is nothing to lose: the clone is made anew below what is unsaved.
	w.write("mnt/f", "unsaved")
	w.killed()
	w.run("umount", "mnt")
	assert.OK(t, errors.Join(os.RemoveAll(dir+"/git/refs"), os.Remove(dir+"/git/HEAD")))
	o := flat(w.ok("recover"))
	assert.True(t, strings.Contains(o, "unsaved 1 change, ") && !strings.Contains(o, "unpushed"), "recover", o)
	w.mount(ops, "mnt")
	assert.Equal(t, w.read("mnt/f"), "unsaved")
	assert.Equal(t, w.event(exit.Done, "commit", "mnt").Committed, 1, "on what the remote has")
}

// Another storage in a manifest is not accepted while the old one lacks something.
func TestAcceptStorageWithUnsent(t *testing.T) {
	tier.RequireFUSE(t)
	w, r, other := newWorld(t), serve(t, false), serve(t, false)
	w.remoteWorkspace("ops", r, perTurn, "")
	const file = "remote/ops/WORKSPACE.md"
	w.unsent()
	w.edit(file, r.socket, other.socket)
	w.refused(exit.Denied, "registry accept", "mount", ops, "mnt")
	w.refused(exit.Unsafe, "holds unsaved changes (1)", "registry", "accept", ops, "--yes")
	w.edit(file, other.socket, r.socket)
	assert.Equal(t, w.event(exit.Done, "recover", "upload", ops).Committed, 1, "recover upload")
	w.edit(file, r.socket, other.socket)
	w.ok("registry", "accept", ops, "--yes")
	w.mount(ops, "mnt")
	w.ok("umount", "mnt")

	// What a person gives up keeps nothing any more, and is named before.
	w.unsent()
	w.edit(file, other.socket, r.socket)
	w.refused(exit.Unsafe, "holds unsaved changes (1)", "registry", "accept", ops, "--yes")
	o := w.run("recover", "discard", ops)
	assert.True(t, o.code == exit.Denied && strings.Contains(o.errOut, "that it may be lost was not confirmed") && strings.Contains(o.out, "1 change"), o)
	assert.Contains(t, w.ok("recover"), "1 change", "what was not confirmed is kept")
	assert.Contains(t, w.ok("recover", "discard", ops, "--yes"), "discarded @acme/ops in ")
	assert.Contains(t, w.ok("recover"), "nothing is unsaved", "recover")
	w.ok("registry", "accept", ops, "--yes")
	w.mount(ops, "mnt")
	w.ok("umount", "mnt")
	left := assert.Of(filepath.Glob(w.path("state/.discarded/*"))).OK(t)
	assert.Equal(t, len(left), 0, left)
}

func flat(text string) string { return strings.Join(strings.Fields(text), " ") }
