// Package notes remembers facts about the branches of a clone that are no references: the outcome
// of a push, and of its pull request.
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

// Note has the facts about a branch.
type Note struct {
	Pushed  string             `json:",omitempty"` // the last commit that the remote took
	Refused *providers.Refusal `json:",omitempty"`
	URL     string             `json:",omitempty"` // of its pull request
	Wanted  time.Time          `json:",omitzero"`  // since when there should be one, while there is none
}

// Refuse notes a refusal; one that repeats itself keeps its first time.
func (n *Note) Refuse(r providers.Refusal) {
	if n.Refused != nil && n.Refused.Code == r.Code {
		r.Since = n.Refused.Since
	}
	n.Refused = &r
}

// Want notes that a pull request is wanted; the first time stays.
func (n *Note) Want(now time.Time) {
	if n.Wanted.IsZero() {
		n.Wanted = now.UTC().Round(0)
	}
}

// Notes are those of all branches. Its methods may be called at the same time.
type Notes struct {
	path  string
	write func(path, text string) error

	mu sync.Mutex // held while they are written; guards all below
	of map[string]Note
}

// Read reads a file, if it exists. write replaces a file in one step that lasts.
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

// Change changes the note of a branch. It is safe when Change returns.
func (a *Notes) Change(branch string, change func(*Note)) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	was := a.of[branch]
	n := was
	change(&n)
	if n == was {
		return nil
	}
	if a.of[branch] = n; n == (Note{}) { // an empty note is removed
		delete(a.of, branch)
	}
	b, err := json.Marshal(a.of)
	if err != nil {
		return err
	}
	return a.write(a.path, string(b)+"\n")
}

// Of is the note of a branch.
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
