package integration

import (
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/internal/harness"
)

// shows has the host show other facts from now on.
func shows(t *testing.T, w *harness.World, facts string) {
	t.Helper()
	next := w.Write("config/wsmount/facts.next", facts, 0o600)
	assert.OK(t, os.Rename(next, w.Path("config/wsmount/facts.yaml")))
}

// policyOf is a policy block of grants to operator://bob: actions, and what follows in each.
func policyOf(grants [][2]string, more string) string {
	text := "policy:\n  schema: policy/v1\n" + more + "  grants:\n"
	for _, g := range grants {
		text += "    - { principal: \"operator://bob\", actions: [ { action: \"" + g[0] + "\" } ]" + g[1] + " }\n"
	}
	return text
}

// audited is what the audit log says of the policy.
func audited(t *testing.T, w *harness.World) string {
	t.Helper()
	return string(assert.Of(os.ReadFile(w.Path("state/audit.log"))).OK(t))
}

// A policy reaches programs that are in the mount already, what they have open too, and
// lets them go on when it holds: again, or for the first time.
func TestPolicyInForce(t *testing.T) {
	t.Parallel()
	w := harness.New(t, harness.Options{Config: "principal: operator://bob\nfacts: facts.yaml\n"})
	dir := w.Workspace("@acme/x", "")
	w.Write("ws-acme-x/WORKSPACE.md", harness.Manifest("@acme/x", "storage: {inline: {provider: local-fs, config: {mount_path: \""+dir+"\"}}}\n"+
		policyOf([][2]string{{"storage:read", ", conditions: [ { kind: ip-range, cidr: 10.0.0.0/8 } ]"}, {"storage:*", ", conditions: [ { kind: ip-range, cidr: 10.1.0.0/16 } ]"}}, "")), 0o644)
	shows(t, w, "addresses: [ 10.2.0.1 ]\n")
	w.MustRun("registry", "add", dir)
	m := w.Mount(dir)
	assert.Is(t, os.WriteFile(m.Dir+"/f", nil, 0o644), syscall.EROFS, "what begins while its condition does not hold")
	status := w.MustRun("status", m.Dir, "--json")
	assert.Contains(t, status, `"readOnly": "policy (condition-failed for operator://bob)"`)
	assert.Contains(t, status, `"readOnly": true`)
	assert.Contains(t, w.MustRun("status", m.Dir), "read-only for now: policy (condition-failed for operator://bob)")
	assert.Contains(t, w.MustRun("status"), "  ro  ")

	shows(t, w, "addresses: [ 10.1.2.3 ]\n")
	harness.Eventually(t, "the condition holds", func() bool { return os.WriteFile(m.Dir+"/f", nil, 0o644) == nil })
	assert.Contains(t, w.MustRun("status"), "  rw  ")
	f := assert.Of(os.Create(m.Dir + "/f")).OK(t)
	defer f.Close()
	write := func() error { _, err := f.WriteString("one\n"); return err }
	assert.OK(t, write())

	shows(t, w, "addresses: [ 10.2.0.1 ]\n")
	harness.Eventually(t, "the part is read-only", func() bool { return errors.Is(os.WriteFile(m.Dir+"/g", nil, 0o644), syscall.EROFS) })
	assert.Is(t, write(), syscall.EROFS, "what was open")
	checkContent(t, m.Dir+"/f", "one\n")

	shows(t, w, "addresses: [ 192.0.2.1 ]\n")
	harness.Eventually(t, "the part is closed", func() bool { _, err := os.ReadFile(m.Dir + "/f"); return errors.Is(err, syscall.EACCES) })
	assert.Is(t, assert.ErrOf(os.ReadDir(m.Dir)), syscall.EACCES, "a directory")
	readme := assert.Of(os.ReadFile(m.Dir + "/.wsmount/README")).OK(t)
	assert.Contains(t, string(readme), "CLOSED: policy (condition-failed for operator://bob)")
	assert.Contains(t, w.MustRun("status", m.Dir), "closed: policy (condition-failed")

	shows(t, w, "addresses: [ 10.1.2.3 ]\n")
	harness.Eventually(t, "everything is granted again", func() bool { return write() == nil && os.WriteFile(m.Dir+"/g", nil, 0o644) == nil })
	checkContent(t, m.Dir+"/f", "one\none\n")
	log := audited(t, w)
	for _, change := range []string{`"action":"storage:write","decision":"deny","reason":"condition-failed"`, `"action":"storage:read","decision":"deny","reason":"condition-failed"`} {
		assert.Contains(t, log, change)
	}
	assert.True(t, strings.LastIndex(log, `"action":"storage:write","decision":"allow"`) > strings.LastIndex(log, `"action":"storage:write","decision":"deny"`), "that it is allowed again is not in the audit log")

	w.Write("ws-acme-x/WORKSPACE.md", harness.Manifest("@acme/x", "storage: {inline: {provider: local-fs, config: {mount_path: \""+dir+"\"}}}\n"+policyOf([][2]string{{"storage:read", ""}}, "")), 0o644)
	r := w.Run("registry", "accept", "@acme/x", "--yes")
	assert.True(t, r.Code == 0 && strings.Contains(r.Err, "is mounted at "+m.Dir+", and goes on with what was accepted before"), "accept: exit", r.Code, r.Out, r.Err)
	harness.Eventually(t, "status says that another policy was accepted", func() bool {
		return strings.Contains(w.MustRun("status", m.Dir), "goes on with what was accepted when it was mounted")
	})
}

