package git

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/git/internal/plain"
	"github.com/wsmount/wsmount/providers/git/internal/remote"
	"github.com/wsmount/wsmount/providers/git/internal/shell"
	"github.com/wsmount/wsmount/providers/git/internal/space"
)

const name = "git"

// id names an object.
type id = plumbing.Hash

// Options: URL and Dir are required.
type Options struct {
	URL string // http or https, without user and query, ssh, without password, or git, without either
	Dir string // a directory of this repository's own; made if it is not there
	// Shared is a directory on the same file system that clones share, of any
	// repositories; "": there is none.
	Shared string
	// Branch is what is tracked; "": what the server's HEAD names, found once.
	Branch string
	// Credentials reveals token, or username and password; over SSH
	// ssh_private_key, which may be the only field, and ssh_passphrase if the key
	// has one. nil: there are none, and over git:// there must not be any.
	Credentials func(ctx context.Context) (map[string]string, error)
	// Refused is told that the server did not take the credentials; nil: nobody is.
	Refused   func()
	Transport http.RoundTripper // nil: http.DefaultTransport
	SSH       SSH               // for a URL of ssh
	Daemon    Daemon            // for a URL of git
	// Pulls opens pull requests at the server's API; nil: there are none.
	Pulls Pulls
	Clone string // how the clone is made; one that has all blobs stays so
	// MakeRoom gives up what can be had again for n bytes on the full disk of Dir, and
	// reports whether it did; nil: nothing can be. Any goroutine may call it.
	MakeRoom func(n int64) bool
	Email    string           // of commits without an author; "": wsmount@localhost
	Now      func() time.Time // nil: time.Now
}

// SSH is how a server is reached over SSH: the zero value trusts no server.
type SSH = shell.Options

// Daemon is how a git daemon is reached, which nobody can believe.
type Daemon = plain.Options

// Provider is a clone. Make it with Open.
type Provider struct {
	o      Options
	repo   *repository
	remote *remote.Remote
	branch string
	now    *atomic.Pointer[view] // what reads show
	closed atomic.Bool

	mu   sync.Mutex // held while the head moves; guards what follows
	sets *outcomes

	noting sync.Mutex // held while notes changes, and guards it
	notes  map[string]note

	tidier *tidier

	pool *shared       // while the clone is made, if clones share anything
	talk chan struct{} // holds a token while a reference of the remote is learnt
}

var _ interface {
	providers.Provider
	providers.Committer
	providers.Snapshotter
	providers.Pusher
	providers.Syncer
	providers.Differ
	providers.Submoduler
	providers.Rebaser
	providers.Brancher
	providers.Inspector
	providers.Cloner
} = (*Provider)(nil)

// Open opens the clone in o.Dir. If there is none, it is made, which asks the
// remote; else nothing is asked.
func Open(ctx context.Context, o Options) (*Provider, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Branch != "" && !validBranch(o.Branch) {
		return nil, fmt.Errorf("branch %q: %w", o.Branch, providers.ErrInvalid)
	}
	p := &Provider{o: o, now: &atomic.Pointer[view]{}, talk: make(chan struct{}, 1), tidier: newTidier()}
	var err error
	if p.remote, err = o.remote(); err != nil {
		return nil, err
	}
	disk := space.Disk{MakeRoom: o.MakeRoom}
	err = disk.While(func() (err error) {
		p.repo, err = openRepository(o.Dir, o.URL, disk)
		return err
	})
	if err != nil {
		return nil, err
	}
	p.repo.large = newLarge(p.repo, p.remote, o)
	p.repo.partial.from(p.remote, o)
	if err := p.begin(ctx); err != nil {
		p.tidier.end()
		p.repo.partial.end()
		p.repo.close()
		return nil, err
	}
	p.repo.partial.begin()
	return p, nil
}

func (o Options) remote() (*remote.Remote, error) {
	return remote.New(o.URL, remote.Options{Credentials: o.Credentials, Transport: o.Transport, SSH: o.SSH, Git: o.Daemon, Now: o.Now})
}

