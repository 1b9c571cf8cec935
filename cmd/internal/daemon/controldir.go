package daemon

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/wsmount/wsmount/cmd/internal/control"
	"github.com/wsmount/wsmount/fs"
)

// maxUnsent bounds the names that .wsmount/unsent has.
const maxUnsent = 1000

// controlDir is a part's .wsmount: what an agent in the mount can read to learn
// why something failed. Whoever reads it may be in a sandbox, so it says nothing
// of where things lie on the host.
type controlDir struct {
	part   *part
	status func(*part) control.Part
	hide   *strings.Replacer // takes the places of the host out of a text
}

func (d *Daemon) controlDir(p *part) *controlDir {
	dirs := []string{d.tree.StateRoot, d.tree.Mountpoint, p.Path}
	if d.tree.host != nil {
		dirs = append(dirs, d.tree.host.Own().Dirs...)
	}
	for _, o := range d.parts {
		if o.resolved != nil && filepath.IsAbs(o.resolved.Manifest) {
			dirs = append(dirs, filepath.Dir(o.resolved.Manifest))
		}
	}
	return &controlDir{p, d.partStatus, hiding(dirs)}
}

// hiding leaves of a path below one of dirs what is below, so that a reason still names the
// file. It knows paths as they are, and as they stand in the quotes of a log and of JSON.
func hiding(dirs []string) *strings.Replacer {
	slices.SortFunc(dirs, func(a, b string) int { return len(b) - len(a) }) // a replacer tries them in order
	var pairs []string
	for _, dir := range slices.Compact(dirs) {
		if dir == "" || dir == "/" {
			continue
		}
		asGo := strconv.Quote(dir)
		asJSON, _ := json.Marshal(dir)
		for _, form := range []string{dir, asGo[1 : len(asGo)-1], string(asJSON[1 : len(asJSON)-1])} {
			pairs = append(pairs, form+"/", "", form, "a directory of the host")
		}
	}
	return strings.NewReplacer(pairs...)
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
		b, err = json.MarshalIndent(withoutPlaces(c.status(c.part)), "", "  ")
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

// withoutPlaces is a status without what is nothing but a place of the host.
func withoutPlaces(s control.Part) control.Part {
	s.Path = ""
	if s.Moved != "" {
		s.Moved = "elsewhere"
	}
	if s.Copy != nil {
		copied := *s.Copy
		copied.StateDir, s.Copy = "", &copied
	}
	return s
}

// unsent is a line for each name that the store does not have as it is here: what
// was done, path, why it waits if that is held back.
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
