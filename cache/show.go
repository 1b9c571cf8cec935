package cache

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/wsmount/wsmount/cache/internal/past"
	"github.com/wsmount/wsmount/fs"
)

var _ fs.Shower = (*Volume)(nil)

// maxShown bounds the versions that .wsmount/history shows; Log has all.
const maxShown = 10_000

// A listing of the history is good until something changes, so that a program
// sees what it has just done. One of more than shownLong versions, which takes a
// while to make, is good for shownFor also then.
const (
	shownFor  = time.Second
	shownLong = 1000
)

// Show implements fs.Shower:
//
//	history/<path>/<time>-<id>-<change>   the content of a version, if it was kept
//	history/<revision>/<path>             the tree of a revision of a store that has some; the last are listed
//	conflicts/<path>/{base,ours,theirs}   the sides of a conflict
//
// Only the owner of the mount may read them: a version may be of a time when
// others could not.
func (v *Volume) Show(op *fs.Op, path string) (fs.Shown, error) {
	w := v.wait(op, v.o.Patience)
	defer w.close()
	top, _, _ := strings.Cut(path, "/")
	var t *shownTree
	var err error
	switch top {
	case "":
		return fs.Shown{Mode: 0o555, Names: []string{"conflicts/", "history/"}}, nil
	case "history":
		t, err = v.shownHistory(w)
	case "conflicts":
		t = v.shownConflicts()
	default:
		return fs.Shown{}, syscall.ENOENT
	}
	if err != nil {
		return fs.Shown{}, err
	}
	if path == top {
		path += "/"
	}
	if f, ok := t.files[path]; ok {
		f.UID, f.GID, f.Mode = v.o.Owner.UID, v.o.Owner.GID, 0o400
		return f, nil
	}
	names, ok := t.dirs[strings.TrimSuffix(path, "/")]
	switch {
	case ok, path == top+"/":
	case top == "history":
		return v.showPast(w, strings.TrimPrefix(path, "history/"))
	default:
		return fs.Shown{}, syscall.ENOENT
	}
	d := fs.Shown{Mode: 0o555, Names: []string{}}
	for name := range names {
		d.Names = append(d.Names, name)
	}
	if path == "history/" {
		d.Names = append(d.Names, v.lastCommits(w)...)
	}
	slices.Sort(d.Names)
	d.Names = slices.Compact(d.Names)
	return d, nil
}

// shownTree is what one of the directories shows.
type shownTree struct {
	at    time.Time
	of    uint64                     // the volume's updates at that time
	long  bool                       // it has more than shownLong versions
	dirs  map[string]map[string]bool // names by path; those of directories end in a slash
	files map[string]fs.Shown
}

func newShownTree(at time.Time) *shownTree {
	return &shownTree{at: at, dirs: map[string]map[string]bool{}, files: map[string]fs.Shown{}}
}

// add enters a file, and the directories above.
func (t *shownTree) add(path string, f fs.Shown) {
	t.files[path] = f
	for name := ""; ; name = "/" {
		dir, base := past.Split(path)
		if dir == "" {
			return
		}
		if t.dirs[dir] == nil {
			t.dirs[dir] = map[string]bool{}
		}
		t.dirs[dir][base+name] = true
		path = dir
	}
}

// shownHistory lists the newest versions.
func (v *Volume) shownHistory(ctx context.Context) (*shownTree, error) {
	locked := v.lock()
	t, of := v.shown, locked.updates
	locked.unlock()
	if t != nil && (t.of == of || t.long && v.o.Now().Sub(t.at) < shownFor) {
		return t, nil
	}
	list, err := v.Log(ctx, LogFilter{Limit: maxShown})
	if err != nil {
		return nil, err
	}
	t = newShownTree(v.o.Now())
	t.of, t.long = of, len(list) > shownLong
	for _, ver := range list {
		if !ver.Kept || ver.Mode&syscall.S_IFMT != syscall.S_IFREG {
			continue
		}
		name := "history/" + ver.Path + "/" + shownName(ver)
		id := ver.ID
		t.add(name, fs.Shown{Size: ver.Size, Mtime: ver.Time, Open: func(*fs.Op) (fs.ShownFile, error) {
			r, _, err := v.Content(id)
			if err != nil {
				return nil, err
			}
			return v.readable(r)
		}})
	}
	locked = v.lock()
	defer locked.unlock()
	v.shown = t
	return t, nil
}

// shownName is what a version is called. Those of a file sort as they came to be,
// also within a second: ls shows the newest last.
func shownName(ver Version) string {
	id, _ := strconv.ParseUint(ver.ID, 10, 64)
	return fmt.Sprintf("%s-%08d-%s", ver.Time.UTC().Format("20060102T150405Z"), id, ver.Change)
}

// shownConflicts lists the conflicts that wait for a decision.
func (v *Volume) shownConflicts() *shownTree {
	t := newShownTree(v.o.Now())
	for _, c := range v.Conflicts() {
		sides := []struct {
			name string
			side Side
			size int64
			none bool
		}{
			{"base", SideBase, c.Base.Size, c.Base.IsZero()},
			{"ours", SideOurs, c.Ours, false},
			{"theirs", SideTheirs, c.Theirs.Size, c.Theirs.IsZero()},
		}
		for _, s := range sides {
			if s.none {
				continue
			}
			t.add("conflicts/"+c.Path+"/"+s.name, fs.Shown{Size: s.size, Mtime: c.Since, Open: func(op *fs.Op) (fs.ShownFile, error) {
				w := v.wait(op, v.o.Patience)
				defer w.close()
				r, err := v.ConflictContent(w, c.Path, s.side)
				if err != nil {
					return nil, translate(w.cause(err))
				}
				return v.readable(r)
			}})
		}
	}
	return t
}

// readable is content that can be read at any place: as it is, or from a file
// that it is copied to.
func (v *Volume) readable(r io.ReadCloser) (fs.ShownFile, error) {
	if f, ok := r.(fs.ShownFile); ok {
		return f, nil
	}
	defer r.Close()
	f, err := os.CreateTemp(v.state.Path, "shown-")
	if err != nil {
		return nil, err
	}
	_, err = io.Copy(f, r)
	if err = errors.Join(err, os.Remove(f.Name())); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}
