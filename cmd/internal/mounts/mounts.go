// Package mounts finds the mounts that a state directory knows, and says how each is.
//
//	r, err := mounts.Find(root, "/mnt/ws/docs")
//	status := mounts.Look(ctx, r)
//
// It promises that finding one asks neither the mount nor its daemon, which may hang, that
// looking at one touches no mount, and that a daemon is said not to answer only if it is
// stopped or has taken control.AnswerLimit. At a terminal it names the daemon that it waits for.
package mounts

import (
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/cache/exactjson"
	"github.com/wsmount/wsmount/cmd/internal/control"
	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/cmd/internal/leftover"
	"github.com/wsmount/wsmount/cmd/internal/mountpoint"
	"github.com/wsmount/wsmount/cmd/internal/state"
	"github.com/wsmount/wsmount/cmd/internal/suggest"
	"github.com/wsmount/wsmount/cmd/internal/waiting"
	"github.com/wsmount/wsmount/cmd/internal/wrap"
	"github.com/wsmount/wsmount/fs"
)

// askEvery is how often a daemon is asked again that hangs up: it is ending, or was killed.
const askEvery = 20 * time.Millisecond

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
		return nil, err
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

// Relative is the path in a mount, without leading slash, of a place that is absolute and
// clean; "" is the mount point. It touches nothing.
func Relative(mountpoint, place string) (string, *exit.Error) {
	rel, err := filepath.Rel(mountpoint, place)
	if err != nil || rel == ".." || strings.HasPrefix(rel, "../") {
		return "", exit.New(exit.Usage, "%s does not lie in %s", wrap.OneLine(place), mountpoint).Hint("give a path in the mount")
	}
	return strings.Trim(path.Clean("/"+rel), "/"), nil
}

// Serving returns the record of a living daemon that serves a workspace at a mount point,
// or nil.
func Serving(root, workspace, mountpoint string) *state.Record {
	records, _ := state.List(root) // where none can be read, there is none
	i := slices.IndexFunc(records, func(r *state.Record) bool {
		return r.Workspace == workspace && r.Mountpoint == mountpoint && r.Alive()
	})
	if i < 0 {
		return nil
	}
	return records[i]
}

// Places are where the living daemons of some records serve each workspace, by its address:
// as a whole mount, or as a part of one, as far as the daemon has written of it.
func Places(records []*state.Record) map[string][]string {
	at := map[string][]string{}
	for _, r := range records {
		if !r.Alive() {
			continue
		}
		at[r.Workspace] = append(at[r.Workspace], r.Mountpoint)
		var s control.Status
		if text, _, err := r.Status(); err != nil || exactjson.Unmarshal(text, &s) != nil {
			continue
		}
		for _, p := range s.Parts {
			if place := filepath.Join(r.Mountpoint, p.At); place != r.Mountpoint && p.Unavailable == "" {
				at[p.Name] = append(at[p.Name], place)
			}
		}
	}
	return at
}

// better reports whether r rather than best is the record of the mount seen at a
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
			Hint("give --state-dir, or XDG_STATE_HOME, as mount had it, or ask as the user who mounted it")
	}
	err := exit.New(exit.Unresolvable, "no workspace is mounted at %s", path)
	if question := suggest.Phrase(path, known); question != "" {
		return err.Hint("%s", question)
	}
	return err.Hint("`wsmount status` lists what is mounted")
}

// Ask returns a daemon's own report of its mount. Without one the daemon is gone, or, where
// the record's process lives on, does not answer.
func Ask(ctx context.Context, r *state.Record) (s control.Status, answers bool) {
	defer waiting.For(fmt.Sprintf("waiting for the daemon of %s (pid %d) to answer", r.Mountpoint, r.PID))()
	ctx, cancel := context.WithTimeout(ctx, control.AnswerLimit)
	defer cancel()
	client := control.NewClient(r.SocketPath())
	for r.Alive() {
		s, err := client.Status(ctx)
		if err == nil {
			return s, true
		}
		if !control.HungUp(err) {
			break
		}
		select {
		case <-ctx.Done():
			return control.Status{}, false
		case <-time.After(askEvery):
		}
	}
	return control.Status{}, false
}

