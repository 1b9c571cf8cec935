package integration

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/internal/harness"
	"github.com/wsmount/wsmount/integration/memoryserver"
	"github.com/wsmount/wsmount/integration/tier"
)

const exitTimedOut = 124

// inSandbox runs a shell script by `wsmount exec`.
func inSandbox(w *harness.World, workspace, script string, flags ...string) harness.Result {
	return w.Run(append(append([]string{"exec", workspace}, flags...), "--", "sh", "-c", script)...)
}

// nothingLeft checks that no mount and no directory of one is left.
func nothingLeft(t *testing.T, w *harness.World) {
	t.Helper()
	harness.Eventually(t, "the mounts of commands are gone", func() bool {
		left, err := os.ReadDir(w.Path("tmp"))
		for _, e := range left {
			if strings.HasPrefix(e.Name(), "wsmount-exec-") {
				return false
			}
		}
		return err == nil
	})
	if table, _ := os.ReadFile("/proc/self/mountinfo"); strings.Contains(string(table), w.Path("tmp")) {
		t.Errorf("something is mounted below %s", w.Path("tmp"))
	}
}

// A command's status is that of exec, and so are its input and its output.
func TestExecStatus(t *testing.T) {
	t.Parallel()
	tier.RequireTools(t, "bwrap")
	w := harness.New(t, harness.Options{})
	dir := sandboxed(w, "x", sandboxAtWorkspace)
	for script, want := range map[string]int{
		"exit 0": 0, "exit 7": 7, "exit 255": 255, "kill -9 $$": 137, "kill -TERM $$": 143, "exec /no/such": 127,
		"[ $(pwd) = /workspace ] && echo x >made":   0,
		"trap '' TERM; (sleep 600; touch late) & :": 0, // what it leaves behind ends with it
	} {
		r := inSandbox(w, dir, script)
		assert.True(t, r.Code == want, script, r.Code, want, r.Err)
	}
	r := w.Run("exec", dir, "--", "no-such-program")
	assert.True(t, r.Code == 127, "a program that is not there: got", r.Code, "want 127", r.Err)
	checkContent(t, dir+"/made", "x\n")
	cmd := w.Command(t.Context(), harness.Binary(), "exec", dir, "--", "tr", "a-z", "A-Z")
	cmd.Stdin = strings.NewReader("through")
	assert.Of(cmd.Output()).Equal(t, []byte("THROUGH"))
	nothingLeft(t, w)
}

// A terminal is one inside, too, and that of the command's own session.
func TestExecTerminal(t *testing.T) {
	t.Parallel()
	tier.RequireTools(t, "bwrap")
	w := harness.New(t, harness.Options{})
	w.Env("TERM=dumb")
	dir := sandboxed(w, "x", sandboxAtWorkspace)
	_, slave := terminal(t)
	cmd := w.Command(t.Context(), harness.Binary(), "exec", dir, "--", "sh", "-c", `[ -t 0 ] && [ -t 1 ] && [ "$TERM" = dumb ] && : </dev/tty && stty size`)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	assert.Is(t, cmd.Run(), nil, "no terminal inside")
}

// running starts a command that makes the file "started" on the way, and waits for
// that.
func running(t *testing.T, w *harness.World, workspace, made, script string, flags ...string) (cmd *exec.Cmd, said *bytes.Buffer) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), harness.Hangs)
	t.Cleanup(cancel)
	cmd = w.Command(ctx, harness.Binary(), append(append([]string{"exec", workspace}, flags...), "--", "sh", "-c", script)...)
	said = &bytes.Buffer{}
	cmd.Stdout, cmd.Stderr = said, said
	assert.OK(t, cmd.Start(), "start")
	harness.Eventually(t, "the command starts", func() bool {
		_, err := os.Stat(made)
		return err == nil
	})
	return cmd, said
}

