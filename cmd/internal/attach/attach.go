// Package attach keeps a server that runs beside a mount, such as that of `wsmount mcp` or
// `wsmount ui`, to the one mount that it was started for.
//
// It promises that such a server speaks only of the workspace that was mounted at a mount point
// when it began, as long as that is mounted there, by whichever daemon; and
// that a daemon which ends during a request is reported as one that has ended.
//
//	mount, err := attach.To(stateRoot, "/mnt/ws", "mcp")
//	client, places, err := mount.Reach()
package attach

import (
	"context"
	"path/filepath"
	"time"

	"github.com/wsmount/wsmount/cache/exactjson"
	"github.com/wsmount/wsmount/cmd/internal/control"
	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/cmd/internal/mountpoint"
	"github.com/wsmount/wsmount/cmd/internal/mounts"
	"github.com/wsmount/wsmount/cmd/internal/state"
	"github.com/wsmount/wsmount/cmd/internal/wrap"
)

// A Mount is the one that a server speaks of. Its methods may be called concurrently.
type Mount struct {
	Workspace, Mountpoint string

	root    string // the state directory
	command string // of wsmount, that is the server
}

// To is the mount at a mount point, for the server that a command is. A path that leads into
// a mount is refused: the server would speak of more than it names.
func To(root, path, command string) (Mount, error) {
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
			Hint("it speaks of a whole mount: wsmount %s %s", command, r.Mountpoint)
	}
	return Mount{r.Workspace, r.Mountpoint, root, command}, nil
}

// Reach finds the mount as it is now, and the host's paths that programs in it must not
// see. The error says why the mount is not available to the server any more, or not now.
func (m Mount) Reach() (c *control.Client, places []string, err error) {
	r, err := m.find()
	if err != nil {
		return nil, []string{m.root}, err
	}
	return control.NewClient(r.SocketPath()), placesOf(m.root, r), nil
}

// find is the record of the mount as it is now.
func (m Mount) find() (*state.Record, error) {
	r, err := mounts.Find(m.root, m.Mountpoint)
	switch {
	case err != nil:
		return nil, err
	case r.Mountpoint != m.Mountpoint: // the directory of an outer mount
		return nil, exit.New(exit.Unresolvable, "no workspace is mounted at %s", m.Mountpoint).Hint("`wsmount status` lists what is mounted")
	case r.Workspace != m.Workspace:
		return nil, exit.New(exit.Denied, "%s is mounted at %s now, and this server was started for %s", r.Workspace, m.Mountpoint, m.Workspace).
			Hint("start another for it: wsmount %s %s", m.command, m.Mountpoint)
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
		_ = exactjson.Unmarshal(b, &last) // as far as it can be read
	}
	return append(last.Places, root)
}

// Relative is the path in the mount, without leading slash, that a user means: it counts from
// the mount point, or leads into the mount. It touches nothing.
func Relative(mountpoint, path string) (string, error) {
	place := filepath.Clean(path)
	if !filepath.IsAbs(place) {
		place = filepath.Join(mountpoint, path)
	}
	rel, outside := mounts.Relative(mountpoint, place)
	if outside != nil {
		return "", outside.Hint("give a path that is relative to the mount point, or one that leads into the mount")
	}
	return rel, nil
}

// Why is why a call failed: of a daemon that hung up it is the error of gone, once it has one.
// A killed daemon exists until the last of its threads has ended. A call is not made
// again: the daemon may have received it.
func Why(ctx context.Context, err error, gone func() error) error {
	if !control.HungUp(err) {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, mountpoint.EndingLimit)
	defer cancel()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for {
		if gone := gone(); gone != nil {
			return gone
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return err
		}
	}
}
