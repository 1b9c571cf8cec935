// Package mcp serves one mount to an agent as tools of the Model Context Protocol.
//
// It promises that
//
//   - a tool answers and refuses what the control API answers and refuses to the user of this
//     process, in the words that the commands of wsmount print: there is no other way from
//     here to the files;
//   - nothing in an answer says where things lie on the host, but the mount point;
//   - it speaks of the workspace that was mounted at a mount point when it began, as long as
//     that is mounted there, by whichever daemon, and of no other;
//   - an answer is bounded, and says what was left out of it;
//   - standard output has the messages of the protocol, and nothing else.
//
// One use:
//
//	mount, err := mcp.At(stateRoot, "/mnt/ws")
//	err = mcp.Serve(ctx, mount, version)
package mcp

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/wsmount/wsmount/cmd/internal/control"
	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/cmd/internal/mountpoint"
	"github.com/wsmount/wsmount/cmd/internal/mounts"
	"github.com/wsmount/wsmount/cmd/internal/sandbox"
	"github.com/wsmount/wsmount/cmd/internal/state"
	"github.com/wsmount/wsmount/cmd/internal/waiting"
	"github.com/wsmount/wsmount/cmd/internal/wrap"
)

// A Client is what the tools ask of a mount: the part of *control.Client that they need.
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

	// Reach finds the mount as it is now, and the places of the host that no answer names.
	// The error says why it is not to be spoken of any more, or not now.
	Reach func() (c Client, places []string, err error)
}

// At is the mount at a mount point. A path that leads into a mount is refused: the tools
// would speak of more than it names.
func At(root, path string) (Mount, error) {
	r, err := mounts.Find(root, path)
	if err != nil {
		return Mount{}, err
	}
	table, err := mountpoint.ReadTable()
	if err != nil {
		return Mount{}, err
	}
	if resolved, err := table.Resolve(path); err != nil || resolved != r.Mountpoint {
		return Mount{}, exit.New(exit.Usage, "%s is not a mount point: it lies in the mount at %s", wrap.OneLine(path), r.Mountpoint).
			Hint("the tools are those of a whole mount: wsmount mcp %s", r.Mountpoint)
	}
	m := Mount{Workspace: r.Workspace, Mountpoint: r.Mountpoint}
	m.Reach = func() (Client, []string, error) {
		r, err := m.find(root)
		if err != nil {
			return nil, []string{root}, err
		}
		return control.NewClient(r.SocketPath()), placesOf(root, r), nil
	}
	return m, nil
}

// find is the record of the mount as it is now.
func (m Mount) find(root string) (*state.Record, error) {
	r, err := mounts.Find(root, m.Mountpoint)
	switch {
	case err != nil:
		return nil, err
	case r.Mountpoint != m.Mountpoint: // the directory of an outer mount
		return nil, exit.New(exit.Unresolvable, "no workspace is mounted at %s", m.Mountpoint).Hint("`wsmount status` lists what is mounted")
	case r.Workspace != m.Workspace:
		return nil, exit.New(exit.Denied, "%s is mounted at %s now, and this server was started for %s", r.Workspace, m.Mountpoint, m.Workspace).
			Hint("start another for it: wsmount mcp %s", m.Mountpoint)
	case !r.Alive():
		return nil, exit.New(exit.Unreachable, "the daemon of %s (pid %d) has ended without unmounting", r.Mountpoint, r.PID).
			Hint("mount it again; `wsmount status` says what was left")
	}
	return r, nil
}

// placesOf are the places that the daemon said last, and the state directory, for one that
// has said none yet.
func placesOf(root string, r *state.Record) []string {
	var last control.Status
	if b, _, err := r.Status(); err == nil {
		_ = json.Unmarshal(b, &last) // as far as it can be read
	}
	return append(last.Places, root)
}

// relative is the path in the mount, without leading slash, that an agent means: it counts
// from the mount point, or leads into the mount. It touches nothing.
func (m Mount) relative(path string) (string, error) {
	place := filepath.Clean(path)
	if !filepath.IsAbs(place) {
		place = filepath.Join(m.Mountpoint, path)
	}
	rel, outside := mounts.Relative(m.Mountpoint, place)
	if outside != nil {
		return "", outside.Hint("give a path that is relative to the mount point, or one that leads into the mount")
	}
	return rel, nil
}

// Serve answers on standard input and output until that ends, or ctx does.
func Serve(ctx context.Context, m Mount, version string) error {
	if sandbox.IsTerminal(os.Stdin) {
		defer waiting.For("waiting on standard input for messages of an MCP client, which starts this by itself")()
	}
	out := os.Stdout
	os.Stdout = os.Stderr // for whatever else would write there
	defer func() { os.Stdout = out }()
	err := newServer(m, version).Run(ctx, &sdk.IOTransport{Reader: os.Stdin, Writer: out})
	if err == nil || ctx.Err() != nil {
		return nil
	}
	return exit.New(exit.Failed, "the messages of the MCP client broke off: %w", err).Hint("it should write one message of JSON-RPC a line")
}
