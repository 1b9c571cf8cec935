package git

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/git/internal/remote"
)

// examiner is a repository that was asked and not cloned. It answers Examine alone; there is no
// tree.
type examiner struct {
	o      Options
	remote *remote.Remote
	branch string
	closed atomic.Bool
}

var (
	_ providers.Provider = (*examiner)(nil)
	_ providers.Examiner = (*examiner)(nil)
)

// openExaminer asks the server once, as a first mount does.
func openExaminer(ctx context.Context, o Options) (*examiner, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	asks, err := o.remote()
	if err != nil {
		return nil, err
	}
	e := &examiner{o: o, remote: asks, branch: o.Branch}
	s, err := e.remote.Ask(ctx)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	if e.branch == "" {
		if e.branch, err = defaultBranch(ctx, asks, s); err != nil {
			return nil, err
		}
	}
	if _, there := s.Branch(e.branch); !there && !s.Empty() && o.Branch != "" {
		return nil, providers.Kinded(fmt.Errorf("the repository has no branch %s", e.branch), providers.ErrNotExist)
	}
	return e, nil
}

// unproved is a warning about a git daemon.
const unproved = "over git:// nothing is encrypted and the server is not authenticated: what comes may be from anybody"

// Examine implements providers.Examiner.
func (e *examiner) Examine(ctx context.Context) []providers.Finding {
	begin := e.o.Now()
	s, err := e.remote.Ask(ctx)
	if err != nil {
		return []providers.Finding{{Name: "remote", Grade: providers.Bad, Says: err.Error(), Do: "check that the server can be reached"}}
	}
	defer s.Close()
	took := e.o.Now().Sub(begin).Round(time.Millisecond)
	found := []providers.Finding{{Name: "remote", Says: fmt.Sprintf("%s answers in %v", e.o.URL, took)}}
	if remote.Scheme(e.o.URL) == "git" {
		found = append(found, providers.Finding{Name: "remote", Grade: providers.Less, Says: unproved, Do: "reach the server over https or ssh, if it has that"})
	}
	branch := providers.Finding{Name: "branch", Says: e.branch + " is empty: the first push makes it"}
	if c, there := s.Branch(e.branch); there {
		branch.Says = fmt.Sprintf("%s is at %.12s", e.branch, c)
	}
	return append(found, branch)
}

func (e *examiner) refuse(ctx context.Context, m providers.Method, l providers.Locator) error {
	if e.closed.Load() {
		return fail(ctx, m, l, providers.ErrClosed)
	}
	return fail(ctx, m, l, fmt.Errorf("it was opened without a place for a clone: %w", providers.ErrUnsupported))
}

// Capabilities implements providers.Provider.
func (e *examiner) Capabilities() providers.Capabilities { return providers.Capabilities{} }

// Stat implements providers.Provider.
func (e *examiner) Stat(ctx context.Context, l providers.Locator) (providers.Info, error) {
	return providers.Info{}, e.refuse(ctx, providers.MethodStat, l)
}

// List implements providers.Provider.
func (e *examiner) List(ctx context.Context, l providers.Locator, _ providers.ListOptions) (providers.Page, error) {
	return providers.Page{}, e.refuse(ctx, providers.MethodList, l)
}

// Read implements providers.Provider.
func (e *examiner) Read(ctx context.Context, l providers.Locator, _ providers.ReadOptions) (providers.Content, error) {
	return providers.Content{}, e.refuse(ctx, providers.MethodRead, l)
}

// Write implements providers.Provider.
func (e *examiner) Write(ctx context.Context, l providers.Locator, _ providers.Body, _ providers.WriteOptions) (providers.Info, error) {
	return providers.Info{}, e.refuse(ctx, providers.MethodWrite, l)
}

// Delete implements providers.Provider.
func (e *examiner) Delete(ctx context.Context, l providers.Locator, _ providers.DeleteOptions) error {
	return e.refuse(ctx, providers.MethodDelete, l)
}

// Mkdir implements providers.Provider.
func (e *examiner) Mkdir(ctx context.Context, l providers.Locator, _ providers.MkdirOptions) (providers.Info, error) {
	return providers.Info{}, e.refuse(ctx, providers.MethodMkdir, l)
}

// Close implements providers.Provider.
func (e *examiner) Close() error {
	e.closed.Store(true)
	return nil
}
