package daemon

import (
	"bytes"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/wsmount/wsmount/cache/exactjson"
	"github.com/wsmount/wsmount/cmd/internal/conceal"
	"github.com/wsmount/wsmount/cmd/internal/control"
	"github.com/wsmount/wsmount/fs"
)

// maxUnsent bounds the names in .wsmount/unsent.
const maxUnsent = 1000

// controlDir is a part's .wsmount: files that an agent in the mount can read to
// learn why something failed. The reader may be in a sandbox, so the files contain
// no path of the host, and no address of a store.
type controlDir struct {
	part   *part
	status func(*part) control.Part
	hide   *strings.Replacer // removes the host's paths from a text
}

func (d *Daemon) controlDir(p *part) *controlDir {
	return &controlDir{p, d.partStatus, conceal.Places("", append(slices.Clone(d.places), d.tree.Mountpoint))}
}

// hostPlaces finds the content of places.
func (d *Daemon) hostPlaces() []string {
	dirs := []string{d.tree.StateRoot}
	if d.tree.host != nil {
		dirs = append(dirs, d.tree.host.Own().Dirs...)
	}
	for _, p := range d.parts {
		dirs = append(dirs, p.Path)
		if p.resolved != nil && filepath.IsAbs(p.resolved.Manifest) {
			dirs = append(dirs, filepath.Dir(p.resolved.Manifest))
		}
		if p.Store != nil && p.Store.Bucket != "" { // a repository's is in the addresses of pull requests
			dirs = append(dirs, p.Store.Endpoint)
		}
	}
	return dirs
}

func (c *controlDir) List() []string {
	names := []string{"README", "status.json", "errors.log", "conflicts/", "history/"}
	if _, ok := c.part.volume.(*workingCopy); ok {
		names = append(names, "unsent")
	}
	return names
}

func (c *controlDir) Read(path string) (b []byte, err error) {
	switch path {
	case "README":
		b = c.part.readme()
	case "status.json":
		b, err = exactjson.MarshalIndent(c.status(c.part).Inside(), "", "  ")
		b = append(b, '\n')
	case "errors.log":
		b = c.part.errorLog()
	case "unsent":
		b = c.part.unsent()
	default:
		err = fs.ErrUnsupported
	}
	return []byte(c.hide.Replace(string(b))), err
}

// Harmless leaves out the names of files that were changed.
func (c *controlDir) Harmless(path string) bool {
	return slices.Contains([]string{"README", "status.json", "errors.log"}, path)
}

// unsent is a line for each name that differs from the store: the change, the path,
// and the reason if it is held back.
func (p *part) unsent() []byte {
	w, ok := p.volume.(*workingCopy)
	if !ok {
		return nil
	}
	list, total := w.Unsent(maxUnsent)
	var b bytes.Buffer
	if total > len(list) {
		fmt.Fprintf(&b, "# the first %d of %d\n", len(list), total)
	}
	for _, u := range list {
		fmt.Fprintf(&b, "%s %q", u.Change, u.Path)
		if u.Reason != "" {
			fmt.Fprintf(&b, ": %q", u.Reason)
		}
		b.WriteByte('\n')
	}
	return b.Bytes()
}
