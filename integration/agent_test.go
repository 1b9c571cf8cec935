package integration

import (
	"bytes"
	"context"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/internal/harness"
	"github.com/wsmount/wsmount/integration/memoryserver"
	"github.com/wsmount/wsmount/integration/tier"
	"github.com/wsmount/wsmount/providers"
)

// An agent knows only files. What it does is in the scripts of the directory agent;
// none of them runs wsmount, and in a sandbox it could not.
type agent struct {
	t       *testing.T
	w       *harness.World
	m       *harness.Mount
	sandbox string // the script that makes one; "": it is on the host
}

// agents runs a scene for root on the host, and for an ordinary user in a sandbox.
func agents(t *testing.T, config string, scene func(t *testing.T, w *harness.World, as func(m *harness.Mount) *agent)) {
	t.Helper()
	tier.RequireRoot(t)
	tier.RequireTools(t, "bwrap")
	for name, uid := range map[string]uint32{"root on the host": 0, "user in a sandbox": userID} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := harness.New(t, harness.Options{UID: uid, Config: config})
			sandbox := ""
			if uid != 0 {
				sandbox = w.Write("bwrap.sh", readFile(t, "example/bwrap.sh"), 0o755)
			}
			scene(t, w, func(m *harness.Mount) *agent { return &agent{t, w, m, sandbox} })
		})
	}
}

// does runs a script in the mount, which must succeed.
func (a *agent) does(script string, args ...string) {
	a.t.Helper()
	words := append([]string{"sh", "-c", readFile(a.t, "agent/"+script), script}, args...)
	if a.sandbox != "" {
		words = append([]string{a.sandbox, a.m.Dir}, words...)
	}
	ctx, cancel := context.WithTimeout(context.Background(), harness.Hangs)
	defer cancel()
	cmd := a.w.Command(ctx, words[0], words[1:]...)
	var said bytes.Buffer
	cmd.Dir, cmd.Stdout, cmd.Stderr = a.m.Dir, &said, &said
	if err := cmd.Run(); err != nil {
		list, _ := a.w.Command(ctx, "sh", "-c", `cd "$1"/.wsmount && tail -n +1 README errors.log unsent; ls -R conflicts history | head -50`, "sh", a.m.Dir).CombinedOutput()
		a.t.Fatalf("%s: %v\n%s\n%s", script, err, &said, list)
	}
}

// storedBy registers @acme/slug in a store of its own, with a sync block.
func storedBy(t *testing.T, w *harness.World, slug, sync string) *memoryserver.Control {
	t.Helper()
	s := w.Service()
	dir := w.Mkdir("ws-"+slug, 0o755)
	w.Write("ws-"+slug+"/WORKSPACE.md", harness.Manifest("@acme/"+slug,
		"storage: {inline: {provider: memory, config: {socket: \""+s.Socket+"\"}, sync: {"+sync+"}}}\n"), 0o644)
	w.Write("config/wsmount/config.yaml", "allow_paths: [ "+w.Dir+" ]\n", 0o600)
	w.MustRun("registry", "add", dir)
	c := assert.Of(memoryserver.DialControl(t.Context(), "unix", s.Socket)).OK(t, "control")
	t.Cleanup(func() { c.Close() })
	return c
}

// In a store that every close waits for, an agent learns why one failed, and that
// what it wrote is sent when the store is back.
func TestAgentWritesToAStore(t *testing.T) {
	t.Parallel()
	agents(t, "", func(t *testing.T, w *harness.World, as func(*harness.Mount) *agent) {
		c := storedBy(t, w, "store", "mode: canonical")
		m := w.Mount("@acme/store")
		a := as(m)
		a.does("sent.sh")
		a.does("earlier.sh")
		m.Stop()
		short := w.Mount("@acme/store", "--patience", "1s") // for a store that does not answer
		a = as(short)
		assert.Is(t, c.Cut(t.Context(), false), nil, "cut")
		a.does("failed.sh", "report", "storage is not available") // and what the store said, if the patience did not end before
		a.does("hidden.sh", w.Dir)
		assert.OK(t, c.Connect(t.Context()), "connect")
		a.does("sent.sh")
		short.Stop()
		m.Start()
		a = as(m)
		assert.Is(t, c.Fail(t.Context(), providers.MethodWrite, 1, providers.ErrPermission), nil, "permission")
		a.does("failed.sh", "forbidden", "permission")
	})
}

