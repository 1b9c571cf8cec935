package merge

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"

	"github.com/wsmount/wsmount/cache/internal/errno"
	"github.com/wsmount/wsmount/cache/internal/files"
	"github.com/wsmount/wsmount/cache/internal/revision"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/upload"
	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/providers"
)

// question is about a state of the content of an inode: what its hash is, and
// whether a version at the remote has the same.
type question struct {
	ino    table.Ino
	gen    uint64
	at     providers.Locator // zero: no version
	theirs providers.Version
	what   wanted
}

// wanted is what is to be found out.
type wanted uint8

const (
	askHash    wanted = iota // of the content of ino, and whether theirs is the same
	askFar                   // the hash of a version that is only at the remote
	askKeep                  // that theirs is in the history
	askNames                 // the names of a directory, which are known then if it is
	askOurs                  // whether an operation of ours left theirs
	askLines                 // what text ours and theirs become together
	askRemnant               // that what is here of partial content is a file
)

type query struct {
	question
	info providers.Info
	l    table.Link
	op   table.Attempt // of askOurs
	base *table.Remote // of askLines: what ours began from
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
	err     error // it could not be found out now
}

// maxRounds bounds how often questions may lead to more questions.
const maxRounds = 6

// inquiry is what a merge has to find out, and what it has.
type inquiry struct {
	v      *Merger
	ctx    context.Context
	remote providers.Provider // where theirs is read
	round  int                // how often questions were answered

	answers map[question]answer
	open    []query
	made    []table.Ino // content files that were made for answers
	used    []table.Ino // those that a name has got
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

// unanswered is the error of a question that stayed without an answer.
func (i *inquiry) unanswered() error {
	for _, q := range i.open {
		if a, ok := i.answers[q.question]; ok && a.err != nil {
			return errno.Translate(a.err)
		}
	}
	return nil
}

// ask answers what is known of the content of an inode, and of whether r is the same. ok
// is false when that is not known yet: the question is noted.
func (s *sides) ask(x table.Ino, r *providers.Info) (a answer, ok bool) {
	v, n := s.tx, s.tx.Inode(x)
	q := query{question: question{ino: x, gen: n.ContentVersion}, l: s.l}
	if r != nil {
		q.at, q.theirs, q.info = r.Locator, r.Version, *r
	} else if at, version, ok := v.OriginAt(x); ok && n.State == table.None {
		// The inode may have come in this very run, and not be there when the
		// question is answered.
		q = query{question: question{at: at, theirs: version, what: askFar}, l: s.l}
		q.info = providers.Info{Locator: at, Version: version}
	}
	return s.look(q)
}

func (i *inquiry) look(q query) (a answer, ok bool) {
	a, known := i.answers[q.question]
	if !known || a.err != nil {
		i.open = append(i.open, q)
	}
	return a, known && a.err == nil
}

// keptTheirs reports whether a version that is about to be overwritten is in the
// history.
func (i *inquiry) keptTheirs(l table.Link, r *providers.Info) bool {
	a, ok := i.look(query{question: question{at: r.Locator, theirs: r.Version, what: askKeep}, info: *r, l: l})
	return ok && a.kept
}

// answer finds out what was wanted.
func (i *inquiry) answer() {
	for _, q := range i.open {
		if _, done := i.answers[q.question]; done {
			continue
		}
		var a answer
		switch q.what {
		case askKeep:
			a.err = i.keepTheirs(q)
			a.kept = a.err == nil
		case askNames:
			a.count, a.err = i.countNames(q.head, q.at)
		case askOurs:
			a.same, a.err = i.isOurs(q)
		case askLines:
			a.union, a.err = i.mergeLines(q)
		case askRemnant:
			a.remnant, a.sum, a.err = i.makeRemnant(q)
		case askFar:
			a.sum, a.err = i.hashTheirs(q)
		default:
			a = i.compare(q)
		}
		if a.err != nil {
			i.v.o.Side.Log.Warn("a conflict is left for later", "path", q.at, "err", a.err)
		}
		i.answers[q.question] = a
	}
}

// keepTheirs puts a version that is about to be overwritten into the history.
// Of content that is larger than all of the history may be it is only noted.
func (i *inquiry) keepTheirs(q query) error {
	return i.v.o.Volume.Retry(i.ctx, func(ctx context.Context) error {
		err := i.v.o.Past.Keep(ctx, q.l, q.info)
		return err
	})
}

// compareBytes is the size up to which content is fetched to see whether it is
// the same; the remote's hash tells for any size.
const compareBytes = 16 << 20

// compare finds the hash of ours, and whether theirs is the same.
func (i *inquiry) compare(q query) answer {
	a := answer{}
	other, want := providers.Hasher(q.info.Digest) // nil: theirs is not known by its hash
	if a.broken, a.err = i.v.restIsGone(i.ctx, q.ino); a.broken || a.err != nil {
		return a
	}
	size, err := i.v.readLocal(i.ctx, q.ino, func(r io.Reader) error {
		h := sha256.New()
		into := io.Writer(h)
		if other != nil {
			into = io.MultiWriter(h, other)
		}
		_, err := io.Copy(into, r)
		a.sum = hex.EncodeToString(h.Sum(nil))
		return err
	})
	switch {
	case errors.Is(err, files.ErrVersionGone) || errors.Is(err, fs.ErrStale):
		a.broken = true
		a.sum = hex.EncodeToString(sha256.New().Sum(nil))
		return a
	case err != nil:
		return answer{err: err}
	case q.at.IsRoot() || q.info.Size != size || i.kind(q.ino) != q.info.Kind:
		return a
	case other != nil:
		a.same = hex.EncodeToString(other.Sum(nil)) == want
	case size <= compareBytes:
		a.same, a.err = i.sameBytes(q, a.sum)
	}
	return a
}

func (i *inquiry) kind(x table.Ino) (k providers.Kind) {
	locked := i.v.lock()
	defer locked.unlock()
	if n := locked.Inode(x); n != nil && n.IsSymlink() {
		return providers.KindSymlink
	}
	return providers.KindFile
}

// sameBytes reads theirs.
func (i *inquiry) sameBytes(q query, sum string) (bool, error) {
	theirs, err := i.hashTheirs(q)
	if files.IsElsewhere(err) {
		return false, nil // it has changed again; the next look tells
	}
	return theirs == sum, err
}

func (i *inquiry) hashTheirs(q query) (sum string, err error) {
	err = i.v.readRemoteVersion(i.ctx, i.remote, q.info, func(b []byte) {
		h := sha256.Sum256(b)
		sum = hex.EncodeToString(h[:])
	})
	return sum, err
}

// isOurs asks whether an operation of ours left a version.
func (i *inquiry) isOurs(q query) (bool, error) {
	op := q.op
	info, happened, err := i.v.o.Executor.Find(i.ctx, &upload.Operation{At: q.at, Attempt: &op})
	return happened && info.Version.Matches(q.theirs), err
}
