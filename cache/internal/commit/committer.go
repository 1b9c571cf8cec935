package commit

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/wsmount/wsmount/cache/internal/files"
	"github.com/wsmount/wsmount/cache/internal/massdelete"
	"github.com/wsmount/wsmount/cache/internal/pending"
	"github.com/wsmount/wsmount/cache/internal/revision"
	"github.com/wsmount/wsmount/cache/internal/rules"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
	"github.com/wsmount/wsmount/cache/internal/upload"
	"github.com/wsmount/wsmount/providers"
)

// Volume changes the tree of a working copy.
type Volume interface {
	// Update runs do as one change of the tree. UpdateOwn does so for an operation's own changes:
	// names that differ because of them are due together with the operation's names.
	Update(do func(upload.Tx) error) error
	UpdateOwn(do func(upload.Tx) error) error
	// Report tells a person of an unexpected event.
	Report(op, path string, err error)
}

// Host is the working copy that a Committer works for. Background work and pauses end with it.
type Host interface {
	Go(f func())
	Pause(ctx context.Context, d time.Duration)
	// Patiently runs do with a context that ends when nothing has moved for too long, and returns
	// an error that says so in place of do's error then.
	Patiently(do func(ctx context.Context) error) error
	// IsClosed reports whether nothing new is to begin.
	IsClosed(*tree.View) bool
}

// Revisions keep the table in step with the head of a store of whole revisions. For any other
// store it always is.
type Revisions interface {
	// IsSynced reports whether the names of the remote that the table has are those of the
	// head. Sync makes it so.
	IsSynced(ctx context.Context, head revision.Held) (bool, error)
	Sync(ctx context.Context, head revision.Moving) error
	// CountUnpushed counts the set that has a record as a commit to push (CountOnce), and Push
	// begins to push it, if it is to be.
	CountUnpushed() error
	Push()
}

// Ignores make ignored names stay local.
type Ignores interface {
	// LearnAhead learns rules in the background, so that new names stay local at once.
	LearnAhead(*tree.View)
	// Learn loads all rules that apply to names which may go.
	Learn(ctx context.Context) error
	// Sort makes names stay local, or stay no longer.
	Sort(names []table.Link, c rules.Carriers) error
	// Bring fetches content that is to stay local.
	Bring(ctx context.Context, names []table.Link) error
}

// Judge stops a set that deletes too much.
type Judge interface {
	// IsHalted reports whether the due names delete too much, without a confirmation.
	IsHalted(*tree.View) bool
	// MayDelete decides about a set of the names that differ up to due, with the answer of the
	// rule against mass deletions: the reason why the set deletes too much ("": it does not), and
	// the directories that are not known well enough to tell. A massdelete.UnseenError asks for
	// LookInto.
	MayDelete(due uint64, reason string, unseen []table.Ino) error
	LookInto(ctx context.Context, dirs []table.Ino) error
	// Passed says that a set was committed.
	Passed(*tree.View)
}

// Names decide about names that keep a set from being taken.
type Names interface {
	// PreconditionFailed decides by the conflict policy about a name that another writer changed
	// first. nil says that the name is to be planned anew.
	PreconditionFailed(ctx context.Context, l table.Link, cause error) error
}

// Holds hold names back, and say why a name was not sent.
type Holds interface {
	Hold(l table.Link, err error)
	Of(v *tree.View, l table.Link) pending.HeldBack
}

// Content is the content of inodes.
type Content interface {
	// HydrateNameless fetches all content of a file without a local name that a program has open:
	// the remote is about to lose it. It looks at no name.
	HydrateNameless(ctx context.Context, ino table.Ino, name string) error
	// Unsendable deals with a name whose content could not be read because of cause. ErrAgain says
	// that the name has another inode now.
	Unsendable(ctx context.Context, l table.Link, cause error) error
}

// Monitor is told of progress.
type Monitor interface {
	// Advanced says that the remote took a set.
	Advanced(*tree.View)
	// Moving says that bytes of content are moving.
	Moving()
	// Ended says that a set was taken (nil), or failed.
	Ended(v *tree.View, err error)
	// Progress says how far a set is, in names.
	Progress(what string, done, total int)
}

// The stages of a Committer, in this order but for the last.
const (
	Collecting = "collecting"
	Recording  = "recording"
	Sending    = "sending"
	Noting     = "noting"
	TakingBack = "taking back"
)

