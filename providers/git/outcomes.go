package git

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/git/internal/odb"
)

// outcomes are the results of the last sets with an operation id. A zero result is of one that
// was refused for its base.
type outcomes struct {
	of    map[string]providers.CommitResult
	order []string
}

// outcome is a line of the file: the head is to go from one commit to another.
// It did if the next line begins at its second commit, or, for the last, if the
// head is at it.
type outcome struct {
	From, To string
	Op       string           `json:",omitempty"`
	Refused  bool             `json:",omitempty"` // and the head stays
	Entries  []providers.Info `json:",omitempty"`
}

const (
	outcomesName = "outcomes"
	outcomesKept = 256     // operations that are remembered
	outcomesMax  = 1 << 20 // bytes, above which the file is written anew
)

// readOutcomes opens the file. A last line that a loss of power has cut short is removed: its
// commit never happened.
func (r *repository) readOutcomes(head id) (*outcomes, error) {
	path := filepath.Join(r.private, outcomesName)
	b, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var lines []outcome
	good := 0
	for line := range bytes.Lines(b) {
		var o outcome
		if !bytes.HasSuffix(line, []byte{'\n'}) || json.Unmarshal(line, &o) != nil {
			break
		}
		good += len(line)
		lines = append(lines, o)
	}
	lines = happened(lines, head)
	if good != len(b) || good > outcomesMax {
		if err := r.write(path, encodeOutcomes(lines[max(0, len(lines)-outcomesKept):])); err != nil {
			return nil, err
		}
	}
	if r.log, err = os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600); err != nil {
		return nil, err
	}
	if err := odb.Sync(r.private); err != nil {
		return nil, err
	}
	known := &outcomes{of: map[string]providers.CommitResult{}}
	for _, o := range lines {
		known.learn(o)
	}
	return known, nil
}

// happened are the lines whose outcome came about.
func happened(lines []outcome, head id) []outcome {
	next := head.String()
	var good []outcome
	for _, o := range slices.Backward(lines) {
		if !o.Refused {
			if o.To != next {
				continue
			}
			next = o.From
		}
		good = append(good, o)
	}
	slices.Reverse(good)
	return good
}

func encodeOutcomes(lines []outcome) string {
	var b bytes.Buffer
	for _, o := range lines {
		line, _ := json.Marshal(o) // plain values: cannot fail
		b.Write(append(line, '\n'))
	}
	return b.String()
}

// note writes a line, which is safe when it returns.
func (r *repository) note(o outcome) error {
	if _, err := io.WriteString(r.space.Writer(r.log), encodeOutcomes([]outcome{o})); err != nil {
		return err
	}
	return r.log.Sync()
}

// learn adds an outcome that came about.
func (s *outcomes) learn(o outcome) {
	if o.Op == "" {
		return
	}
	s.of[o.Op], s.order = providers.CommitResult{}, append(s.order, o.Op)
	if !o.Refused {
		s.of[o.Op] = providers.CommitResult{Revision: providers.Revision(o.To), Committed: true, Entries: o.Entries}
	}
	if len(s.order) > outcomesKept {
		delete(s.of, s.order[0])
		s.order = slices.Clone(s.order[1:])
	}
}
