package git

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/git/internal/notes"
	"github.com/wsmount/wsmount/providers/git/internal/plain"
	"github.com/wsmount/wsmount/providers/git/internal/refs"
	"github.com/wsmount/wsmount/providers/git/internal/remote"
	"github.com/wsmount/wsmount/providers/git/internal/shell"
	"github.com/wsmount/wsmount/providers/git/internal/space"
)

const name, notesName = "git", "branches.json"

// id names an object.
type id = plumbing.Hash

// Options: URL and Dir are required.
type Options struct {
	URL string // http or https, without user and query, ssh, without password, or git, without either
	Dir string // a directory of this repository's own; made if it is missing
	// Shared is a directory on the same file system that clones share, of any
	// repositories; "": there is none.
	Shared string
	// Branch is the tracked branch; "": that of the server's HEAD, found once.
	Branch string
	// Credentials reveals token, or username and password; over SSH
	// ssh_private_key, which may be the only field, and ssh_passphrase if the key
	// has one. nil: there are none, and over git:// there must not be any.
	Credentials func(ctx context.Context) (map[string]string, error)
	// Refused is called when the server did not take the credentials; nil: no call.
	Refused   func()
	Transport http.RoundTripper // nil: http.DefaultTransport
	SSH       SSH               // for a URL of ssh
	Daemon    Daemon            // for a URL of git
	// Pulls opens pull requests at the server's API; nil: there are none.
	Pulls Pulls
	Clone string // how the clone is made; one that has all blobs stays so
	// Receiving is called during a fetch, with the number of objects so far and in all; nil: no call.
	Receiving func(done, total int)
	// MakeRoom gives up content that can be fetched again, for n bytes on the full disk of Dir,
	// and reports whether it did; nil: nothing can be. It is called from any goroutine.
	MakeRoom func(n int64) bool
	Email    string           // of commits without an author; "": wsmount@localhost
	Now      func() time.Time // nil: time.Now
}

// SSH is how a server is reached over SSH: the zero value trusts no server.
type SSH = shell.Options

// Daemon is how a git daemon is reached, which cannot prove its identity.
type Daemon = plain.Options

// Provider is a clone. Make it with Open.
type Provider struct {
	o      Options
	repo   *repository
	origin *origin
	head   *head
	sets   committer
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

// Open opens the clone in o.Dir. A missing clone is made, which asks the remote; else no request
// is sent.
func Open(ctx context.Context, o Options) (*Provider, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Branch != "" && !refs.ValidBranch(o.Branch) {
		return nil, fmt.Errorf("branch %q: %w", o.Branch, providers.ErrInvalid)
	}
	asked, err := o.remote()
	if err != nil {
		return nil, err
	}
	disk := space.Disk{MakeRoom: o.MakeRoom}
	p := &Provider{o: o}
	err = disk.While(func() (err error) {
		p.repo, err = openRepository(o.Dir, o.URL, disk)
		return err
	})
	if err != nil {
		return nil, err
	}
	p.repo.objects.OnReceive(o.Receiving)
	p.origin = &origin{o: o, repo: p.repo, remote: asked, talk: make(chan struct{}, 1)}
	p.repo.large = newLarge(p.repo, asked, o)
	p.repo.partial.From(o.blobsOf(asked, p.repo))
	t := newTidier()
	if err := p.begin(ctx, t); err != nil {
		t.end()
		p.repo.partial.End()
		p.repo.close()
		return nil, err
	}
	p.repo.partial.Begin()
	return p, nil
}

func (o Options) remote() (*remote.Remote, error) {
	return remote.New(o.URL, remote.Options{Credentials: o.Credentials, Transport: o.Transport, SSH: o.SSH, Git: o.Daemon, Now: o.Now})
}

// begin clones if the clone is unfinished, or has lost its head, and finds the head.
func (p *Provider) begin(ctx context.Context, t *tidier) (err error) {
	if _, _, lost := (&archive{}).heads(p.o.Dir); !p.repo.state.Cloned || errors.Is(lost, providers.ErrCorrupt) {
		if err := p.origin.clone(ctx); err != nil {
			return err
		}
	}
	branch := p.repo.state.Branch
	if p.o.Branch != "" && p.o.Branch != branch {
		return fmt.Errorf("%s is a clone of branch %s and not of %s: %w", p.o.Dir, branch, p.o.Branch, providers.ErrInvalid)
	}
	p.origin.branch = branch
	if p.origin.notes, err = notes.Read(filepath.Join(p.repo.private, notesName), p.repo.write); err != nil {
		return err
	}
	if p.head, err = openHead(p.repo, t); err != nil {
		return err
	}
	p.origin.head = p.head
	p.sets = committer{repo: p.repo, head: p.head, email: p.o.Email, now: p.o.Now}
	m := p.head.hold()
	defer m.release()
	return p.repo.large.sweep(m)
}

func headRef(branch string) string { return "refs/heads/" + branch }

func originRef(branch string) string { return "refs/remotes/origin/" + branch }

// Capabilities implements providers.Provider.
func (p *Provider) Capabilities() providers.Capabilities { return capabilities() }

// maxFile is the largest file that git is given: no public server takes more. Files in LFS may be
// larger.
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
	if p.head.closed.Swap(true) {
		return nil
	}
	p.repo.partial.End() // also the blobs that a commit waits for
	m := p.head.hold()   // a commit under way ends first
	defer m.release()
	m.tidier.end()
	return p.repo.close()
}

// do runs every verb.
func do[R any](ctx context.Context, p *Provider, m providers.Method, l providers.Locator, verb func() (R, error)) (R, error) {
	var none R
	err := ctx.Err()
	if p.head.closed.Load() {
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

// revision is a commit's name outside of this package.
func revision(c id) providers.Revision {
	if c.IsZero() {
		return ""
	}
	return providers.Revision(c.String())
}