// CommitterOptions are the dependencies of a Committer.
type CommitterOptions struct {
	Remote   providers.Committer
	Tree     *tree.Tree
	Queue    *pending.Queue
	Sender   *upload.Sender // resolves operations that were begun name by name
	Executor *upload.Executor
	Kept     *Kept
	Open     *files.OpenSet
	Guard    *Guard
	Head     revision.HeadLock
	Shown    revision.Rules // which names of a revision the table has

	Volume    Volume
	Host      Host
	Revisions Revisions
	Ignores   Ignores
	Judge     Judge
	Names     Names
	Holds     Holds
	Content   Content
	Monitor   Monitor

	// Take is the working copy at this moment, without Guard, Found and Progress, until release.
	// From then on content is kept for a set, see Kept.Begin.
	Take  func() (was *Moment, release func())
	NewID func(*tree.View) string // a new operation id
	// Passes reports whether the same request may succeed soon after an error, without
	// intervention, and IsFinal whether the caller that asked for a set gets the error: it does
	// not pass, or patience has ended.
	Passes, IsFinal func(err error) bool
	Context         context.Context // ends with the working copy
	Log             *slog.Logger
}

// Committer sends the dirty names as change sets: all due names go as one change, see Set. Names
// that cannot go are held back as when names go one by one, and operations that an earlier run
// began name by name are resolved name by name. The lock of the tree guards all fields that
// change.
type Committer struct {
	o CommitterOptions

	requests []*Request   // in order
	sending  bool         // a set is under way
	stirs    uint64       // Queue.Stirs when the set began; more: names left out may go by now
	moot     int          // sets in a row whose content changed before they were sent
	err      error        // why the last one failed
	old      []table.Link // names with attempts of their own
	found    Findings     // content that holds a secret
}

// Request is a commit that a caller asked for.
type Request struct {
	about  pending.Description
	due    uint64
	tried  bool
	done   chan struct{}
	report pending.Report
	err    error

	clashes []string // conflicts that were found while its set was sent
	landed  int      // names that the remote has got since then, by whichever set
}

// maxTries is how often in a row a set is made anew, or loses a name to other writers.
const maxTries = 4

// NewCommitter makes a Committer that has sent nothing.
func NewCommitter(o CommitterOptions) *Committer { return &Committer{o: o, found: Findings{}} }

// TakeUp registers a change that was begun name by name, to be resolved before any set is sent.
func (c *Committer) TakeUp(_ *tree.View, l table.Link) { c.old = append(c.old, l) }

// Commit sends the names that differ up to a place in the order, and returns when the remote has
// them or will not take them.
func (c *Committer) Commit(ctx context.Context, about pending.Description, due uint64) (pending.Report, error) {
	r := &Request{about: about, due: due, done: make(chan struct{})}
	v := c.o.Tree.Lock()
	c.o.Sender.Jobs().ForgiveAll(v)
	c.requests = append(c.requests, r)
	c.o.Queue.Stir(v)
	c.o.Tree.Unlock()
	c.o.Queue.Kick()
	var err error
	select {
	case <-r.done:
		return r.report, r.err
	case <-ctx.Done():
		err = context.Cause(ctx)
	case <-c.o.Context.Done():
		err = providers.ErrClosed
	}
	v = c.o.Tree.Lock()
	defer c.o.Tree.Unlock()
	c.withdraw(v, r)
	return pending.Report{}, err
}

func (c *Committer) withdraw(_ *tree.View, r *Request) {
	c.requests = slices.DeleteFunc(c.requests, func(other *Request) bool { return other == r })
}

// IsAsked reports whether a commit was asked for that is not done.
func (c *Committer) IsAsked(*tree.View) bool { return len(c.requests) > 0 }

// IsSending reports whether a set is under way.
func (c *Committer) IsSending(*tree.View) bool { return c.sending }

// Stopped is why the last set failed, if it did, whichever name it is about; final says that
// another try will not help.
func (c *Committer) Stopped(*tree.View) (cause error, final bool) {
	return c.err, c.err != nil && !c.o.Passes(c.err)
}

