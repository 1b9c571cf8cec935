package git

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/git/internal/odb"
	"github.com/wsmount/wsmount/providers/git/internal/remote"
)

// mainBranch is tracked where neither the caller nor the server names one.
const mainBranch = "main"

// clone brings here what the remote has. Interrupted, it begins again.
func (p *Provider) clone(ctx context.Context) error {
	// Before anything is asked: a server forgets who does not go on.
	if p.pool = openShared(ctx, p.o.Shared, p.o.URL); p.pool != nil {
		defer func() { p.pool.close(); p.pool = nil }()
	}
	s, err := p.remote.Ask(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	branch := p.o.Branch
	if branch == "" {
		if branch, err = defaultBranch(ctx, p.remote, s); err != nil {
			return err
		}
		if !validBranch(branch) { // it becomes the name of a file here
			return fmt.Errorf("the server names %q as its branch: %w", branch, providers.ErrInvalid)
		}
	}
	if err := p.repo.make(branch); err != nil {
		return err
	}
	p.branch = branch
	switch theirs, err := p.learn(ctx, s); {
	case errors.Is(err, errNoBranch):
		if p.o.Branch != "" && !s.Empty() {
			return fmt.Errorf("%s has no branch %s: %w", p.o.URL, branch, providers.ErrNotExist)
		}
	case err != nil:
		return err
	default:
		head, err := p.repo.refs.Get(p.headRef())
		if err == nil && head.IsZero() {
			err = p.repo.refs.Update(p.headRef(), head, theirs)
		}
		if err == nil {
			err = p.repo.partial.small(ctx, theirs)
		}
		if err == nil {
			p.repo.state.First = theirs.String() // nobody else is there yet
			p.lend(theirs)
		}
		if err != nil {
			return err
		}
	}
	return p.repo.settle()
}

// defaultBranch is the branch that a server's HEAD names, there or not.
func defaultBranch(ctx context.Context, r *remote.Remote, s *remote.Session) (string, error) {
	if branch := s.Default(); branch != "" {
		return branch, nil
	}
	branch, err := r.Unborn(ctx)
	return cmp.Or(branch, mainBranch), err
}

// validBranch reports whether git takes a name for a branch (git-check-ref-format).
func validBranch(name string) bool {
	for part := range strings.SplitSeq(name, "/") {
		if part == "" || part[0] == '.' || strings.HasSuffix(part, ".lock") || strings.HasSuffix(part, ".") {
			return false
		}
	}
	odd := func(r rune) bool { return r <= ' ' || r == 0x7f || strings.ContainsRune("~^:?*[\\", r) }
	return !strings.HasPrefix(name, "-") && !strings.Contains(name, "..") && !strings.Contains(name, "@{") && name != "@" && strings.IndexFunc(name, odd) < 0 && len(name) < 200
}

// errNoBranch says that the remote has no such branch.
var errNoBranch = fmt.Errorf("the remote has no such branch: %w", providers.ErrNotExist)

// haves is how many commits a server is told of when it is asked for more.
const haves = 256

// learn brings the tracked branch here, as a session saw it.
func (p *Provider) learn(ctx context.Context, s *remote.Session) (id, error) {
	end, err := p.alone(ctx)
	if err != nil {
		return id{}, err
	}
	defer end()
	ref := originRef(p.branch)
	was, err := p.repo.refs.Get(ref)
	if err != nil {
		return id{}, err
	}
	theirs, there := s.Branch(p.branch)
	if !there {
		if !was.IsZero() {
			err = p.forget(ref, was, id{})
		}
		return id{}, firstError(err, errNoBranch)
	}
	if was == theirs {
		return theirs, nil
	}
	known := p.repo.hasCommit(theirs)
	moved, err := p.repo.partial.moving(known)
	defer moved()
	if err == nil && !known {
		err = p.receive(ctx, s, theirs, was)
	}
	if err != nil {
		return id{}, err
	}
	return theirs, p.forget(ref, was, theirs)
}

// receive fetches a commit with all that it needs.
func (p *Provider) receive(ctx context.Context, s *remote.Session, theirs, was id) error {
	head, err := p.repo.refs.Get(p.headRef())
	if err != nil {
		return err
	}
	have, err := p.repo.recent(haves, was, head)
	switch {
	case err != nil:
	case len(have) == 0:
		err = p.receiveFirst(ctx, s, theirs)
	default:
		err = p.fetchMore(ctx, s, remote.Want{Commit: theirs, Haves: have, Blobless: p.repo.partial.is.Load() && s.Filters()})
	}
	if err != nil {
		return err
	}
	if _, err := p.repo.viewOf(theirs); err != nil {
		return fmt.Errorf("the server did not send what it said: %w", err)
	}
	return nil
}

// fetchMore fetches what is wanted, and notes what it is without.
func (p *Provider) fetchMore(ctx context.Context, s *remote.Session, w remote.Want) error {
	if !w.Blobless {
		return s.Fetch(ctx, w, p.repo.objects.Receive)
	}
	if err := p.repo.partial.without(); err != nil {
		return err
	}
	return s.Fetch(ctx, w, p.repo.objects.ReceivePromised)
}

// forget moves what is known of a branch. What the remote has lost stays here.
func (p *Provider) forget(ref string, was, is id) error {
	head, err := p.repo.refs.Get(p.headRef())
	if err != nil {
		return err
	}
	if err := p.repo.leave(was, is, head); err != nil {
		return err
	}
	return p.repo.refs.Update(ref, was, is)
}

// Fetch implements providers.Syncer.
func (p *Provider) Fetch(ctx context.Context) (providers.Revision, error) {
	return do(ctx, p, providers.MethodFetch, providers.Locator{}, func() (providers.Revision, error) {
		s, err := p.remote.Ask(ctx)
		if err != nil {
			return "", gone(err)
		}
		defer s.Close()
		c, err := p.learn(ctx, s)
		if p.on() != p.branch && (err == nil || errors.Is(err, errNoBranch)) {
			c, err = p.learnOwn(ctx, s, c)
		}
		return revision(c), gone(err)
	})
}

// gone keeps a repository that is not there any more, or does not show itself,
// from looking like one that has no such branch yet.
func gone(err error) error {
	var asked *remote.Error
	if errors.As(err, &asked) && errors.Is(asked.Kind, providers.ErrNotExist) {
		return &remote.Error{Kind: providers.ErrUnavailable, Code: asked.Code, Err: errors.New(asked.Error())}
	}
	return err
}

// Adopt implements providers.Syncer.
func (p *Provider) Adopt(ctx context.Context, from, to providers.Revision) error {
	_, err := do(ctx, p, providers.MethodAdopt, providers.Locator{}, func() (struct{}, error) {
		next, err := p.commitOf(to)
		if err != nil {
			return struct{}{}, err
		}
		return struct{}{}, p.adopt(from, next)
	})
	return err
}

func (p *Provider) adopt(from providers.Revision, to id) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	head := p.now.Load().commit
	switch {
	case p.closed.Load():
		return providers.ErrClosed
	case head == to:
		return nil
	case revision(head) != from:
		return fmt.Errorf("the head is %q and not %q: %w", revision(head), from, providers.ErrConflict)
	}
	if err := p.repo.leave(head, to); err != nil {
		return err
	}
	return p.move(outcome{From: head.String(), To: to.String()}, head, to, odb.Together)
}

// Base implements providers.Syncer.
func (p *Provider) Base(ctx context.Context, a, b providers.Revision) (providers.Revision, error) {
	return do(ctx, p, providers.MethodBase, providers.Locator{}, func() (providers.Revision, error) {
		x, err := p.commitOf(a)
		if err != nil {
			return "", err
		}
		y, err := p.commitOf(b)
		if err != nil {
			return "", err
		}
		bases, err := p.repo.bases(x, y)
		if err != nil || len(bases) == 0 {
			return "", err
		}
		return revision(bases[0]), nil
	})
}
