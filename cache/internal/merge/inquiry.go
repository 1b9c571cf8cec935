package merge

import (
	"context"
	"errors"

	"github.com/wsmount/wsmount/cache/internal/errno"
	"github.com/wsmount/wsmount/cache/internal/reconcile"
	"github.com/wsmount/wsmount/cache/internal/revision"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/providers"
)

// question is about a state of the content of an inode: its hash, and whether a version at the
// remote has the same.
type question struct {
	ino    table.Ino
	gen    uint64
	at     providers.Locator // zero: no version
	theirs providers.Version
	what   wanted
}

// wanted is the kind of a question.
type wanted uint8

const (
	askHash    wanted = iota // of the content of ino, and whether theirs is the same
	askFar                   // the hash of a version that is only at the remote
	askKeep                  // put theirs into the history
	askNames                 // the names of a directory; if that is known, they are then known too
	askOurs                  // whether an operation of ours left theirs
	askLines                 // the text that ours and theirs become together
	askRemnant               // make the local part of partial content a file
)

type query struct {
	question
	info providers.Info
	l    table.Link
	op   table.Attempt // of askOurs
	base *table.Remote // of askLines: the version that ours began from
	head revision.Held // of askNames
}

type answer struct {
	sum     string // sha256 in hex
	same    bool
	broken  bool // part of the content is nowhere any more
	kept    bool
	union   *union // nil: they stay two
	remnant *remnant
	count   int   // names in a directory that is not known
	err     error // why it could not be found out now
}

// maxRounds bounds how often questions may lead to more questions.
const maxRounds = 6

// inquiry has the questions of a merge, and their answers.
type inquiry struct {
	v      *Merger
	ctx    context.Context
	remote providers.Provider // theirs is read from it
	round  int                // how often questions were answered

	answers map[question]answer
	open    []query
	made    []table.Ino // content files that were made for answers
	used    []table.Ino // those that got a name
}

func newInquiry(ctx context.Context, v *Merger, remote providers.Provider) inquiry {
	return inquiry{v: v, ctx: ctx, remote: remote, answers: map[question]answer{}}
}

// Asks reports whether there is a question that was not put yet, and is to be.
func (i *inquiry) Asks() bool {
	if i.round >= maxRounds {
		return false
	}
	for _, q := range i.open {
		if _, put := i.answers[q.question]; !put {
			return true
		}
	}
	return false
}

// errMoving says that each answer led to another question, since the remote changed meanwhile.
var errMoving = providers.Kinded(errors.New("the remote keeps changing; try again"), providers.ErrUnavailable)

// unanswered is the error of a question that stayed without an answer.
func (i *inquiry) unanswered() error {
	for _, q := range i.open {
		switch a, put := i.answers[q.question]; {
		case !put:
			return errno.Translate(errMoving)
		case a.err != nil:
			return errno.Translate(a.err)
		}
	}
	return nil
}

func (i *inquiry) look(q query) (a answer, ok bool) {
	a, known := i.answers[q.question]
	if !known || a.err != nil {
		i.open = append(i.open, q)
	}
	return a, known && a.err == nil
}

// keptTheirs tells whether a version that is about to be overwritten is in the history.
func (i *inquiry) keptTheirs(l table.Link, r *providers.Info) reconcile.InHistory {
	a, ok := i.look(query{question: question{at: r.Locator, theirs: r.Version, what: askKeep}, info: *r, l: l})
	switch {
	case !ok:
		return reconcile.NotKept
	case !a.kept:
		return reconcile.TooLarge
	}
	return reconcile.Kept
}