// Signals reach the command, which may do with them what it likes.
func TestExecSignals(t *testing.T) {
	t.Parallel()
	tier.RequireTools(t, "bwrap")
	w := harness.New(t, harness.Options{})
	dir := sandboxed(w, "x", sandboxAtWorkspace)
	const stay = "touch started; while :; do sleep 0.05; done" // a shell looks at its traps between two programs
	for _, tt := range []struct {
		signal syscall.Signal
		script string
		want   int
	}{
		{syscall.SIGTERM, stay, 143}, {syscall.SIGINT, "trap 'exit 5' INT; " + stay, 5},
		{syscall.SIGHUP, stay, 129}, {syscall.SIGUSR1, "trap 'exit 6' USR1; " + stay, 6},
	} {
		os.Remove(dir + "/started")
		cmd, said := running(t, w, dir, dir+"/started", tt.script)
		assert.Is(t, cmd.Process.Signal(tt.signal), nil, "signal")
		cmd.Wait()
		assert.Equal(t, cmd.ProcessState.ExitCode(), tt.want, tt.signal, "exit", said)
	}
	nothingLeft(t, w)
}

// What cannot be had is refused, with what and what to do, and nothing is left.
func TestExecRefusals(t *testing.T) {
	t.Parallel()
	tier.RequireTools(t, "bwrap")
	w := harness.New(t, harness.Options{})
	box := func(rest string) string { return "sandbox: {inline: {provider: local, config: {}" + rest + "}}\n" }
	policy := "policy: {schema: policy/v1, grants: [{principal: \"*\", actions: [{action: \"storage:*\"}]}]}\n"
	for _, tt := range []struct {
		name, block, says string
		flags             []string
		code              int
	}{
		{name: "no block", says: "has no sandbox block", code: exitDenied},
		{name: "another provider", block: "sandbox: {inline: {provider: mastra-e2b, config: {}}}\n", says: `"mastra-e2b" is not built into`, code: exitUnresolvable},
		{name: "another provider instead", block: box(""), says: "can be local only", flags: []string{"--sandbox-provider", "mastra-e2b"}, code: 2},
		{name: "configuration", block: "sandbox: {inline: {provider: local, config: {isolation: none}}}\n", says: "config.isolation", code: exitInvalid},
		{name: "read-only", block: box(", read_only: true"), says: "sandbox_read_only", code: exitDenied},
		{name: "read-only by policy", block: box(", policy: {schema: policy/v1, default: allow, defaults: {sandbox: {read_only: true}}}"), says: "sandbox_read_only", code: exitDenied},
		{name: "policy", block: box("") + policy, says: "does not let", code: exitDenied},
		{name: "a default of policy", block: box(", policy: {schema: policy/v1, default: allow, defaults: {sandbox: {limits: {}}}}"), says: "defaults.sandbox.limits", code: exitDenied},
		{name: "the network", block: box(", network: {egress: [pypi.example.test]}"), says: "list of hosts", code: exitDenied},
		{name: "a mount over the system", block: box(", mounts: [{source: workspace, at: /usr/local}]"), says: "/usr is the system's", code: exitInvalid},
		{name: "a mount over everything", block: box(", mounts: [{source: workspace, at: /}]"), says: "the system's", code: exitInvalid},
		{name: "a mount with dots", block: box(", mounts: [{source: workspace, at: /a/../usr}]"), says: "mounts[0].at", code: exitInvalid},
		{name: "a mount in another", block: box(", mounts: [{source: workspace, at: /workspace}, {source: {inline: {provider: dev-local, config: {}}}, at: /workspace/out}]"), says: "lie in each other", code: exitInvalid},
		{name: "a variable", block: box(", env: {passthrough: [HOME]}"), says: "HOME", code: exitDenied},
		{name: "a secret", block: box(", env: {auth: {state: {env: [API_KEY]}}}"), says: "API_KEY", code: exitDenied},
		{name: "a workspace of another owner", block: box(", mounts: [{source: {ref: \"@other/x\"}, at: /x}]"), says: "@other/x", code: exitDenied},
		{name: "a turn that nobody sees", block: box(""), says: "--turn is for a workspace that the command sees", flags: []string{"--turn", "1"}, code: 2},
		{name: "processes of root", block: box(""), says: "cannot be limited", flags: []string{"--max-processes", "9"}, code: 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.name == "processes of root" {
				tier.RequireRoot(t)
			}
			dir := sandboxed(w, "refused", tt.block)
			r := inSandbox(w, dir, "echo it runs", tt.flags...)
			if r.Code != tt.code || !strings.Contains(r.Err, tt.says) || !strings.Contains(r.Err, "wsmount: ") || !strings.Contains(r.Err, "hint: ") || r.Out != "" {
				t.Errorf("got %d, want %d, and %q in\n%s%s", r.Code, tt.code, tt.says, r.Err, r.Out)
			}
		})
	}
	nothingLeft(t, w)
}

