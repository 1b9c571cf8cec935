// Package mountpoint knows the machine's mount table: where a path leads
// without asking a file system that may hang, whether a place can be mounted
// on, which programs keep a mount busy, and how to take it away.
//
// It promises never to touch files inside a FUSE mount, with one
// exception that has a time limit: Stale asks once whether a process serves it.
//
//	table, err := mountpoint.ReadTable()
//	path, err := table.Resolve("/mnt/ws")
//	if m, ok := table.At(path); ok && m.Ours() { ... }
package mountpoint

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/moby/sys/mountinfo"

	"github.com/wsmount/wsmount/cmd/internal/exit"
)

// FSType is the file system type of wsmount's own mounts.
const FSType = "fuse.wsmount"

// A Mount is one line of /proc/self/mountinfo (proc(5)).
type Mount struct {
	ID, Parent int
	Dev        string // major:minor
	Root       string // the part of the file system that is mounted; / except for bind mounts
	Path       string
	Options    string // per mount
	Type       string
	Source     string
	Super      string // per file system
}

// Ours reports whether wsmount made the mount.
func (m Mount) Ours() bool { return m.Type == FSType }

// FUSE reports whether a process serves the mount.
func (m Mount) FUSE() bool { return m.Type == "fuse" || strings.HasPrefix(m.Type, "fuse.") }

// Connection returns the number under /sys/fs/fuse/connections: the minor
// device number, for FUSE has no major of its own.
func (m Mount) Connection() string {
	_, minor, _ := strings.Cut(m.Dev, ":")
	return minor
}

// Table is the mounts that this process sees, in the order in which they were
// mounted.
type Table []Mount

// ReadTable reads the mount table of this process.
func ReadTable() (Table, error) {
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return nil, fmt.Errorf("mountpoint: %w", err)
	}
	defer f.Close()
	return parseTable(f)
}

func parseTable(r io.Reader) (Table, error) {
	all, err := mountinfo.GetMountsFromReader(r, nil)
	if err != nil {
		return nil, fmt.Errorf("mountpoint: the mount table: %w", err)
	}
	t := make(Table, 0, len(all))
	for _, m := range all {
		t = append(t, Mount{ID: m.ID, Parent: m.Parent, Dev: fmt.Sprintf("%d:%d", m.Major, m.Minor), Root: m.Root,
			Path: m.Mountpoint, Options: m.Options, Type: m.FSType, Source: m.Source, Super: m.VFSOptions})
	}
	return t, nil
}

// Unescape undoes the kernel's octal escapes of space, tab, newline and backslash.
func Unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if n, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(n))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// At returns the topmost mount whose mount point is exactly path.
func (t Table) At(path string) (Mount, bool) {
	for i := len(t) - 1; i >= 0; i-- {
		if t[i].Path == path {
			return t[i], true
		}
	}
	return Mount{}, false
}

// Around returns the mount that path lies in: the one with the longest mount
// point above it, the topmost of those.
func (t Table) Around(path string) (Mount, bool) {
	var best Mount
	found := false
	for _, m := range t {
		if Within(path, m.Path) && (!found || len(m.Path) >= len(best.Path)) {
			best, found = m, true
		}
	}
	return best, found
}

// Below returns the mounts that lie inside a mount point, not itself.
func (t Table) Below(path string) []Mount {
	var out []Mount
	for _, m := range t {
		if m.Path != path && Within(m.Path, path) {
			out = append(out, m)
		}
	}
	return out
}

// Names are the other paths by which mounts show the files at one: a bind mount shows a directory
// that has its name in another mount of the file system.
func (t Table) Names(path string) (names []string) {
	in, _ := t.Around(path)
	at := moved(path, in.Path, in.Root)
	for _, m := range t {
		if m.Dev == in.Dev && m.ID != in.ID && Within(at, m.Root) {
			names = append(names, moved(at, m.Root, m.Path))
		}
	}
	return names
}

// moved is a path of one directory in another.
func moved(path, from, to string) string {
	return filepath.Join(to, strings.TrimPrefix(path, from))
}

// Within reports whether path is dir or lies below it. Both are clean and
// absolute.
func Within(path, dir string) bool {
	return path == dir || dir == "/" || strings.HasPrefix(path, dir+"/")
}

// maxSymlinks is the kernel's own limit (path_resolution(7)).
const maxSymlinks = 40

// Resolve follows the symbolic links of a path as the kernel would, but stops
// where a FUSE mount begins: nothing inside it is asked, so that a mount whose
// daemon hangs cannot hold the caller. Missing parts stay as written.
func (t Table) Resolve(path string) (string, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", exit.New(exit.Usage, "%s: the working directory is not there: %w", path, err).Hint("change to a directory that exists, or give an absolute path")
	}
	done, rest, links := "/", strings.Split(abs[1:], "/"), 0
	for len(rest) > 0 {
		name := rest[0]
		rest = rest[1:]
		if name == "" || name == "." {
			continue
		}
		next := filepath.Join(done, name) // ".." climbs from a resolved directory, as it should
		if m, ok := t.At(next); ok && m.FUSE() {
			return filepath.Join(append([]string{next}, rest...)...), nil
		}
		target, err := os.Readlink(next)
		if err != nil { // no link, or no file: the caller will see
			done = next
			continue
		}
		if links++; links > maxSymlinks {
			return "", exit.New(exit.Usage, "%s: %w", path, errTooManyLinks).Hint("see where %s leads: its links lead back to themselves", next)
		}
		if filepath.IsAbs(target) {
			done = "/"
		}
		rest = append(strings.Split(target, "/"), rest...)
	}
	return done, nil
}

var errTooManyLinks = errors.New("too many symbolic links")
