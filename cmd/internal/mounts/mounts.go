// Package mounts finds the mounts that a state directory knows, and says how each is.
//
//	r, err := mounts.Find(root, "/mnt/ws/docs")
//	status := mounts.Look(ctx, r)
//
// It promises that finding one asks neither the mount nor its daemon, which may hang, and
// that looking at one takes no longer than AnswerLimit.
package mounts

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/cache"
	"github.com/wsmount/wsmount/cmd/internal/control"
	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/cmd/internal/mountpoint"
	"github.com/wsmount/wsmount/cmd/internal/room"
	"github.com/wsmount/wsmount/cmd/internal/state"
	"github.com/wsmount/wsmount/cmd/internal/suggest"
	"github.com/wsmount/wsmount/fs"
)

// AnswerLimit is how long a daemon may take to say how it is; after it, what
// it wrote last is shown. status promises an answer within two seconds.
const AnswerLimit = 1200 * time.Millisecond

// Find returns the record of the mount that path lies in.
func Find(root, path string) (*state.Record, error) {
	records, err := state.List(root)
	if err != nil {
		return nil, err
	}
	table, err := mountpoint.ReadTable()
	if err != nil {
		return nil, err
	}
	resolved, err := table.Resolve(path)
	if err != nil {
		return nil, exit.New(exit.Usage, "%w", err)
	}
	var best *state.Record
	var known []string
	for _, r := range records {
		known = append(known, r.Mountpoint)
		if mountpoint.Within(resolved, r.Mountpoint) && (best == nil || better(table, r, best)) {
			best = r
		}
	}
	if best == nil || Replaced(table, best) {
		return nil, notMounted(table, resolved, known)
	}
	return best, nil
}

// better reports whether r rather than best is the record of what is seen at a
// path. Two have one mount point when the mount of one is out of sight.
func better(table mountpoint.Table, r, best *state.Record) bool {
	if r.Mountpoint != best.Mountpoint {
		return len(r.Mountpoint) > len(best.Mountpoint)
	}
	if shown := table.Shows(r.Mountpoint, r.Device); shown != table.Shows(best.Mountpoint, best.Device) {
		return shown
	}
	return r.Alive() && (!best.Alive() || r.Started.After(best.Started))
}

// Replaced reports whether another mount of wsmount stands in the place of that
// of a record.
func Replaced(table mountpoint.Table, r *state.Record) bool {
	return table.Shows(r.Mountpoint, "") && !table.Shows(r.Mountpoint, r.Device)
}

func notMounted(table mountpoint.Table, path string, known []string) error {
	if m, ok := table.Around(path); ok && m.Ours() {
		return exit.New(exit.Unresolvable, "%s is mounted, but its state is not in this state directory", m.Path).
			Hint("give --state-dir as it was given to mount, or ask as the user who mounted it")
	}
	err := exit.New(exit.Unresolvable, "no workspace is mounted at %s", path)
	if question := suggest.Phrase(path, known); question != "" {
		return err.Hint("%s", question)
	}
	return err.Hint("`wsmount status` lists what is mounted")
}

// Look returns the status of a mount: the daemon's own word, or, when it does
// not answer in time, what it wrote last, marked as such.
func Look(ctx context.Context, r *state.Record) control.Status {
	ctx, cancel := context.WithTimeout(ctx, AnswerLimit)
	defer cancel()
	alive := r.Alive()
	if alive {
		if s, err := control.NewClient(r.SocketPath()).Status(ctx); err == nil {
			return s
		}
	}
	s := control.Status{Schema: control.StatusSchema, Workspace: r.Workspace, Source: r.Source, Started: r.Started,
		Version: r.Version, Log: r.Log, StateDir: r.Dir}
	if b, _, err := r.Status(); err == nil {
		if json.Unmarshal(b, &s) != nil {
			s.Notes = append(s.Notes, "the last status cannot be read")
		}
	}
	s.Mountpoint, s.PID, s.State = r.Mountpoint, r.PID, control.Dead
	if alive {
		s.State = control.NotResponding
		return s
	}
	lookIntoCopies(ctx, &s)
	return s
}