// The block's limits hold.
func TestExecLimits(t *testing.T) {
	t.Parallel()
	tier.RequireRoot(t)
	tier.RequireTools(t, "bwrap")
	const (
		memory = "head -c 150000000 /dev/zero | tail -c 150000000 >/dev/null && echo enough; head -c 250000000 /dev/zero | tail -c 250000000 || echo not enough"
		many   = "for i in 1 2 3 4 5 6 7 8 9; do sleep 600 & p=\"$p $!\"; done; kill $p"
	)
	w := harness.New(t, harness.Options{UID: userID})
	for _, tt := range []struct {
		name, limits, script string
		flags                []string // a time there stands in for that of the block
		codes                []int    // nil: any but 0 and that of a time that was over
		says                 string
	}{
		{"time", "timeout_ms: 300", "sleep 600", nil, []int{exitTimedOut}, "the command was ended at its time limit of 300ms"},
		{"time of who does not listen", "timeout_ms: 300", "trap '' TERM; while :; do sleep 1; done", nil, []int{exitTimedOut}, ""},
		{"memory", "timeout_ms: 1, memory_mb: 200", memory, []string{"--timeout", "1h"}, []int{0}, "enough\nnot enough"},
		{"processor", "timeout_ms: 3600000, cpu_ms: 1000", "while :; do :; done", nil, []int{128 + int(syscall.SIGKILL), 128 + int(syscall.SIGXCPU)}, ""},
		{"no limit of processes", "timeout_ms: 1", many, []string{"--timeout", "1h"}, []int{0}, ""},
		{"processes", "timeout_ms: 1", many, []string{"--timeout", "1h", "--max-processes", "8"}, nil, "fork"},
	} {
		dir := sandboxed(w, strings.ReplaceAll(tt.name, " ", "-"), "sandbox: {inline: {provider: node-permission, config: {}, limits: {"+tt.limits+"}}}\n")
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := inSandbox(w, dir, tt.script, tt.flags...)
			well := slices.Contains(tt.codes, r.Code) || tt.codes == nil && r.Code != 0 && r.Code != exitTimedOut
			assert.True(t, well && strings.Contains(r.Out+r.Err, tt.says), r.Code, tt.codes, tt.says, r.Out, r.Err)
		})
	}
}

// The environment is what the block passes on and the host grants, and nothing else.
func TestExecEnvironment(t *testing.T) {
	t.Parallel()
	tier.RequireTools(t, "bwrap")
	w := harness.New(t, harness.Options{Config: "allow_env: [ { name: GRANTED, allow: [ \"@acme/*\" ] }, UNSET ]\nsecrets: { api-key: { env: GIVEN, allow: [ \"@acme/*\" ] } }\n"})
	w.Env("GRANTED=yes", "NOT_GRANTED=no", "GIVEN=key")
	dir := sandboxed(w, "x", "sandbox: {inline: {provider: local, config: {}, "+untimed+", env: {passthrough: [GRANTED, UNSET], auth: {state: {env: [API_KEY]}}}}}\n")
	if r := inSandbox(w, dir, "env"); r.Code != exitDenied {
		t.Errorf("a manifest that is not registered: got %d\n%s", r.Code, r.Err)
	}
	w.MustRun("registry", "add", dir)
	r := inSandbox(w, "@acme/x", "env | sort")
	if r.Code != 0 || r.Out != "API_KEY=key\nGRANTED=yes\nHOME=/tmp\nLANG=C.UTF-8\nPATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin\nPWD=/tmp\n" || !strings.Contains(r.Err, "UNSET is not set here") {
		t.Errorf("got %d, %q\n%s", r.Code, r.Out, r.Err)
	}
}

