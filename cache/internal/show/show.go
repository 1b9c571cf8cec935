// Package show presents parts of a working copy's state as files that can only be read:
//
//	history/<path>/<time>-<id>-<change>   the content of a version, if it was kept
//	history/<revision>/<path>             the tree of a revision of a store that has some; the last are listed
//	conflicts/<path>/{base,ours,theirs}   the sides of a conflict
//
//	s := show.New(show.Options{Log: p, Remote: r, Conflicts: all, ...})
//	e, err := s.Show(ctx, "history/d/f")
//	e.Names // of its versions
//
// It knows no kernel: its user decides the mode and owner of an [Entry]. Methods of a Shower may
// be called concurrently.
package show

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/wsmount/wsmount/cache/internal/past"
	"github.com/wsmount/wsmount/providers"
)

// maxVersions bounds the versions that are shown; the log has all.
const maxVersions = 10_000

// A listing of the history is good until something changes, so that a program sees the effect of
// its own changes. One of more than long versions, which takes a while to make, is good for
// longFor even after a change.
const (
	longFor = time.Second
	long    = 1000
)

// Entry is a file, a symbolic link or a directory that is shown.
type Entry struct {
	Names  []string // of a directory: its entries, directories with a slash at the end; else nil
	Size   int64
	Time   time.Time
	Exec   bool   // it may be executed, or searched
	Target string // of a symbolic link
	// Open opens a file.
	Open func(ctx context.Context) (File, error)
}

// File is the content of a file.
type File interface {
	io.ReaderAt
	io.Closer
}

// Conflict is a conflict that waits for a decision.
type Conflict struct {
	Path  string
	Since time.Time
	Sides []Side
}

// Side is one side of a conflict.
type Side struct {
	Name string
	Size int64
	Open func(ctx context.Context) (io.ReadCloser, error)
}

// Log is the history of a working copy.
type Log interface {
	Log(ctx context.Context, f past.LogFilter) ([]past.Version, error)
	Content(id string) (r io.ReadCloser, size int64, err error)
}

// Options are the dependencies of a Shower.
type Options struct {
	Log       Log
	Changes   func() uint64 // of the working copy so far
	Remote    providers.Provider
	Conflicts func() []Conflict
	Dir       string // for copies of content without random access
	Now       func() time.Time
}

// Shower shows a working copy.
type Shower struct {
	o Options

	mu      sync.Mutex // guards the field below
	history *listing   // the last one that was made; nil: none
}

// New makes a Shower that has listed nothing.
func New(o Options) *Shower { return &Shower{o: o} }

// Show gives the entry at a path; syscall.ENOENT when there is none.
func (s *Shower) Show(ctx context.Context, path string) (Entry, error) {
	top, _, _ := strings.Cut(path, "/")
	var l *listing
	var err error
	switch top {
	case "":
		return Entry{Names: []string{"conflicts/", "history/"}}, nil
	case "history":
		l, err = s.versions(ctx)
	case "conflicts":
		l = s.conflicts()
	default:
		err = syscall.ENOENT
	}
	if err != nil {
		return Entry{}, err
	}
	if f, ok := l.files[path]; ok {
		return f, nil
	}
	names, ok := l.dirs[path]
	switch {
	case ok, path == top:
	case top == "history":
		return s.revision(ctx, strings.TrimPrefix(path, "history/"))
	default:
		return Entry{}, syscall.ENOENT
	}
	d := Entry{Names: []string{}}
	for name := range names {
		d.Names = append(d.Names, name)
	}
	if path == "history" {
		d.Names = append(d.Names, s.lastCommits(ctx)...)
	}
	slices.Sort(d.Names)
	d.Names = slices.Compact(d.Names)
	return d, nil
}

// listing is the content of one of the top directories.
type listing struct {
	at    time.Time
	of    uint64                     // Options.Changes at that time
	long  bool                       // it has more than long versions
	dirs  map[string]map[string]bool // names by path; those of directories end in a slash
	files map[string]Entry
}

func newListing() *listing {
	return &listing{dirs: map[string]map[string]bool{}, files: map[string]Entry{}}
}

// add enters a file, and the directories above.
func (l *listing) add(path string, f Entry) {
	l.files[path] = f
	for name := ""; ; name = "/" {
		dir, base := past.Split(path)
		if dir == "" {
			return
		}
		if l.dirs[dir] == nil {
			l.dirs[dir] = map[string]bool{}
		}
		l.dirs[dir][base+name] = true
		path = dir
	}
}

// versions lists the newest versions.
func (s *Shower) versions(ctx context.Context) (*listing, error) {
	of := s.o.Changes()
	s.mu.Lock()
	l := s.history
	s.mu.Unlock()
	if l != nil && (l.of == of || l.long && s.o.Now().Sub(l.at) < longFor) {
		return l, nil
	}
	list, err := s.o.Log.Log(ctx, past.LogFilter{Limit: maxVersions})
	if err != nil {
		return nil, err
	}
	l = newListing()
	l.at, l.of, l.long = s.o.Now(), of, len(list) > long
	for _, ver := range list {
		if !ver.Kept || ver.Mode&syscall.S_IFMT != syscall.S_IFREG {
			continue
		}
		l.add("history/"+ver.Path+"/"+nameOf(ver), Entry{Size: ver.Size, Time: ver.Time, Open: func(context.Context) (File, error) {
			r, _, err := s.o.Log.Content(ver.ID)
			if err != nil {
				return nil, err
			}
			return s.readable(r)
		}})
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.history = l
	return l, nil
}

// nameOf is the file name of a version. Those of a file sort by age, even within a second: ls
// shows the newest last.
func nameOf(ver past.Version) string {
	id, _ := strconv.ParseUint(ver.ID, 10, 64)
	return fmt.Sprintf("%s-%08d-%s", ver.Time.UTC().Format("20060102T150405Z"), id, ver.Change)
}

// conflicts lists the conflicts that wait for a decision.
func (s *Shower) conflicts() *listing {
	l := newListing()
	for _, c := range s.o.Conflicts() {
		for _, side := range c.Sides {
			l.add("conflicts/"+c.Path+"/"+side.Name, Entry{Size: side.Size, Time: c.Since, Open: func(ctx context.Context) (File, error) {
				r, err := side.Open(ctx)
				if err != nil {
					return nil, err
				}
				return s.readable(r)
			}})
		}
	}
	return l
}

// readable is content with random access: as it is, or from a file that it is copied to.
func (s *Shower) readable(r io.ReadCloser) (File, error) {
	if f, ok := r.(File); ok {
		return f, nil
	}
	defer r.Close()
	f, err := os.CreateTemp(s.o.Dir, "shown-")
	if err != nil {
		return nil, err
	}
	err = os.Remove(f.Name()) // before there is anything in it: a kill leaves nothing
	if err == nil {
		_, err = io.Copy(f, r)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}