// Open opens the root of a mount of a workspace, by its address, whose daemon answers, and
// says how that is. What is opened is the mount itself and nothing that stands in its
// place, such as the bare directory after a lazy unmount; nil: there is none in sight.
func Open(ctx context.Context, root, address string) (*os.Root, control.Status) {
	records, _ := state.List(root) // where none can be read, none answers
	for _, r := range records {
		if r.Workspace != address || !r.Alive() {
			continue
		}
		s := Look(ctx, r)
		if s.State == control.NotResponding || s.State == control.Dead {
			continue
		}
		if dir := openMount(r); dir != nil {
			return dir, s
		}
	}
	return nil, control.Status{}
}

// openMount opens the root of the mount of a record, or nothing. The table is asked first,
// since what else is mounted there may hang; what was opened is compared once more.
func openMount(r *state.Record) *os.Root {
	table, err := mountpoint.ReadTable()
	if err != nil || !table.Shows(r.Mountpoint, r.Device) {
		return nil
	}
	dir, err := os.OpenRoot(r.Mountpoint)
	if err != nil {
		return nil
	}
	if st, err := dir.Stat("."); err == nil && isRootOf(st.Sys().(*syscall.Stat_t), r.Device) {
		return dir
	}
	dir.Close()
	return nil
}

// isRootOf says whether an inode is the root of the file system with a device number.
func isRootOf(st *syscall.Stat_t, device string) bool {
	return fmt.Sprintf("%d:%d", unix.Major(st.Dev), unix.Minor(st.Dev)) == device && fs.Ino(st.Ino) == fs.RootIno
}

// lookIntoCopies puts what the working copies of a mount whose daemon is gone hold
// into its last status: what programs did after that was taken is in no status.
func lookIntoCopies(ctx context.Context, s *control.Status) {
	s.UnsavedBytes, s.ConflictsTotal = 0, 0
	for i := range s.Parts {
		p := &s.Parts[i]
		if p.Copy != nil {
			lookIntoCopy(ctx, p)
		}
		s.UnsavedBytes += p.Unsaved.Bytes
		s.ConflictsTotal += p.Conflicts
	}
}

// lookIntoCopy does so with one, as long as ctx allows. Where that tells nothing,
// it says so.
func lookIntoCopy(ctx context.Context, p *control.Part) {
	found := make(chan func(), 1)
	go func() {
		l, err := room.Inspect(p.Copy.StateDir, 1)
		found <- func() { fillIn(p, l, err) }
	}()
	select {
	case fill := <-found:
		fill()
	case <-ctx.Done():
		p.Unsaved.Unknown = "the working copy could not be read in time; `wsmount recover` reads it"
	}
}

// fillIn is what a look into a working copy tells of its part.
func fillIn(p *control.Part, l cache.OfflineReport, err error) {
	switch {
	case err != nil:
		p.Unsaved.Unknown = "the working copy cannot be read: " + err.Error()
		return
	case l.InUse:
		p.Unsaved.Unknown = "another mount, or command, has the working copy"
		return
	}
	p.Unsaved = control.Unsaved{Files: l.Files, Names: l.Total, Bytes: l.Bytes}
	p.HeldBack, p.Conflicts = l.Held, l.Conflicts
	p.Copy.InFlight, p.Copy.Unpushed, p.Copy.UnpushedCommits, p.Copy.UnpushedSince, p.Copy.PushFails = nil, false, 0, time.Time{}, nil
	if u := l.Unpushed; u != nil {
		p.Copy.Unpushed, p.Copy.UnpushedCommits, p.Copy.UnpushedSince = true, u.Commits, u.Since
		if !u.Owed.IsZero() {
			p.Copy.PushFails = &control.Fails{Since: u.Owed, Error: u.Error}
		}
	}
}