// LookAll looks at mounts side by side, so that several that hang take no longer than one.
func LookAll(ctx context.Context, records []*state.Record) []control.Status {
	out := make([]control.Status, len(records))
	var wg sync.WaitGroup
	for i, r := range records {
		wg.Go(func() { out[i] = Look(ctx, r) })
	}
	wg.Wait()
	return out
}

// Look returns the status of a mount: the daemon's own report, or, when it does
// not answer, its last one, marked as such.
func Look(ctx context.Context, r *state.Record) control.Status {
	s, answers := Ask(ctx, r)
	if answers {
		return s
	}
	alive := r.Alive()
	s = control.Status{Schema: control.StatusSchema, Workspace: r.Workspace, Source: r.Source, Started: r.Started,
		Version: r.Version, Log: r.Log, StateDir: r.Dir}
	if b, _, err := r.Status(); err == nil {
		if exactjson.Unmarshal(b, &s) != nil {
			s.Notes = append(s.Notes, "the last status cannot be read")
		}
	}
	s.Mountpoint, s.PID, s.State = r.Mountpoint, r.PID, control.Dead
	if alive {
		s.State = control.NotResponding
		return s
	}
	ctx, cancel := context.WithTimeout(ctx, control.AnswerLimit)
	defer cancel()
	lookIntoCopies(ctx, &s)
	return s
}

// Open opens the root of a mount of a workspace, by its address, that is ready, and returns its
// status. It opens the mount itself and nothing that stands in its place, such as
// the bare directory after a lazy unmount; nil: there is none in sight. The error is that of
// one that cannot be used.
func Open(ctx context.Context, root, address string) (*os.Root, control.Status, error) {
	table, err := mountpoint.ReadTable()
	if err != nil {
		return nil, control.Status{}, err
	}
	records, _ := state.List(root) // where none can be read, there is none
	records = slices.DeleteFunc(records, func(r *state.Record) bool {
		// Asked before anything is opened: another mount in its place may hang.
		return r.Workspace != address || !r.Alive() || !table.Shows(r.Mountpoint, r.Device)
	})
	for i, s := range LookAll(ctx, records) {
		if s.State == control.Dead {
			continue
		}
		if unusable := Usable(s); unusable != nil {
			err = unusable
		} else if dir := openMount(records[i]); dir != nil {
			return dir, s, nil
		}
	}
	return nil, control.Status{}, err
}

// openMount opens the root of the mount of a record; nil where that is gone.
func openMount(r *state.Record) *os.Root {
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

// Usable is an error if a mount is not one that can be read and written: a program that looked
// into it could wait for ever, or see the directory below it.
func Usable(s control.Status) error {
	if s.State == control.Ready {
		return nil
	}
	return exit.New(exit.Unreachable, "%s is mounted at %s, and that mount is %s", s.Workspace, s.Mountpoint, s.State).
		Hint("see `wsmount status %s`", s.Mountpoint)
}

// lookIntoCopies puts the unsaved changes of the working copies of a mount whose daemon is gone
// into its last status, which lacks changes that programs made after it.
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

// lookIntoCopy does so with one, as long as ctx allows. If it fails,
// the status says so.
func lookIntoCopy(ctx context.Context, p *control.Part) {
	found := make(chan func(), 1)
	go func() {
		l, err := leftover.Inspect(p.Copy.StateDir, 1)
		found <- func() { fillIn(p, l, err) }
	}()
	select {
	case fill := <-found:
		fill()
	case <-ctx.Done():
		p.Unsaved.Unknown = "the working copy could not be read in time; `wsmount recover` reads it"
	}
}

// fillIn puts the report of a working copy into the status of its part.
func fillIn(p *control.Part, l leftover.Report, err error) {
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
