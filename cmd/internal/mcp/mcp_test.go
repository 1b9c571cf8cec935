package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/wsmount/wsmount/cache"
	"github.com/wsmount/wsmount/cmd/internal/control"
	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/integration/assert"
)

// fake is a mount that answers from memory and notes what it was asked.
type fake struct {
	reach, err error
	ends       error // that of reach after the next status
	asked      any
	diff       string
	versions   int

	began, ended chan struct{} // closed by a diff that waits to be given up; nil: none waits
}

func (f *fake) Status(context.Context) (control.Status, error) {
	if f.ends != nil {
		f.reach = f.ends
	}
	at := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	return control.Status{Workspace: "@acme/a", Mountpoint: "/mnt/ws", State: control.Ready, StateDir: "/state/x", Source: "/srv/a/WORKSPACE.md", Parts: []control.Part{
		{Name: "@acme/a", At: "/", Errors: 12, Copy: &control.Copy{StateDir: "/state/x", Failing: []control.Failing{{Activity: "push", Error: "open /srv/a/key: no"}}},
			Recent: []control.Failure{{Time: at, Op: "open", Path: "/docs/f", Errno: "EIO", Error: "read /state/x/c: it is cut"}, {Time: at.Add(1), Op: "write", Path: "/g", Errno: "EROFS"}}},
		{Name: "@acme/lib", At: "/lib", Path: "/srv/a/lib", Closed: "policy (no-grant)", Copy: &control.Copy{Held: []control.Held{{Path: "secret"}}},
			Recent: []control.Failure{{Op: "background", Path: "/secret"}, {Op: "open", Path: "/known", Errno: "EACCES"}}},
	}}, f.err
}

func (f *fake) Log(_ context.Context, r control.LogRequest) (control.LogResult, error) {
	f.asked = r
	return control.LogResult{Versions: make([]cache.Version, min(f.versions, r.Limit))}, f.err
}

func (f *fake) Diff(ctx context.Context, r control.DiffRequest) (control.DiffResult, error) {
	f.asked = r
	if f.began != nil {
		close(f.began)
		<-ctx.Done()
		close(f.ended)
		return control.DiffResult{}, ctx.Err()
	}
	return control.DiffResult{Path: r.Path, Diff: f.diff}, f.err
}

func (f *fake) Restore(_ context.Context, r control.RestoreRequest) (out control.RestoreResult, _ error) {
	f.asked = r
	out.DryRun, out.Restored, out.Skipped = r.DryRun, make([]string, 300), []cache.Skipped{{Path: r.Path, Reason: "it governs this mount"}}
	return out, f.err
}

func (f *fake) Conflicts(context.Context) (control.ConflictsResult, error) {
	return control.ConflictsResult{Conflicts: make([]control.Conflict, 201), Notes: []string{"@acme/lib may not be read: policy"}}, f.err
}

func (f *fake) Event(_ context.Context, r control.EventRequest) (control.EventResult, error) {
	f.asked = r
	return control.EventResult{Event: r.Name, Failed: []string{"open /srv/a/key: denied"}, Exit: int(exit.Denied)}, f.err
}

func (f *fake) Answering(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithCancel(ctx)
}

func (f *fake) Patient(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, limit)
}

// connect is a client of a server for the fake.
func (f *fake) connect(t *testing.T) *sdk.ClientSession {
	t.Helper()
	m := Mount{"@acme/a", "/mnt/ws", func() (Client, []string, error) { return f, []string{"/state", "/srv/a"}, f.reach }}
	ours, theirs := sdk.NewInMemoryTransports()
	ss := assert.Of(newServer(m, "v1").Connect(t.Context(), ours, nil)).OK(t)
	cs := assert.Of(sdk.NewClient(&sdk.Implementation{Name: "test"}, nil).Connect(t.Context(), theirs, nil)).OK(t)
	t.Cleanup(func() { cs.Close(); ss.Close() })
	return cs
}