// Conflict tells the commit under way of a conflict at a path, and reports whether there is one
// that will report it.
func (c *Committer) Conflict(_ *tree.View, path string) (heard bool) {
	if !c.sending || len(c.requests) == 0 {
		return false
	}
	c.requests[0].clashes = append(c.requests[0].clashes, path)
	return true
}

// Look begins to send a set when one is due. One is under way at a time.
func (c *Committer) Look(v *tree.View) {
	if c.o.Host.IsClosed(v) {
		return
	}
	c.o.Ignores.LearnAhead(v)
	var r *Request
	if len(c.requests) > 0 {
		r = c.requests[0]
	}
	rests := c.o.Sender.IsPaused(v) && (r == nil || r.tried) // a new request does not wait for that
	if c.sending || rests || c.resolveOld(v) {
		return
	}
	due := c.o.Queue.Due(v)
	if r != nil {
		due = max(due, r.due)
	}
	first := uint64(0)
	v.Dirty(0, func(seq uint64, _ table.Link) bool { first = seq; return false })
	if r == nil && (first == 0 || first > due || c.o.Judge.IsHalted(v)) && !IsUnresolved(v) {
		return
	}
	c.Begin(v)
	if r != nil {
		r.tried = true
	}
	c.o.Host.Go(func() {
		var report pending.Report
		err := c.o.Host.Patiently(func(ctx context.Context) (err error) {
			report, err = c.Send(ctx, r, due)
			return err
		})
		c.End(r, report, err)
	})
}

// resolveOld resolves changes that were begun name by name, before the working copy got a policy
// of sets; it reports whether there are any.
func (c *Committer) resolveOld(v *tree.View) bool {
	c.old = slices.DeleteFunc(c.old, func(l table.Link) bool {
		c.o.Sender.Resolve(v, l)
		return v.Record(l).Attempt == nil
	})
	return len(c.old) > 0
}

// Begin says that a set is under way: no other begins before End. Look calls it, and so does a
// caller that sends a set itself.
func (c *Committer) Begin(v *tree.View) { c.sending, c.stirs = true, c.o.Queue.Stirs(v) }

// End answers the request of a set (nil: none), and decides about the names that were not sent.
func (c *Committer) End(r *Request, report pending.Report, err error) {
	v := c.o.Tree.Lock()
	c.sending = false
	switch {
	case err == nil:
		c.o.Sender.Reached(v)
		c.o.Monitor.Ended(v, nil)
		c.moot, c.err = 0, nil
		c.idle(v, report)
	case errors.Is(err, upload.ErrAgain):
		if c.moot++; c.moot > maxTries {
			c.o.Sender.Pause(v, upload.PauseAfter(c.moot))
		}
		c.o.Tree.Unlock()
		c.o.Queue.Kick()
		return
	case errors.Is(err, massdelete.ErrHalted):
	default:
		c.rest(v, err)
	}
	if r != nil && c.o.Context.Err() == nil && (err == nil || c.o.IsFinal(err)) {
		c.withdraw(v, r)
		report.Conflicts = pending.Paths(report.Conflicts, r.clashes)
		report.Changes, report.Committed = r.landed, r.landed > 0
		r.report, r.err = report, err
		close(r.done)
	}
	c.o.Queue.Review(v)
	c.o.Tree.Unlock()
	if err == nil {
		c.o.Queue.Arrived()
	}
	if err == nil && report.Committed {
		c.o.Revisions.Push()
	}
	c.o.Queue.Kick()
}

// idle waits for a change when a set left nothing to send: the same names would be left out again,
// unless something has stirred since the set began.
func (c *Committer) idle(v *tree.View, report pending.Report) {
	if report.Changes == 0 && c.o.Queue.Stirs(v) == c.stirs {
		c.o.Queue.Defer(v)
		c.o.Sender.Stalled(v)
	}
}

// rest makes the next set wait. An error that will not pass by itself is reported, once: no name
// is held back for it, and yet nothing goes.
func (c *Committer) rest(v *tree.View, err error) {
	if !c.o.Passes(err) && (c.err == nil || c.err.Error() != err.Error()) {
		c.o.Host.Go(func() { c.o.Volume.Report("commit", "", err) })
	}
	c.err = err
	c.o.Monitor.Ended(v, err)
	c.o.Sender.Failed(v, err)
	c.o.Sender.Pause(v, upload.PauseAfter(c.o.Sender.Backoff().Failures(v)))
}
