package daemon

import (
	"cmp"
	"path"
	"strings"

	"github.com/wsmount/wsmount/cmd/internal/control"
	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/cmd/internal/mountpoint"
)

// layout is the places of the parts of a mount. A part comes after the one that it is mounted in.
type layout struct {
	mountpoint string
	parts      []*part
}

func (d *Daemon) layout() layout { return layout{d.tree.Mountpoint, d.parts} }

// nest sets the parts that are mounted right inside each part.
func nest(parts []*part) {
	for _, p := range parts {
		var in *part
		for _, other := range parts {
			if other != p && mountpoint.Within("/"+p.At, "/"+other.At) && (in == nil || len(other.At) > len(in.At)) {
				in = other
			}
		}
		if in != nil {
			in.inside = append(in.inside, p)
		}
	}
}

// nested lists the parts mounted right inside a part, with their present state.
func (p *part) nested() (out []control.Nested) {
	for _, c := range p.inside {
		n := control.Nested{At: strings.Trim(strings.TrimPrefix(c.At, p.At), "/"), Workspace: c.Name}
		switch {
		case c.Unavailable != "":
			n.State = "unavailable"
		case c.closed() != "":
			n.State = "closed"
		case c.readOnly() != "":
			n.State = "read-only"
		}
		out = append(out, n)
	}
	return out
}

// in returns the part that a path of the mount lies in, and the path in the part.
func (l layout) in(at string) (best *part, rel string) {
	at = strings.Trim(path.Clean("/"+at), "/")
	for _, p := range l.parts {
		if (p.At == "" || at == p.At || strings.HasPrefix(at, p.At+"/")) && (best == nil || len(p.At) > len(best.At)) {
			best = p
		}
	}
	return best, strings.Trim(strings.TrimPrefix(at, best.At), "/")
}

// locate returns the working copy that a path of the mount lies in, and the path in it.
func (l layout) locate(at string) (*part, *workingCopy, string, error) {
	best, rel := l.in(at)
	w, ok := best.volume.(*workingCopy)
	if !ok {
		return nil, nil, "", exit.New(exit.Failed, "%s lies in no working copy: %s keeps no history and has no conflicts", path.Clean("/"+at), cmp.Or(best.Provider, best.name)).
			Hint("`wsmount status %s` shows the parts", l.mountpoint)
	}
	if err := best.mayRead(); err != nil {
		return nil, nil, "", err
	}
	return best, w, rel, nil
}

// reach returns the parts that an event to a path concerns, the deepest first.
func (l layout) reach(at string) ([]*part, error) {
	at = strings.Trim(at, "/")
	var out []*part
	for i := len(l.parts) - 1; i >= 0; i-- {
		if p := l.parts[i]; at == "" || p.At == at {
			out = append(out, p)
		}
	}
	if len(out) == 0 {
		return nil, exit.New(exit.Unresolvable, "no part of this mount is at /%s", at).
			Hint("`wsmount status %s` lists the parts", l.mountpoint)
	}
	return out, nil
}

// copies returns the working copies that a call to a path concerns, the deepest
// first.
func (l layout) copies(at string) ([]*part, error) {
	reached, err := l.reach(at)
	if err != nil {
		return nil, err
	}
	var out []*part
	for _, p := range reached {
		if p.syncer != nil {
			out = append(out, p)
		}
	}
	if len(out) == 0 {
		return nil, exit.New(exit.Failed, "%s has no working copy: what is written to a directory of this machine is there at once",
			"/"+strings.Trim(at, "/")).Hint("`wsmount status %s` shows the parts", l.mountpoint)
	}
	return out, nil
}

// readable returns the working copies of a mount that are not closed. notes name the
// closed ones; the error is set only if there are no others.
func (l layout) readable() (parts []*part, notes []string, err error) {
	all, err := l.copies("")
	if err != nil {
		return nil, nil, err
	}
	for _, p := range all {
		if refused := p.mayRead(); refused != nil {
			notes, err = append(notes, refused.Error()), refused
			continue
		}
		parts = append(parts, p)
	}
	if len(parts) > 0 {
		err = nil
	}
	return parts, notes, err
}