// Where changes wait for the end of a turn, an agent sees which do, and settles a
// conflict with cp.
func TestAgentTakesTurns(t *testing.T) {
	t.Parallel()
	agents(t, "", func(t *testing.T, w *harness.World, as func(*harness.Mount) *agent) {
		c := storedBy(t, w, "turns", "mode: pull-push, pull: {on: turn-start}, commit: {on: per-turn}, push: {on: per-commit}, conflict: {policy: manual}")
		for _, name := range []string{"f", "old"} {
			assert.Is(t, c.Tamper(t.Context(), providers.MustLocator(name), []byte("begin\n")), nil, "tamper")
		}
		a := as(w.Mount("@acme/turns"))
		a.does("waiting.sh", "turn-end")
		a.does("hidden.sh", w.Dir)
		w.MustRun("event", a.m.Dir, "turn-end")
		a.does("sent.sh")
		w.MustRun("event", a.m.Dir, "turn-start") // within a turn, no pull comes between the two
		assert.Is(t, c.Tamper(t.Context(), providers.MustLocator("f"), []byte("theirs\n")), nil, "tamper")
		a.does("ours.sh")
		r := w.Run("event", a.m.Dir, "turn-end")
		assert.Must(t, r.Code == 8, "no conflict", r)
		a.does("conflict.sh")
		w.MustRun("event", a.m.Dir, "turn-end")
		a.does("settled.sh")
		a.does("earlier.sh")
	})
}

// An agent sees whether it may write, and why not, without trying.
func TestAgentReadsOnly(t *testing.T) {
	t.Parallel()
	agents(t, "", func(t *testing.T, w *harness.World, as func(*harness.Mount) *agent) {
		storedBy(t, w, "stored", "mode: canonical")
		for _, workspace := range []string{"@acme/stored", w.Workspace("@acme/local", "")} {
			a := as(w.Mount(workspace, "--read-only"))
			a.does("readonly.sh")
			a.does("hidden.sh", w.Dir)
		}
		locked := w.Mkdir("ws-locked", 0o755)
		w.Write("ws-locked/WORKSPACE.md", harness.Manifest("@acme/locked", "defaults: {read_only: true}\n"+
			"storage: {inline: {provider: local-fs, config: {mount_path: "+locked+"}}}\n"), 0o644)
		a := as(w.Mount(locked))
		a.does("readonly.sh")
		a.does("hidden.sh", w.Dir)
	})
}

// In a repository, too: what waits, which file is in conflict, what was in a commit.
// The token is nowhere to be seen.
func TestAgentInARepository(t *testing.T) {
	t.Parallel()
	g := newGitStage(t)
	g.other.Write(map[string]string{"f": "begin\n", "old": "begin\n"})
	g.other.Commit("main", "begin")
	g.server.Require(gitToken)
	g.workspace("turns", "pull: {on: turn-start}, commit: {on: per-turn}, push: {on: per-commit}")
	a := &agent{t: t, w: g.w, m: g.w.Mount("@acme/turns")}
	a.does("waiting.sh", "turn-end")
	g.event(a.m, "turn-end")
	a.does("sent.sh")
	a.does("commits.sh", "f", "begin")
	g.event(a.m, "turn-end")

	g.fresh()
	g.event(a.m, "turn-start") // within a turn, no pull comes between the two
	g.other.Write(map[string]string{"f": "theirs\n"})
	g.other.Commit("main", "theirs")
	a.does("ours.sh")
	r := g.w.Run("event", a.m.Dir, "turn-end")
	assert.Must(t, r.Code == 8, "no conflict", r)
	a.does("conflict.sh")
	g.event(a.m, "turn-end")
	a.does("settled.sh")
	a.does("hidden.sh", g.w.Dir, gitToken)
}