// bobsStage has a seeded repository, and operator://bob as the principal of a host with more
// in its configuration.
func bobsStage(t *testing.T, more string) *gitStage {
	g := newGitStage(t)
	g.seed()
	config := g.read(g.w.Path("config/wsmount/config.yaml"))
	g.w.Write("config/wsmount/config.yaml", config+"principal: operator://bob\n"+more, 0o600)
	return g
}

// denied checks that the policy refuses a commit, and says why.
func (g *gitStage) denied(m *harness.Mount, why string) {
	g.t.Helper()
	r := g.w.Run("commit", m.Dir)
	assert.True(g.t, r.Code == exitDenied && strings.Contains(r.Out+r.Err, why), "exit", r.Code, r.Out, r.Err)
}

// What a working copy commits by itself waits for the policy, too.
func TestPolicyHoldsCommits(t *testing.T) {
	t.Parallel()
	g := bobsStage(t, "facts: facts.yaml\n")
	shows(t, g.w, "addresses: [ 10.1.2.3 ]\n")
	const free, approved = "", ", conditions: [ { kind: approval-from, role: owner, count: 1 } ]"
	g.workspaceOf("held", "repo: acme/site, branch: main", "commit: {on: each-write, batch_window_ms: 0}, push: {on: per-commit}",
		policyOf([][2]string{{"storage:read", free}, {"storage:write", free}, {"storage:commit", approved}, {"storage:push", free}}, ""))
	m := g.w.Mount("@acme/held")
	before := g.repo.Git("rev-parse", "main")
	g.check(os.WriteFile(m.Dir+"/one", []byte("1\n"), 0o644))
	g.denied(m, "condition-failed")
	assert.Equal(t, g.repo.Git("rev-parse", "main"), before, "the branch")
	r := g.w.Run("umount", m.Dir)
	assert.True(t, r.Code == 7 && strings.Contains(r.Err, "storage:commit"), "umount: exit", r.Code, r.Err)
	m.WaitGone()
	m.Start()
	shows(t, g.w, "approvals: [ { by: operator://ann, role: owner, of: \"@acme/*\", actions: [ \"storage:commit\" ], at: 2020-01-01T00:00:00Z } ]\n")
	harness.Eventually(t, "what was approved is at the server", func() bool {
		g.check(os.WriteFile(m.Dir+"/two", nil, 0o644)) // without a change it is looked at each 15 s
		return g.repo.Git("rev-parse", "main") != before
	})
	assert.Equal(t, g.repo.Git("show", "main:one"), "1\n", "what was approved")
}

// oneCommit is a workspace in which operator://bob may do everything, and commit once a day.
func (g *gitStage) oneCommit() {
	g.t.Helper()
	g.workspaceOf("limited", "repo: acme/site, branch: main", "commit: {on: manual}, push: {on: manual}",
		policyOf([][2]string{{"storage:*", ""}}, "  limits: [ { kind: rate-commits, value: 1, per: day, applies_to: [ \"storage:commit\" ] } ]\n"))
}

// A limit counts what mounts before have done.
func TestPolicyLimitsCommits(t *testing.T) {
	t.Parallel()
	g := bobsStage(t, "")
	g.oneCommit()
	m := g.w.Mount("@acme/limited")
	g.check(os.WriteFile(m.Dir+"/two", []byte("2\n"), 0o644))
	g.w.MustRun("commit", m.Dir)
	g.check(os.WriteFile(m.Dir+"/three", []byte("3\n"), 0o644))
	m.Stop()
	m.Start()
	g.denied(m, "limit-exceeded")

	// Others were first, so that what was committed has to be committed again: that is asked
	// for, too, and takes nothing along that was held back.
	g.other.Write(map[string]string{"two": "theirs\n"})
	g.other.Commit("main", "theirs")
	before := g.repo.Git("rev-parse", "main")
	r := g.w.Run("push", m.Dir)
	assert.True(t, r.Code != 0 && strings.Contains(r.Out+r.Err, "limit-exceeded"), "push: exit", r.Code, r.Out, r.Err)
	assert.Equal(t, g.repo.Git("rev-parse", "main"), before, "the branch after the push")
	checkContent(t, m.Dir+"/three", "3\n")
	ours, err := os.ReadFile(m.Dir + "/two")
	g.check(err)
	assert.Contains(t, string(ours), "2\n")
}

// A limit is of a workspace, not of a working copy: another one of the same workspace has
// no commit of its own.
func TestPolicyLimitOfCopies(t *testing.T) {
	t.Parallel()
	g := bobsStage(t, "")
	g.oneCommit()
	m, second := g.w.Mount("@acme/limited"), g.w.Mount("@acme/limited", "--working-copy", "second")
	for _, dir := range []string{m.Dir, second.Dir} {
		g.check(os.WriteFile(dir+"/one", []byte("1\n"), 0o644))
	}
	g.w.MustRun("commit", m.Dir)
	g.denied(second, "limit-exceeded")
}
