package doctor

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/cache"
	"github.com/wsmount/wsmount/cmd/internal/clone"
	"github.com/wsmount/wsmount/cmd/internal/daemon"
	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/cmd/internal/leftover"
	"github.com/wsmount/wsmount/cmd/internal/state"
	"github.com/wsmount/wsmount/mountspec"
	"github.com/wsmount/wsmount/mountspec/host"
)

// Configuration checks the host configuration as it was loaded, or why not: of an invalid one
// it has every finding.
func Configuration(cfg *host.Config, err error) []Check {
	var found mountspec.Findings
	switch {
	case errors.As(err, &found):
		var out []Check
		for _, f := range found {
			does := f.Hint
			f.Hint = ""
			out = append(out, Check{Name: "configuration", Level: Problem, Says: f.String(), Do: does, Code: exit.From(err).Code})
		}
		return out
	case err != nil:
		return []Check{refused("configuration", err)}
	case cfg.Path == "":
		return []Check{ok("configuration", "there is none; only what is registered is trusted")}
	}
	return []Check{ok("configuration", "%s", cfg.Path)}
}

// Registry checks that the registry can be read.
func Registry(entries []host.Entry, err error) Check {
	if err != nil {
		return refused("registry", err)
	}
	for _, e := range entries {
		if e.Damaged != "" {
			return problem("registry", "`wsmount registry remove` it, and register the workspace again", "%s: the entry of %s is damaged; the others count", e.Source, e.Damaged)
		}
	}
	return ok("registry", "registered workspaces: %d", len(entries))
}

// State checks the state directory.
func State(root string, err error) []Check {
	if err != nil {
		return []Check{refused("state", err)}
	}
	if err := state.CheckPrivate(root); err != nil {
		return []Check{refused("state", err)}
	}
	if err := unix.Access(existing(root), unix.W_OK|unix.X_OK); err != nil {
		return []Check{problem("state", "give --state-dir a directory that you may write", "%s cannot be written: %v", existing(root), err)}
	}
	if fsName, is := state.Volatile(root); is {
		return []Check{note("state", "give --state-dir a directory on a disk", "%s lies on %s and does not outlive the machine", root, fsName)}
	}
	return []Check{ok("state", "%s", root)}
}

// existing is the nearest directory above a path that exists.
func existing(path string) string {
	for {
		if _, err := os.Stat(path); err == nil || !errors.Is(err, fs.ErrNotExist) || path == filepath.Dir(path) {
			return path
		}
		path = filepath.Dir(path)
	}
}

// Workspace checks the result of daemon.Resolve, which is how a mount begins:
// the tree and, where the mount would refuse, the error. The tree may be given
// together with an error about the mount point.
func Workspace(t *daemon.Tree, err error) []Check {
	var out []Check
	for _, s := range daemon.Steps(t, err) {
		out = append(out, ok("resolve", "%s", s))
	}
	if t != nil {
		for _, s := range t.Sources {
			out = append(out, source(s)...)
			out = append(out, kept(t.StateRoot, s)...)
			for _, err := range []error{t.LostCommits(s), t.OthersUnsaved(s)} {
				if err != nil {
					out = append(out, refused("part /"+s.At, err))
				}
			}
		}
		if err == nil && t.Mountpoint != "" {
			out = append(out, place(t))
		}
	}
	if err != nil {
		out = append(out, everything("workspace", err)...)
	}
	return out
}

func place(t *daemon.Tree) Check {
	switch {
	case t.Stale:
		return note("mountpoint", "nothing: the next mount takes it away", "%s has a mount whose daemon is gone", t.Mountpoint)
	case t.Mounted:
		return ok("mountpoint", "%s is mounted there already", t.Name)
	}
	if dir, err := os.ReadDir(t.Mountpoint); err == nil && len(dir) > 0 {
		return note("mountpoint", "choose an empty directory if they are to be seen", "%s is not empty; what is in it is hidden while mounted", t.Mountpoint)
	}
	return ok("mountpoint", "%s", t.Mountpoint)
}

// source checks one part of the tree.
func source(s daemon.Source) []Check {
	name := "part /" + s.At
	if s.Unavailable != "" {
		return []Check{note(name, "see `wsmount resolve --explain`", "optional, and not there: %s", s.Unavailable)}
	}
	out := []Check{ok(name, "%s, %s, %s %s", s.Name, s.Provider, s.Mode, s.Path)}
	if s.ReadOnly != "" {
		out = append(out, note(name, "nothing, if that is what is wanted", "read-only: %s", s.ReadOnly))
	}
	if s.Unverified {
		out = append(out, note(name, "`wsmount registry add` its manifest", "unverified: the manifest is not registered"))
	}
	if s.Path != "" {
		out = append(out, localRoot(name, s))
	}
	return out
}

// kept checks that the working copy of a part, and its commits that are not pushed, can be read, if
// there are any.
func kept(root string, s daemon.Source) []Check {
	if !s.Cached {
		return nil
	}
	dir, err := state.Place(root, s.Place[0], s.Place[1], s.Place[2])
	var r leftover.Report
	if err == nil {
		r, err = leftover.Inspect(dir, 1)
	}
	if errors.Is(err, cache.ErrDamaged) { // other checks, or the mount, report the rest
		return []Check{problem("part /"+s.At, leftover.Advice(dir, err), "%v", err)}
	}
	if err == nil && len(r.Branches) > 0 {
		err = clone.Verify(dir)
	}
	if err == nil || len(r.Branches) == 0 {
		return nil
	}
	return []Check{problem("part /"+s.At, "`wsmount recover export "+dir+" DIR` copies what can be read", "commits that are not pushed (%d) are damaged: %v", r.Unpushed.Commits, err)}
}

func localRoot(name string, s daemon.Source) Check {
	var st unix.Statfs_t
	err := unix.Statfs(s.Path, &st)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return note(name, "nothing: mount makes it", "%s does not exist yet", s.Path)
	case err != nil:
		return Check{Name: name, Level: Problem, Says: s.Path + ": " + err.Error(), Do: "check the directory", Code: exit.Failed}
	}
	if err := unix.Access(s.Path, unix.R_OK|unix.X_OK); err != nil {
		return problem(name, "let this user read the directory", "%s cannot be read: %v", s.Path, err)
	}
	if err := unix.Access(s.Path, unix.W_OK); err != nil && s.ReadOnly == "" {
		return note(name, "let this user write to the directory, or mount with --read-only", "%s cannot be written: %v", s.Path, err)
	}
	return ok(name, "%s: %d MiB free", s.Path, st.Bavail*uint64(st.Bsize)>>20)
}
