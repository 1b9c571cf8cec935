package git

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/git/internal/odb"
	"github.com/wsmount/wsmount/providers/git/internal/refs"
)

// head is the commit that a clone shows, and the branch that it is the tip of, the tracked one or
// one of our own. A caller that moves it has a moving.
type head struct {
	repo   *repository
	now    atomic.Pointer[view]
	closed atomic.Bool
	tidier *tidier

	mu   sync.Mutex // held by a moving; guards all below
	sets *outcomes
}

// openHead is the head of a complete clone.
func openHead(r *repository, t *tidier) (*head, error) {
	h := &head{repo: r, tidier: t}
	branch, err := r.refs.Head()
	if err != nil {
		return nil, err
	}
	at, err := r.refs.Get(headRef(branch))
	if err != nil {
		return nil, err
	}
	if h.sets, err = r.readOutcomes(at); err != nil {
		return nil, err
	}
	m := h.hold()
	defer m.release()
	return h, m.show(branch, at)
}

// on is the branch that commits go to.
func (h *head) on() string { return h.now.Load().branch }

// ref is its reference.
func (h *head) ref() string { return headRef(h.on()) }

// A moving is the head while the caller holds it, until release: no other caller moves it.
type moving struct{ *head }

func (h *head) hold() moving {
	h.mu.Lock()
	return moving{h}
}

func (m moving) release() { m.mu.Unlock() }

// isAt fails if the head is not at a revision, or the provider was closed.
func (m moving) isAt(r providers.Revision) error {
	switch at := revision(m.now.Load().commit); {
	case m.closed.Load():
		return providers.ErrClosed
	case at != r:
		return fmt.Errorf("the head is %q and not %q: %w", at, r, providers.ErrConflict)
	}
	return nil
}

// show makes a commit of a branch the one that reads show.
func (m moving) show(branch string, c id) error {
	v, err := m.repo.viewOf(c)
	if err == nil {
		v.branch = branch
		m.now.Store(v)
		if !m.closed.Load() {
			m.tidier.tidy(m.repo)
		}
	}
	return err
}

// move moves the head. First the outcome is noted, and finish makes all else safe that belongs to
// it: both at the same time where possible.
func (m moving) move(o outcome, from, to id, finish func(also ...func() error) error) (err error) {
	var c *refs.Change
	err = finish(
		func() error { return m.repo.note(o) },
		func() (err error) {
			c, err = m.repo.refs.Prepare(to)
			return err
		})
	if err != nil {
		if c != nil {
			c.Drop()
		}
		return err
	}
	if err = c.Move(m.ref(), from); err != nil {
		// It may have moved without being on the disk for certain.
		if is, again := m.repo.refs.Get(m.ref()); again != nil || is != to {
			return err
		}
	}
	m.sets.learn(o)
	return errors.Join(err, m.show(m.on(), to))
}

// adopt moves the head to a commit that is local.
func (m moving) adopt(from providers.Revision, to id) error {
	at := m.now.Load().commit
	if at == to && !m.closed.Load() {
		return nil
	}
	if err := m.isAt(from); err != nil {
		return err
	}
	if err := m.repo.leave(at, to); err != nil {
		return err
	}
	return m.move(outcome{From: at.String(), To: to.String()}, at, to, odb.Together)
}

// start is adopt of a commit of another branch. Until HEAD names that, nothing has happened: the
// line in outcomes comes to nothing, and the branch's new place has no effect.
func (m moving) start(branch string, from providers.Revision, to id) error {
	if err := m.isAt(from); err != nil {
		return err
	}
	at := m.now.Load().commit
	was, err := m.repo.refs.Get(headRef(branch))
	if err != nil {
		return err
	}
	if err := m.repo.leave(was, to, at); err != nil {
		return err
	}
	if at != to {
		if err := m.repo.note(outcome{From: at.String(), To: to.String()}); err != nil {
			return err
		}
	}
	if err := m.repo.refs.Update(headRef(branch), was, to); err != nil {
		return err
	}
	if err := m.repo.refs.SetHead(branch); err != nil {
		return err
	}
	return m.show(branch, to)
}

// decide answers a set that needs only a look: it was answered before, or is for another head.
func (m moving) decide(set providers.ChangeSet) (result providers.CommitResult, known bool, err error) {
	result, known = m.sets.of[set.Op]
	switch {
	case known && result.Committed:
		result.Entries = slices.Clone(result.Entries)
		return result, true, nil
	case known:
		return result, true, providers.ErrConflict
	case set.Base == "" || set.Base == revision(m.now.Load().commit):
		return result, false, nil
	}
	if set.Op != "" {
		o := outcome{Op: set.Op, Refused: true}
		if err := m.repo.note(o); err != nil {
			return result, true, err
		}
		m.sets.learn(o)
	}
	return result, true, providers.ErrConflict
}

// tidier merges packs in the background, one run at a time.
type tidier struct {
	ctx     context.Context // ends with the provider
	stop    context.CancelFunc
	running atomic.Bool
	work    sync.WaitGroup
}

func newTidier() *tidier {
	t := &tidier{}
	t.ctx, t.stop = context.WithCancel(context.Background())
	return t
}

// tidy looks for packs to merge, after each move of the head. A failure does no harm: the old
// packs stay, and the next move tries again.
func (t *tidier) tidy(r *repository) {
	if t.running.CompareAndSwap(false, true) {
		t.work.Go(func() {
			defer t.running.Store(false)
			_ = r.objects.Repack(t.ctx)
		})
	}
}

// end waits until nothing is under way any more.
func (t *tidier) end() {
	t.stop()
	t.work.Wait()
}
