package bundle

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Options of Collect.
type Options struct {
	ID, Version string // of the List
	// Keep says why a path, of a directory or not, is left out with all below, or "".
	Keep func(path string, dir bool) string
	// Manifest is the manifest of a workspace whose files have none among them.
	Manifest []byte
}

// Content lists the entries that a bundle is going to have, and the paths that it leaves out.
type Content struct {
	List
	Left []LeftOut // by path

	root     *os.Root
	manifest []byte // nil: among the files
}

// LeftOut is a path that is in no bundle, and why. Of a directory nothing below is.
type LeftOut struct {
	Path   string `json:"path"`
	Reason string `json:"reason"`
}

// ErrCredential matches the refusal to pack files in which credentials stand.
var ErrCredential = errors.New("holds a credential")

// Credentials are the files in which credentials stand: path, and kind of the credential.
type Credentials []LeftOut

func (c Credentials) Error() string {
	return fmt.Sprintf("%q %v: %s", c[0].Path, ErrCredential, c[0].Reason)
}

// Is makes it match ErrCredential.
func (c Credentials) Is(target error) bool { return target == ErrCredential }

// Collect looks at each file below a directory, which stays open for Write. Other file
// systems that are mounted below are not entered. The error is Credentials where such stand
// in files that were not left out.
func Collect(ctx context.Context, root *os.Root, o Options) (*Content, error) {
	c := &collector{ctx: ctx, o: o, out: &Content{List: List{Schema: schema, ID: o.ID, Version: o.Version, Entries: []Entry{}}, root: root, manifest: o.Manifest}}
	st, err := root.Stat(".")
	if err != nil {
		return nil, err
	}
	c.device = deviceOf(st)
	if err := c.dir("."); err != nil {
		return nil, err
	}
	if o.Manifest != nil {
		if err := c.content(Manifest, bytes.NewReader(o.Manifest), false); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(c.out.Entries, func(a, b Entry) int { return strings.Compare(a.Path, b.Path) })
	slices.SortFunc(c.out.Left, func(a, b LeftOut) int { return strings.Compare(a.Path, b.Path) })
	if c.credentials != nil {
		return nil, c.credentials
	}
	return c.out, c.out.check()
}

type collector struct {
	ctx         context.Context
	o           Options
	out         *Content
	device      uint64
	bytes       int64
	credentials Credentials
}

func deviceOf(st fs.FileInfo) uint64 { return uint64(st.Sys().(*syscall.Stat_t).Dev) }

func (c *collector) dir(at string) error {
	d, err := c.out.root.Open(at)
	if err != nil {
		return err
	}
	names, err := d.Readdirnames(-1)
	if err = errors.Join(err, d.Close()); err != nil {
		return err
	}
	slices.Sort(names)
	for _, name := range names {
		if err := c.entry(path.Join(at, name)); err != nil {
			return err
		}
	}
	return nil
}

// entry adds the file or directory at a path to the list, or to the paths left out.
func (c *collector) entry(at string) error {
	if err := c.ctx.Err(); err != nil {
		return err
	}
	st, err := c.out.root.Lstat(at)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // it was removed meanwhile
	}
	if err != nil {
		return err
	}
	if reason := c.reason(at, st); reason != "" {
		c.out.Left = append(c.out.Left, LeftOut{at, reason})
		return nil
	}
	if len(c.out.Entries) == MaxEntries {
		return fmt.Errorf("there are more than %d files and directories", MaxEntries)
	}
	switch st.Mode().Type() {
	case fs.ModeDir:
		c.out.Entries = append(c.out.Entries, Entry{Path: at, Type: Dir})
		return c.dir(at)
	case fs.ModeSymlink:
		return c.link(at)
	case 0:
		return c.file(at, st)
	}
	c.out.Left = append(c.out.Left, LeftOut{at, "neither a file, nor a directory, nor a link"})
	return nil
}

// reason is why a path is left out, or "".
func (c *collector) reason(at string, st fs.FileInfo) string {
	if p := pathProblem(at); p != "" {
		return p
	}
	if reason := Stays(at); reason != "" {
		return reason
	}
	if c.o.Keep != nil {
		if reason := c.o.Keep(at, st.IsDir()); reason != "" {
			return reason
		}
	}
	switch {
	case keepsCredentials(path.Base(at)):
		return "programs keep credentials under this name"
	case st.IsDir() && deviceOf(st) != c.device:
		return "another file system"
	}
	return ""
}

func (c *collector) link(at string) error {
	target, err := c.out.root.Readlink(at)
	if err != nil {
		return err
	}
	if problem := LinkProblem(at, target); problem != "" {
		c.out.Left = append(c.out.Left, LeftOut{at, problem})
		return nil
	}
	c.out.Entries = append(c.out.Entries, Entry{Path: at, Type: Link, Target: target})
	return nil
}

func (c *collector) file(at string, st fs.FileInfo) error {
	f, err := openFile(c.out.root, at)
	if err != nil {
		return err
	}
	defer f.Close()
	return c.content(at, f, st.Mode()&0o100 != 0)
}

// content adds a file that r gives.
func (c *collector) content(at string, r io.Reader, executable bool) error {
	sum, look := sha256.New(), &scanner{}
	n, err := io.Copy(io.MultiWriter(sum, look), io.LimitReader(&patient{c.ctx, r}, MaxBytes-c.bytes+1))
	if err != nil {
		return err
	}
	if c.bytes += n; c.bytes > MaxBytes {
		return fmt.Errorf("the files are larger than %d bytes together, with %q", int64(MaxBytes), at)
	}
	if look.found != "" {
		c.credentials = append(c.credentials, LeftOut{at, "it looks like " + look.found})
	}
	c.out.Entries = append(c.out.Entries, Entry{Path: at, Type: File, Size: n, SHA256: hex.EncodeToString(sum.Sum(nil)), Executable: executable})
	return nil
}

// openFile opens a regular file, and not the target of a link.
func openFile(root *os.Root, at string) (*os.File, error) {
	named, err := root.Lstat(at)
	if err != nil {
		return nil, err
	}
	f, err := root.OpenFile(at, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	if st, err := f.Stat(); err != nil || !named.Mode().IsRegular() || !os.SameFile(named, st) {
		f.Close()
		return nil, errors.Join(err, fmt.Errorf("%q was replaced while it was read", at))
	}
	return f, nil
}

// patient is a Reader that ends with a context.
type patient struct {
	ctx context.Context
	r   io.Reader
}

func (p *patient) Read(b []byte) (int, error) {
	if err := p.ctx.Err(); err != nil {
		return 0, err
	}
	return p.r.Read(b)
}
