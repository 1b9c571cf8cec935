package git

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/wsmount/wsmount/providers"
)

// note is what is remembered of a branch beside where it is.
type note struct {
	Pushed  string             `json:",omitempty"` // the last commit that the remote took
	Refused *providers.Refusal `json:",omitempty"`
	URL     string             `json:",omitempty"` // of its pull request
	Wanted  time.Time          `json:",omitzero"`  // since when there should be one, while there is none
}

// refuse notes a refusal: of one that repeats itself, since when.
func (n *note) refuse(r providers.Refusal) {
	if n.Refused != nil && n.Refused.Code == r.Code {
		r.Since = n.Refused.Since
	}
	n.Refused = &r
}

// want notes that a pull request is wanted; since when, if it was before.
func (n *note) want(now time.Time) {
	if n.Wanted.IsZero() {
		n.Wanted = now.UTC().Round(0)
	}
}

func (n *note) wantNone() { n.Wanted = time.Time{} }

const notesName = "branches.json"

func (r *repository) readNotes() (map[string]note, error) {
	notes := map[string]note{}
	b, err := os.ReadFile(filepath.Join(r.private, notesName))
	if errors.Is(err, fs.ErrNotExist) {
		return notes, nil
	}
	if err == nil {
		err = json.Unmarshal(b, &notes)
	}
	return notes, err
}

// note changes what is remembered of a branch. It is safe when it returns.
func (p *Provider) note(branch string, change func(*note)) error {
	p.noting.Lock()
	defer p.noting.Unlock()
	was := p.notes[branch]
	n := was
	change(&n)
	if n == was {
		return nil
	}
	if p.notes[branch] = n; n == (note{}) {
		delete(p.notes, branch)
	}
	b, err := json.Marshal(p.notes)
	if err != nil {
		return err
	}
	return p.repo.write(filepath.Join(p.repo.private, notesName), string(b)+"\n")
}

func (p *Provider) noted(branch string) note {
	p.noting.Lock()
	defer p.noting.Unlock()
	return p.notes[branch]
}