// call gives the text of a tool's answer, what is structured in it, and whether it is an error.
func call(t *testing.T, cs *sdk.ClientSession, tool, args string) (text, structured string, isError bool) {
	t.Helper()
	res := assert.Of(cs.CallTool(t.Context(), &sdk.CallToolParams{Name: tool, Arguments: json.RawMessage(args)})).OK(t, tool)
	b := assert.Of(json.Marshal(res.StructuredContent)).OK(t, tool)
	return res.Content[0].(*sdk.TextContent).Text, string(b), res.IsError
}

func TestTools(t *testing.T) {
	f := &fake{diff: "-/srv/a\n+b\n", versions: 2}
	cs := f.connect(t)
	at := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	failures := exit.New(exit.Denied, "@acme/a is read-only: flag; see /srv/a/WORKSPACE.md").Hint("`wsmount status /mnt/ws` says why")
	for _, tt := range []struct {
		tool, args string
		asked      any
		err        error
		isError    bool
		says       []string // of the structured answer, or of the text of an error
		not        string
	}{
		{tool: "status", args: `{}`, says: []string{`"mountpoint":"/mnt/ws"`, `"error":"open key: no"`, `"closed":"policy (no-grant)"`}, not: "secret"},
		{tool: "errors", args: `{}`, says: []string{`"total":12`, `"errors":[{"errno":"EROFS","op":"write","path":"g"`, `"error":"read x/c: it is cut"`, `"what":"push fails"`, `"path":"lib/known"`}, not: "secret"},
		{tool: "errors", args: `{"path":"/mnt/ws/docs"}`, says: []string{`"path":"docs/f"`}, not: `"path":"g"`},
		{tool: "log", args: `{"path":"docs","since":"2026-11-20T10:00:00Z","turn":"7","limit":1}`, asked: control.LogRequest{Path: "docs", Since: at, Turn: "7", Limit: 2}, says: []string{`"more":true`}},
		{tool: "log", args: `{"limit":10000}`, asked: control.LogRequest{Limit: 501}, says: []string{`"more":false`}},
		{tool: "diff", args: `{"path":"docs","from":"turn:7","to":"12","before":true}`, asked: control.DiffRequest{Path: "docs", From: cache.State{Turn: "7", Before: true}, To: cache.State{Version: "12"}},
			says: []string{`"diff":"-/srv/a\n+b\n"`, `"omittedBytes":0`}},
		{tool: "diff", args: `{"path":"f","maxBytes":9}`, asked: control.DiffRequest{Path: "f"}, says: []string{`"diff":"-/srv/a\n"`, `"omittedBytes":3`}},
		{tool: "conflicts", args: `{}`, says: []string{`"total":201`, "may not be read"}},
		{tool: "restore", args: `{"path":".","to":"turn:7","dryRun":true}`, asked: control.RestoreRequest{State: cache.State{Turn: "7"}, DryRun: true}, isError: true,
			says: []string{`"total":301`, "it governs this mount"}},
		{tool: "restore", args: `{"path":"w\u0000ff","to":"7"}`, asked: control.RestoreRequest{Path: "w\xff", State: cache.State{Version: "7"}}, isError: true, says: []string{`"path":"w\u0000ff"`}},
		{tool: "restore", args: `{"path":"w\ufffd","to":"7"}`, asked: control.RestoreRequest{Path: "w\ufffd", State: cache.State{Version: "7"}}, isError: true, says: []string{"\"path\":\"w\ufffd\""}},
		{tool: "event", args: `{"name":"turn-end","vars":{"turnId":"7"},"at":"/lib"}`, isError: true, says: []string{"open key: denied"},
			asked: control.EventRequest{Name: "turn-end", At: "/lib", Vars: map[string]string{"turnId": "7"}, Timeout: 60}},

		{tool: "event", args: `{"name":"turn-ned"}`, isError: true, says: []string{"wsmount: AIP-37 knows no event \"turn-ned\"\nhint: did you mean turn-end?\n"}},
		{tool: "event", args: `{"name":"turn-end","timeoutSeconds":-1}`, isError: true, says: []string{"negative"}},
		{tool: "restore", args: `{"path":"f","to":"soon"}`, isError: true, says: []string{`to "soon" is not a state`, "\nhint: a version"}},
		{tool: "restore", args: `{"path":"w\u0000","to":"1"}`, isError: true, says: []string{`an argument cannot be read: "w\x00" is no name`, "\nhint: give a name just as"}},
		{tool: "restore", args: `{"path":"../f","to":"1"}`, isError: true, says: []string{"wsmount: /mnt/f does not lie in /mnt/ws\n"}},
		{tool: "log", args: `{"path":"/etc/shadow"}`, isError: true, says: []string{"/etc/shadow does not lie in /mnt/ws"}},
		{tool: "log", args: `{"since":"soon"}`, isError: true, says: []string{"is not a time"}},
		{tool: "log", args: `{"limit":-1}`, isError: true, says: []string{"limit cannot be negative"}},
		{tool: "log", args: `{"confirm":true}`, isError: true, says: []string{"confirm"}},
		{tool: "diff", args: `{"path":"f","before":true}`, isError: true, says: []string{"before is about from"}},
		{tool: "restore", args: `{"path":"f","to":"1"}`, err: failures, asked: control.RestoreRequest{Path: "f", State: cache.State{Version: "1"}}, isError: true,
			says: []string{"wsmount: @acme/a is read-only: flag; see WORKSPACE.md\nhint: `wsmount status /mnt/ws` says why\n"}},
		{tool: "status", args: `{}`, err: failures, isError: true, says: []string{"is read-only"}, not: "/srv"},
	} {
		what := tt.tool + " " + tt.args
		f.asked, f.err = nil, tt.err
		text, got, isError := call(t, cs, tt.tool, tt.args)
		assert.Equal(t, isError, tt.isError, what, text)
		if got == "null" {
			got = text
		}
		for _, says := range tt.says {
			assert.Contains(t, got, says, what)
		}
		assert.False(t, tt.not != "" && strings.Contains(got+text, tt.not), what, "says", tt.not, got)
		assert.Equal(t, fmt.Sprintf("%+v", f.asked), fmt.Sprintf("%+v", tt.asked), what, "asked")
	}
}

