package template

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/wsmount/wsmount/cmd/internal/bundle"
	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/cmd/internal/manifestfile"
	"github.com/wsmount/wsmount/mountspec"
)

// Options of Begin.
type Options struct {
	From    string // @owner/slug, or the path of a bundle
	Dir     string // absolute; missing, or empty
	ID      mountspec.Address
	OwnerID string
	File    manifestfile.Options
	Now     func() time.Time
}

// Begun is a workspace that was begun from another.
type Begun struct {
	Workspace *mountspec.Workspace
	Manifest  string           // path
	Left      []bundle.LeftOut // of Begin from an address: files that were not copied
	Notes     []string         // for the user to know
	Undo      func()           // removes the new files, and directories that are empty then
}

// Begin makes a directory a workspace that begins with the files of another one. The
// directory appears as a whole, or not at all.
func Begin(ctx context.Context, h Host, o Options) (*Begun, error) {
	base, err := manifestfile.New(o.Dir, o.ID, o.OwnerID, o.File)
	if err != nil {
		return nil, err
	}
	n, err := newDir(o.Dir)
	if err != nil {
		return nil, err
	}
	defer n.close()
	out := &Begun{Manifest: filepath.Join(o.Dir, bundle.Manifest)}
	list, sum, err := out.fill(ctx, h, o, n.root)
	if err == nil {
		err = out.declare(h, o, base, n.root, list, sum)
	}
	if err == nil {
		err = ctx.Err()
	}
	if err == nil {
		err = n.appear()
	}
	if err != nil {
		n.discard()
		return nil, told(err)
	}
	out.Undo = func() { n.undo(list) }
	return out, nil
}

// fill puts the template's files into a directory.
func (b *Begun) fill(ctx context.Context, h Host, o Options, into *os.Root) (*bundle.List, string, error) {
	if !strings.HasPrefix(o.From, "@") {
		f, err := os.Open(o.From)
		if err != nil {
			return nil, "", exit.New(exit.Unresolvable, "%w", err).Hint("--from is an address, @owner/slug, or a file that `wsmount publish` wrote")
		}
		defer f.Close()
		l, sum, err := bundle.Unpack(ctx, f, into)
		if errors.Is(err, bundle.ErrDamaged) {
			err = exit.New(exit.Manifest, "%s: %w", o.From, err).Hint("get it again from where it was published")
		}
		return l, sum, err
	}
	a, err := mountspec.ParseAddress(o.From)
	if err != nil {
		return nil, "", exit.New(exit.Usage, "%w", err).Hint("for example --from @acme/starter")
	}
	w, err := h.Template(ctx, a, o.ID)
	if err != nil {
		return nil, "", err
	}
	c, p, err := h.collect(ctx, w)
	if err != nil {
		return nil, "", err
	}
	defer p.root.Close()
	b.Left = c.Left
	return through(ctx, c, into)
}

// through copies the files as a bundle, so that both ways in are checked alike.
func through(ctx context.Context, c *bundle.Content, into *os.Root) (*bundle.List, string, error) {
	from, to := io.Pipe()
	written := make(chan error, 1)
	go func() {
		_, err := c.Write(ctx, to)
		to.CloseWithError(err)
		written <- err
	}()
	l, sum, err := bundle.Unpack(ctx, from, into)
	from.CloseWithError(err)
	if failed := <-written; failed != nil && (err == nil || errors.Is(err, failed)) {
		err = failed
	}
	return l, sum, err
}

// declare replaces the template's manifest by that of the new workspace.
func (b *Begun) declare(h Host, o Options, base *mountspec.Workspace, in *os.Root, l *bundle.List, sum string) error {
	was, err := readFile(in, bundle.Manifest)
	if err != nil {
		return err
	}
	t, body, err := parse(was)
	if err != nil {
		return err
	}
	if t.ID.String() != l.ID || t.Version != l.Version {
		return exit.New(exit.Manifest, "the bundle is of %s %s, and the manifest in it of %s %s", l.ID, l.Version, t.ID, t.Version).
			Hint("get it again from where it was published")
	}
	isFile := !strings.HasPrefix(o.From, "@")
	if unlisted := isFile && t.Publish.Template && t.Publish.Visibility == "unlisted" && t.ID != o.ID; !unlisted { // its holder was given it
		if err := h.MayBegin(t, o.ID, o.From); err != nil {
			return err
		}
	}
	if err := checkRefs(t, *l); err != nil {
		return err
	}
	own := !isFile && t.ID.Owner == base.ID.Owner && t.Owner.ID == base.Owner.ID // a file's author is not known
	if b.Workspace, b.Notes, err = newManifest(base, t, own, mountspec.Origin{ID: t.ID, Version: t.Version, SHA256: sum}, o.Now()); err != nil {
		return err
	}
	if o.File.Storage != nil {
		b.Notes = append(b.Notes, fmt.Sprintf("the files are in %[1]s only, and its storage is another place: to bring them there, register it (`wsmount registry add %[1]s`), mount it (`wsmount %[2]s MOUNTPOINT`), and `cp -a %[1]s/. MOUNTPOINT`", o.Dir, o.ID))
	}
	if strings.TrimSpace(body) == "" || body == manifestfile.Body(t) {
		body = "" // it was not written by a person
	}
	text, err := manifestfile.Text(b.Workspace, body)
	if err != nil {
		return err
	}
	return in.WriteFile(bundle.Manifest, text, 0o644)
}
