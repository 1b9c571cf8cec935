package template

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/cmd/internal/bundle"
	"github.com/wsmount/wsmount/cmd/internal/daemon"
	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/mountspec"
	"github.com/wsmount/wsmount/mountspec/host"
)

// A Plan lists the files that publishing a workspace would write.
type Plan struct {
	Workspace *host.Resolved
	Content   *bundle.Content
	Notes     []string // for the user to know

	h Host
	p place
}

// Look collects the files of a workspace for publishing, if the host and its policy allow
// that. The Plan holds a directory open until Close.
func Look(ctx context.Context, h Host, a mountspec.Address) (*Plan, error) {
	w, err := h.Publishable(ctx, a)
	if err != nil {
		return nil, daemon.Refusal(err)
	}
	plan := &Plan{Workspace: w, h: h}
	if plan.Content, plan.p, err = h.collect(ctx, w); err != nil {
		return nil, err
	}
	if reg := w.Workspace.Publish.Registry; reg != "" {
		plan.Notes = append(plan.Notes, "it is written for this host alone, and not sent to "+strconv.Quote(reg)+", which publish.registry names")
	}
	if !w.Workspace.Publish.Template {
		plan.Notes = append(plan.Notes, "nothing can begin from it: publish.template is not true")
	}
	return plan, nil
}

// Close lets go of the workspace's directory.
func (p *Plan) Close() { p.p.root.Close() }

// collect lists the files of a workspace that may be copied. Without an error the place is open.
func (h Host) collect(ctx context.Context, w *host.Resolved) (*bundle.Content, place, error) {
	p, err := h.placeOf(ctx, w)
	if err != nil {
		return nil, p, err
	}
	keep, err := h.keep(p, w)
	if err != nil {
		p.root.Close()
		return nil, p, exit.From(err)
	}
	text, isThere, err := manifestOf(p.root, w)
	if err != nil {
		p.root.Close()
		return nil, p, refused(w, err)
	}
	o := bundle.Options{ID: w.Address.String(), Version: w.Workspace.Version, Keep: keep}
	if !isThere {
		o.Manifest = text
	}
	c, err := bundle.Collect(ctx, p.root, o)
	if err == nil {
		err = checkRefs(w.Workspace, c.List)
	}
	if err != nil {
		p.root.Close()
		return nil, p, refused(w, err)
	}
	return c, p, nil
}

// refused is the error for a workspace that cannot be copied.
func refused(w *host.Resolved, err error) error {
	var found bundle.Credentials
	var told *exit.Error
	switch {
	case errors.Is(err, context.Canceled):
		return interrupted()
	case errors.As(err, &told):
		return told
	case errors.As(err, &found):
		e := exit.New(exit.Denied, "%s: credentials stand in what would go out: %w", w.Address, err).
			Hint("take them out, or name the files in exclude of the storage")
		for _, f := range found[1:] {
			e.Details = append(e.Details, f.Path+": "+f.Reason)
		}
		return e
	}
	return exit.New(exit.Failed, "%s cannot be copied: %w", w.Address, err).Hint("name what does not belong to it in exclude of the storage")
}

// manifestOf is the text of a workspace's manifest, which is the one that was resolved, and
// whether it stands among the files, or elsewhere on the host.
func manifestOf(root *os.Root, w *host.Resolved) (text []byte, isThere bool, err error) {
	if text, err = readFile(root, bundle.Manifest); err == nil {
		isThere = true
	} else if errors.Is(err, fs.ErrNotExist) {
		text, err = os.ReadFile(w.Manifest)
	}
	if err != nil {
		return nil, false, err
	}
	ws, _, err := parse(text)
	if err != nil {
		return nil, false, err
	}
	a, err1 := ws.Marshal()
	b, err2 := w.Workspace.Marshal()
	if err := errors.Join(err1, err2); err != nil {
		return nil, false, err
	}
	if string(a) != string(b) {
		return nil, false, exit.New(exit.Conflict, "the %s among the files of %s is not the one that this host goes by", bundle.Manifest, w.Address).
			Hint("make them the same: %s", w.Manifest)
	}
	return text, isThere, nil
}

// Publish writes the bundle into the host's directory, whole or not at all, and returns its
// path and its SHA-256. A version is published once: the same again is no error, and
// another content of it is refused.
func (p *Plan) Publish(ctx context.Context) (file, sum string, err error) {
	w := p.Workspace
	dir := p.h.Bundles()
	if dir == "" {
		return "", "", exit.New(exit.Unresolvable, "there is no place for what is published").Hint("set HOME or give --config")
	}
	dir = filepath.Join(dir, w.Address.Owner, w.Address.Slug)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", "", exit.New(exit.Failed, "%w", err).Hint("make the directory of the host's registry writable")
	}
	file = filepath.Join(dir, w.Workspace.Version+".tar")
	err = writeWhole(file, func(f io.Writer) error {
		var err error
		if sum, err = p.Content.Write(ctx, f); err != nil {
			return err
		}
		switch was, err := sumOf(file); {
		case errors.Is(err, fs.ErrNotExist):
			return p.h.RecordPublished(w, file, sum)
		case err != nil:
			return err
		case was != sum:
			return exit.New(exit.Conflict, "version %s of %s is published already, with another content", w.Workspace.Version, w.Address).
				Hint("give the manifest a new version")
		}
		return errThere
	})
	if err != nil && !errors.Is(err, errThere) {
		return "", "", told(err)
	}
	return file, sum, nil
}

// told is an error with an exit code.
func told(err error) error {
	if errors.Is(err, context.Canceled) {
		return interrupted()
	}
	e := daemon.Refusal(err)
	if e.Advice == "" {
		e.Advice = "nothing was left behind: try it again when what it says is mended"
	}
	return e
}

func interrupted() error {
	return exit.New(exit.Failed, "interrupted").Hint("nothing was left behind")
}

// errThere ends a write that is not needed.
var errThere = errors.New("the file is there already")

// writeWhole makes a new file with the output of write, and syncs it to the disk. Until
// then it has no name, so that nothing is left of it however the program ends.
func writeWhole(name string, write func(io.Writer) error) error {
	dir := filepath.Dir(name)
	fd, err := unix.Open(dir, unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, 0o644)
	if err != nil {
		return &fs.PathError{Op: "make a file without a name", Path: dir, Err: err}
	}
	f := os.NewFile(uintptr(fd), name)
	defer f.Close()
	if err := write(f); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := unix.Linkat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", fd), unix.AT_FDCWD, name, unix.AT_SYMLINK_FOLLOW); err != nil {
		return &fs.PathError{Op: "link", Path: name, Err: err}
	}
	return syncDir(dir)
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

func sumOf(file string) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	sum := sha256.New()
	_, err = io.Copy(sum, f)
	return hex.EncodeToString(sum.Sum(nil)), err
}
