package integration

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/internal/harness"
	"github.com/wsmount/wsmount/providers"
)

// asksAs is a client of `wsmount mcp` on a mount. ask gives the text of an answer.
func asksAs(t *testing.T, w *harness.World, dir string) (cs *mcp.ClientSession, ask func(fails bool, tool, args string) string) {
	t.Helper()
	cs, err := mcp.NewClient(&mcp.Implementation{Name: "test"}, nil).
		Connect(t.Context(), &mcp.CommandTransport{Command: w.Command(t.Context(), harness.Binary(), "mcp", dir)}, nil)
	assert.OK(t, err, "connect")
	return cs, func(fails bool, tool, args string) string {
		t.Helper()
		res := assert.Of(cs.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: json.RawMessage(args)})).OK(t, tool)
		text := res.Content[0].(*mcp.TextContent).Text
		assert.Equal(t, res.IsError, fails, tool, args, "fails", text)
		return text
	}
}

// An agent's client asks the program itself, through all that may become of the mount.
func TestMCP(t *testing.T) {
	t.Parallel()
	w := harness.New(t, harness.Options{})
	c := storedBy(t, w, "asked", "mode: pull-push, pull: {on: turn-start}, commit: {on: per-turn}, push: {on: per-commit}, conflict: {policy: manual}")
	m := w.Mount("@acme/asked")
	cs, ask := asksAs(t, w, m.Dir)
	write := func(text string) { assert.OK(t, os.WriteFile(m.Dir+"/f", []byte(text), 0o644)) }
	for _, turn := range []string{"7", "8"} {
		ask(false, "event", `{"name":"turn-start","vars":{"turnId":"`+turn+`"}}`)
		write("in turn " + turn + "\n")
		assert.Contains(t, ask(false, "event", `{"name":"turn-end"}`), `"committed":1`)
	}
	assert.Contains(t, ask(false, "log", `{"path":"f"}`), `"turn":"8"`)
	ask(false, "restore", `{"path":"f","to":"turn:7"}`)
	checkContent(t, m.Dir+"/f", "in turn 7\n")
	assert.Contains(t, ask(false, "diff", `{"path":".","from":"turn:8"}`), "-in turn 8\n+in turn 7\n")
	assert.Equal(t, ask(true, "restore", `{"path":"f","to":"999999"}`), w.Run("restore", m.Dir, "f", "--to", "999999").Err, "a refusal")

	ask(false, "event", `{"name":"turn-end"}`)
	assert.Is(t, c.Tamper(t.Context(), providers.MustLocator("f"), []byte("theirs\n")), nil, "tamper")
	write("ours\n")
	assert.Contains(t, ask(true, "event", `{"name":"turn-end"}`), `"conflicts":1`)
	assert.Contains(t, ask(false, "conflicts", `{}`), `"path":"f"`)
	for _, text := range []string{ask(false, "errors", `{}`), ask(false, "status", `{}`)} {
		assert.Contains(t, text, "modified locally and on the remote")
		assert.False(t, strings.Contains(strings.ReplaceAll(text, m.Dir, ""), w.Dir), "a place of the host is named", text)
	}

	w.MustRun("conflicts", "resolve", m.Dir, "f", "--ours")
	ask(false, "event", `{"name":"turn-end"}`)
	m.Stop()
	assert.Equal(t, ask(true, "status", `{}`), w.Run("status", m.Dir).Err, "unmounted")
	w.MustRun("registry", "add", w.Workspace("@acme/other", ""))
	w.MustRun("mount", "@acme/other", m.Dir)
	assert.Contains(t, ask(true, "log", `{}`), "@acme/other is mounted at "+m.Dir+" now, and this server was started for @acme/asked")
	w.MustRun("umount", m.Dir)
	m.Start()
	assert.Contains(t, ask(false, "status", `{}`), `"state":"ready"`)
	for code, args := range map[int][]string{2: {"mcp", m.Dir + "/f"}, 4: {"mcp", w.Dir}} {
		r := w.Run(args...)
		assert.True(t, r.Code == code && r.Out == "", args, "exit", r.Code, r.Out, r.Err)
	}
	m.Hang()
	assert.Contains(t, ask(true, "diff", `{"path":"f"}`), "is stopped")
	m.Kill()
	assert.Contains(t, ask(true, "status", `{}`), "has ended without unmounting")
	m.Start()
	ask(false, "log", `{}`)
	assert.Is(t, cs.Close(), nil, "the program's end")
}