// Every kind of mount is where the block says, as it says.
func TestExecMounts(t *testing.T) {
	t.Parallel()
	tier.RequireTools(t, "bwrap")
	w := harness.New(t, harness.Options{})
	lib := w.Workspace("@acme/lib", "")
	w.Write("ws-acme-lib/f", "library", 0o644)
	w.MustRun("registry", "add", lib)
	dir := sandboxed(w, "x", "sandbox: {ref: ./tools/SANDBOX.md}\n")
	w.Mkdir("ws-x/tools", 0o755)
	w.Mkdir("ws-x/kept", 0o755)
	w.Write("ws-x/tools/x.STORAGE.md", "---\nschema: storage/v1\nid: \"@acme/kept\"\nversion: \"1.0.0\"\nprovider: local-fs\nconfig: {mount_path: "+dir+"/kept}\n---\n", 0o644)
	w.Write("ws-x/tools/SANDBOX.md", "---\nschema: sandbox/v1\nid: \"@acme/box\"\nversion: \"1.0.0\"\nprovider: local\nconfig: {}\n"+untimed+"\nmounts:\n"+
		"  - {source: workspace, at: /workspace, mode: read-only}\n  - {source: {ref: \"@acme/lib\"}, at: /opt/lib}\n"+
		"  - {source: {inline: {provider: dev-local, config: {}}}, at: /scratch}\n  - {source: {file: x.STORAGE.md}, at: /kept}\n---\n", 0o644)
	w.MustRun("registry", "add", dir)
	r := inSandbox(w, "@acme/x", "cat /opt/lib/f; ls; touch x; echo 1 >/scratch/n; echo 2 >/kept/n; echo 3 >/opt/lib/n; touch tools/SANDBOX.md tools/x.STORAGE.md")
	assert.True(t, contains(r.Out, "library", "WORKSPACE.md") && strings.Count(r.Err, "Read-only file system") == 3, "got", r.Code, r.Out, r.Err)
	checkContent(t, dir+"/kept/n", "2\n")
	checkContent(t, lib+"/n", "3\n")
	r = inSandbox(w, "@acme/x", "cat /scratch/n")
	assert.True(t, r.Out == "1\n", "what an earlier command left: got", r.Out, r.Err)
	w.Write("ws-x/tools/x.STORAGE.md", "---\nschema: storage/v1\nid: \"@acme/kept\"\nversion: \"1.0.0\"\nprovider: local-fs\nconfig: {mount_path: "+w.Dir+"}\n---\n", 0o644)
	r = inSandbox(w, "@acme/x", "cat /kept/secret")
	assert.True(t, r.Code == exitDenied, "a storage that was changed after it was accepted: got", r.Code, r.Err)
	nothingLeft(t, w)
}

// A mount that is there is used and stays; commands at the same time share one.
func TestExecShares(t *testing.T) {
	t.Parallel()
	tier.RequireTools(t, "bwrap")
	w := harness.New(t, harness.Options{})
	dir := sandboxed(w, "x", sandboxAtWorkspace)
	cmd, said := running(t, w, dir, dir+"/started", "touch started; while [ ! -e go ]; do sleep 0.01; done; echo end >end")
	r := inSandbox(w, dir, "echo a >second; ls /workspace/started")
	assert.True(t, r.Code == 0, "a second command: got", r.Code, r.Err)
	write(t, dir+"/go", "")
	assert.Is(t, cmd.Wait(), nil, "the first command, after the second", said)
	checkContent(t, dir+"/end", "end\n")
	nothingLeft(t, w)
	m := w.Mount(dir)
	r = inSandbox(w, dir, "echo b >third")
	assert.True(t, r.Code == 0, "in a mount that is there: got", r.Code, r.Err)
	checkContent(t, m.Dir+"/third", "b\n")
	assert.Equal(t, m.Status().PID, m.PID, "the mount's daemon")
}

// sandboxedRepository is a workspace whose store outlives its mounts, and is looked at
// beside them.
func sandboxedRepository(t *testing.T, commit string) (w *harness.World, has func(file string) bool) {
	t.Helper()
	w = harness.New(t, harness.Options{})
	s := w.Service("-repository")
	w.Write("config/wsmount/config.yaml", "allow_paths: [ "+w.Dir+" ]\n", 0o600)
	dir := w.Mkdir("ws-r", 0o755)
	w.Write("ws-r/WORKSPACE.md", harness.Manifest("@acme/r", "storage: {inline: {provider: memory, config: {clone: a, branch: main, socket: "+s.Socket+"}, "+
		"sync: {mode: pull-push, pull: {on: turn-start}, commit: {on: "+commit+", batch_window_ms: 600000}, push: {on: per-commit}}}}\n"+sandboxAtWorkspace), 0o644)
	w.MustRun("registry", "add", dir)
	c := assert.Of(memoryserver.DialControl(t.Context(), "unix", s.Socket)).OK(t, "dial")
	return w, func(file string) bool {
		all, err := c.Dump(t.Context())
		return err == nil && strings.Contains(strings.Join(all, "\n"), `"`+file+`"`)
	}
}