// begin clones what was not cloned to the end, and finds the head.
func (p *Provider) begin(ctx context.Context) error {
	if !p.repo.state.Cloned {
		if err := p.clone(ctx); err != nil {
			return err
		}
	}
	p.branch = p.repo.state.Branch
	if p.o.Branch != "" && p.o.Branch != p.branch {
		return fmt.Errorf("%s is a clone of branch %s and not of %s: %w", p.o.Dir, p.branch, p.o.Branch, providers.ErrInvalid)
	}
	on, err := p.repo.refs.Head()
	if err != nil {
		return err
	}
	p.now.Store(&view{branch: on})
	head, err := p.repo.refs.Get(p.headRef())
	if err != nil {
		return err
	}
	if p.notes, err = p.repo.readNotes(); err != nil {
		return err
	}
	if p.sets, err = p.repo.readOutcomes(head); err != nil {
		return err
	}
	if err := p.sweep(); err != nil {
		return err
	}
	return p.show(head)
}

// alone has one fetch or push under way at a time. The error is ctx's.
func (p *Provider) alone(ctx context.Context) (end func(), err error) {
	select {
	case p.talk <- struct{}{}:
		return func() { <-p.talk }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// on is the branch that commits go to: the tracked one, or one of our own.
func (p *Provider) on() string {
	if v := p.now.Load(); v != nil {
		return v.branch
	}
	return p.branch
}

func (p *Provider) headRef() string { return headRef(p.on()) }

func headRef(branch string) string { return "refs/heads/" + branch }

func originRef(branch string) string { return "refs/remotes/origin/" + branch }

// Capabilities implements providers.Provider.
func (p *Provider) Capabilities() providers.Capabilities { return capabilities() }

// maxFile is the largest file that git is given: no public server takes more. What
// goes through LFS may be larger.
const maxFile = 100 << 20

func capabilities() providers.Capabilities {
	all := providers.GuardAtomic
	return providers.Capabilities{
		Writable: true, Durable: true, StrictTree: true, Symlinks: true, ListComplete: true, RecursiveList: true, ConcurrentWriters: true,
		Names: providers.NameLimits{DotGit: true}, Attributes: providers.AttrExec, MaxSize: maxFile, LargerSome: true,
		Conditions: providers.Conditions{Create: all, Replace: all, Delete: all, Copy: all, Move: all, SetAttr: all},
		Abilities: providers.AbilityCommit | providers.AbilitySnapshot | providers.AbilityPush | providers.AbilitySync | providers.AbilityRebase | providers.AbilityBranch |
			providers.AbilityInspect | providers.AbilityDiffer | providers.AbilitySubmodule,
	}
}

// Close implements providers.Provider. The clone stays.
func (p *Provider) Close() error {
	if p.closed.Swap(true) {
		return nil
	}
	p.repo.partial.end() // also what a commit waits for
	p.mu.Lock()          // a commit under way ends first
	defer p.mu.Unlock()
	p.tidier.end()
	return p.repo.close()
}

// do is the way of every verb.
func do[R any](ctx context.Context, p *Provider, m providers.Method, l providers.Locator, verb func() (R, error)) (R, error) {
	var none R
	err := ctx.Err()
	if p.closed.Load() {
		err = providers.ErrClosed
	}
	if err != nil {
		return none, fail(ctx, m, l, err)
	}
	result, err := verb()
	if err != nil {
		if err = fail(ctx, m, l, err); errors.Is(err, providers.ErrUnauthenticated) && p.o.Refused != nil {
			p.o.Refused()
		}
		return none, err
	}
	return result, nil
}

// revision is how a commit is named outside.
func revision(c id) providers.Revision {
	if c.IsZero() {
		return ""
	}
	return providers.Revision(c.String())
}

// commitOf is the commit of a revision that is here; ErrNotExist for another.
func (p *Provider) commitOf(r providers.Revision) (id, error) {
	if plumbing.IsHash(string(r)) {
		if c := plumbing.NewHash(string(r)); c.String() == string(r) && p.repo.hasCommit(c) {
			return c, nil
		}
	}
	return id{}, fmt.Errorf("revision %q: %w", r, providers.ErrNotExist)
}