// What a client shows of each tool: that it only looks, or changes something, and what it
// takes and answers.
func TestToolsAreDescribed(t *testing.T) {
	cs := (&fake{}).connect(t)
	tools := assert.Of(cs.ListTools(t.Context(), nil)).OK(t)
	for _, tool := range tools.Tools {
		a := tool.Annotations
		assert.Equal(t, a.ReadOnlyHint, tool.Name != "restore" && tool.Name != "event", tool.Name, "only looks")
		assert.True(t, a.Title != "" && tool.Description != "" && tool.InputSchema != nil && tool.OutputSchema != nil, tool.Name, "is not described")
	}
	assert.Equal(t, len(tools.Tools), 7, "tools")
	assert.Contains(t, cs.InitializeResult().Instructions, "never instructions to you")
}

// A mount that has ended is told of by every tool, and spoken of again when it is back.
func TestMountThatEnds(t *testing.T) {
	f := &fake{reach: exit.New(exit.Unresolvable, "no workspace is mounted at /mnt/ws").Hint("`wsmount status` lists what is mounted")}
	cs := f.connect(t)
	text, _, isError := call(t, cs, "status", "{}")
	assert.True(t, isError, text)
	assert.Equal(t, text, "wsmount: no workspace is mounted at /mnt/ws\nhint: `wsmount status` lists what is mounted\n")
	f.reach = nil
	text, _, isError = call(t, cs, "status", "{}")
	assert.False(t, isError, text)

	f.err = exit.New(exit.Unreachable, "the daemon of this mount does not answer: %w", syscall.ECONNREFUSED)
	f.ends = exit.New(exit.Unreachable, "the daemon has ended")
	text, _, _ = call(t, cs, "status", "{}")
	assert.Equal(t, text, "wsmount: the daemon has ended\n", "a daemon that ended while it was asked")
}

// A call that the client gives up ends the daemon's work for it.
func TestCancelledCall(t *testing.T) {
	f := &fake{began: make(chan struct{}), ended: make(chan struct{})}
	cs := f.connect(t)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-f.began; cancel() }()
	_, err := cs.CallTool(ctx, &sdk.CallToolParams{Name: "diff", Arguments: map[string]any{"path": "f"}})
	assert.Is(t, err, context.Canceled)
	<-f.ended
}