// A turn begins before the command and ends after it; when exec has ended, what it
// wrote is in the store.
func TestExecTurn(t *testing.T) {
	t.Parallel()
	tier.RequireTools(t, "bwrap")
	w, has := sandboxedRepository(t, "per-turn")
	if r := inSandbox(w, "@acme/r", "echo x >turned", "--turn", "7", "--conversation", "c"); r.Code != 0 || !has("turned") {
		t.Errorf("got %d; in the store: %v\n%s", r.Code, has("turned"), r.Err)
	}
	m := w.Mount("@acme/r")
	if r := inSandbox(w, "@acme/r", "echo x >again; exit 3", "--turn", "8"); r.Code != 3 || !has("again") {
		t.Errorf("in a mount: got %d; in the store: %v\n%s", r.Code, has("again"), r.Err)
	}
	m.Stop()
	nothingLeft(t, w)
}

// A daemon that is killed is said to be, and nothing of its mount stays.
func TestExecWithoutDaemon(t *testing.T) {
	t.Parallel()
	tier.RequireTools(t, "bwrap")
	w, has := sandboxedRepository(t, "write")
	in, out, err := os.Pipe()
	assert.OK(t, err, "pipe")
	defer in.Close()
	cmd := w.Command(t.Context(), harness.Binary(), "exec", "@acme/r", "--", "sh", "-c", "echo x >unsent; echo ready; read line")
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = out, &said
	stdin := assert.Of(cmd.StdinPipe()).OK(t, "pipe")
	assert.OK(t, cmd.Start(), "start")
	out.Close()
	assert.OK(t, assert.ErrOf(in.Read(make([]byte, 6))))
	var status struct{ Mounts []struct{ PID int } }
	assert.Is(t, json.Unmarshal([]byte(w.MustRun("status", "--json")), &status), nil, "status")
	assert.Is(t, syscall.Kill(status.Mounts[0].PID, syscall.SIGKILL), nil, "kill")
	stdin.Close()
	cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code == 0 || !contains(said.String(), "wsmount: ", "hint: ") {
		t.Errorf("got %d\n%s", code, &said)
	}
	nothingLeft(t, w)
	if r := inSandbox(w, "@acme/r", "cat unsent"); r.Out != "x\n" || !has("unsent") {
		t.Errorf("the next command: got %d, %q; in the store: %v\n%s", r.Code, r.Out, has("unsent"), r.Err)
	}
}

// Whoever is killed, the command ends and what it wrote is sent.
func TestExecKilled(t *testing.T) {
	t.Parallel()
	tier.RequireTools(t, "bwrap")
	w, has := sandboxedRepository(t, "write")
	if r := inSandbox(w, "@acme/r", "echo x >killed-itself; kill -9 $$"); r.Code != 137 || !has("killed-itself") {
		t.Errorf("the command: got %d; in the store: %v\n%s", r.Code, has("killed-itself"), r.Err)
	}
	mark := w.Path("mark")
	in, out, err := os.Pipe()
	assert.OK(t, err, "pipe")
	defer in.Close()
	cmd := w.Command(t.Context(), harness.Binary(), "exec", "@acme/r", "--", "sh", "-c", "echo x >orphan; echo ready; trap '' TERM HUP; sleep 600", mark)
	cmd.Stdout = out
	assert.OK(t, cmd.Start(), "start")
	out.Close()
	line := make([]byte, 6)
	assert.OK(t, assert.ErrOf(in.Read(line)))
	assert.Is(t, cmd.Process.Kill(), nil, "kill")
	cmd.Wait()
	if n, err := in.Read(line); n != 0 || err == nil { // the end of the pipe: nobody writes any more
		t.Errorf("the command goes on: %d, %v", n, err)
	}
	nothingLeft(t, w)
	assert.True(t, has("orphan"), "what a command wrote whose exec was killed is not in the store")
}
