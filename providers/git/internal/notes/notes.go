// Package notes remembers of the branches of a clone what is no reference: what became of a
// push, and of its pull request.
//
//	all, err := notes.Read(path, write)
//	err = all.Change("topic", func(n *notes.Note) { n.Want(time.Now()) })
//	all.Of("topic").Wanted
package notes

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"sync"
	"time"

	"github.com/wsmount/wsmount/providers"
)

// Note is what is remembered of a branch.
type Note struct {
	Pushed  string             `json:",omitempty"` // the last commit that the remote took
	Refused *providers.Refusal `json:",omitempty"`
	URL     string             `json:",omitempty"` // of its pull request
	Wanted  time.Time          `json:",omitzero"`  // since when there should be one, while there is none
}

// Refuse notes a refusal: of one that repeats itself, since when.
func (n *Note) Refuse(r providers.Refusal) {
	if n.Refused != nil && n.Refused.Code == r.Code {
		r.Since = n.Refused.Since
	}
	n.Refused = &r
}

// Want notes that a pull request is wanted; since when, if it was before.
func (n *Note) Want(now time.Time) {
	if n.Wanted.IsZero() {
		n.Wanted = now.UTC().Round(0)
	}
}

// Notes are those of all branches. Its methods may be called at the same time.
type Notes struct {
	path  string
	write func(path, text string) error

	mu sync.Mutex // held while they are written; guards what follows
	of map[string]Note
}

// Read reads what is in a file, if it is there. write replaces a file in one step that lasts.
func Read(path string, write func(path, text string) error) (*Notes, error) {
	all := &Notes{path: path, write: write, of: map[string]Note{}}
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return all, nil
	}
	if err == nil {
		err = json.Unmarshal(b, &all.of)
	}
	return all, err
}

// Change changes what is remembered of a branch. It is safe when Change returns.
func (a *Notes) Change(branch string, change func(*Note)) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	was := a.of[branch]
	n := was
	change(&n)
	if n == was {
		return nil
	}
	if a.of[branch] = n; n == (Note{}) { // which has come to nothing
		delete(a.of, branch)
	}
	b, err := json.Marshal(a.of)
	if err != nil {
		return err
	}
	return a.write(a.path, string(b)+"\n")
}

// Of is what is remembered of a branch.
func (a *Notes) Of(branch string) Note {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.of[branch]
}

// Pushed are the last commits that the remote took, one for each branch that has one.
func (a *Notes) Pushed() (commits []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, n := range a.of {
		if n.Pushed != "" {
			commits = append(commits, n.Pushed)
		}
	}
	return commits
}
