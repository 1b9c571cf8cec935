// Package mcp serves one mount to an agent as tools of the Model Context Protocol.
//
// It promises that
//
//   - a tool answers and refuses as the control API does to the user of this
//     process, in the words that the commands of wsmount print: this package has no other way
//     to the files;
//   - nothing in an answer says where things lie on the host, but the mount point;
//   - it speaks of one mount, as package attach has it;
//   - an answer is bounded, and says how much was left out of it;
//   - standard output has the messages of the protocol, and nothing else.
//
// One use:
//
//	mount, err := mcp.At(stateRoot, "/mnt/ws")
//	err = mcp.Serve(ctx, mount, version)
package mcp

import (
	"context"
	"os"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/wsmount/wsmount/cmd/internal/attach"
	"github.com/wsmount/wsmount/cmd/internal/control"
	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/cmd/internal/sandbox"
	"github.com/wsmount/wsmount/cmd/internal/waiting"
)

// A Client is a tool's access to a mount: the part of *control.Client that they need.
type Client interface {
	Status(ctx context.Context) (control.Status, error)
	Log(ctx context.Context, r control.LogRequest) (control.LogResult, error)
	Diff(ctx context.Context, r control.DiffRequest) (control.DiffResult, error)
	Restore(ctx context.Context, r control.RestoreRequest) (control.RestoreResult, error)
	Conflicts(ctx context.Context) (control.ConflictsResult, error)
	Event(ctx context.Context, r control.EventRequest) (control.EventResult, error)

	// Answering and Patient end calls to a daemon that hangs.
	Answering(ctx context.Context) (context.Context, context.CancelFunc)
	Patient(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc)
}

// A Mount is the one that a server speaks of.
type Mount struct {
	Workspace, Mountpoint string

	// Reach finds the mount as it is now, and the paths of the host that no answer may name.
	// The error says why the mount is not available to the server any more, or not now.
	Reach func() (c Client, places []string, err error)
}

// At is the mount at a mount point.
func At(root, path string) (Mount, error) {
	m, err := attach.To(root, path, "mcp")
	return Mount{m.Workspace, m.Mountpoint, func() (Client, []string, error) { return m.Reach() }}, err
}

// Serve answers on standard input and output until that ends, or ctx does.
func Serve(ctx context.Context, m Mount, version string) error {
	if sandbox.IsTerminal(os.Stdin) {
		defer waiting.For("waiting on standard input for messages of an MCP client, which starts this by itself")()
	}
	out := os.Stdout
	os.Stdout = os.Stderr // for any other code that would write to it
	defer func() { os.Stdout = out }()
	err := newServer(m, version).Run(ctx, &sdk.IOTransport{Reader: os.Stdin, Writer: out})
	if err == nil || ctx.Err() != nil {
		return nil
	}
	return exit.New(exit.Failed, "the messages of the MCP client broke off: %w", err).Hint("it should write one message of JSON-RPC a line")
}
