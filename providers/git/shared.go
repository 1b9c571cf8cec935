package git

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/wsmount/wsmount/providers/flock"
	"github.com/wsmount/wsmount/providers/git/internal/partial"
	"github.com/wsmount/wsmount/providers/git/internal/remote"
)

// Sharing between the clones of one repository.
//
// Below Options.Shared each URL has a directory with packs that clones lend (odb.Lend), and a
// list of commits which those packs have with all of their history. A new clone learns from the
// server, with its own credentials, the branch's commit. If that commit is listed, or a listed
// one turns out to be in its history, the packs are borrowed, and only the rest is asked for: no
// clone gets an object that the server would not have sent to it. Everything in the directory can
// be fetched again, so damage to it is no error.

// shared is such a directory, locked: a new clone waits for the clone that is being made, and
// then needs not ask for the same.
type shared struct {
	dir  string
	lock *flock.Lock
	list []lent // the newest last
	news bool   // something was fetched that is not in it
}

// lent is a commit whose whole history is in packs of the directory.
type lent struct {
	Branch string
	Commit string
	Packs  []string

	Partial bool `json:",omitempty"` // without blobs
	Batches bool `json:",omitempty"` // or without them at first
}

const (
	lentName = "lent.json"
	mostLent = 4                     // branches
	mostEach = 16                    // packs of one: then a clone asks for all in one again
	mostMany = 128                   // that came in batches
	lockTurn = 20 * time.Millisecond // time between two attempts at a lock that another process has
)

// openShared waits for the directory of a URL. nil: there is none.
func openShared(ctx context.Context, dir, url string) *shared {
	if dir == "" {
		return nil
	}
	s := &shared{dir: sharedDir(dir, url)}
	if s.lock = lockShared(ctx, s.dir, "lock"); s.lock == nil {
		return nil
	}
	if b, err := os.ReadFile(filepath.Join(s.dir, lentName)); err == nil && json.Unmarshal(b, &s.list) != nil {
		s.list = nil
	}
	return s
}

func sharedDir(dir, url string) string {
	return filepath.Join(dir, fmt.Sprintf("%x", sha256.Sum256([]byte(url))))
}

// lockShared waits for a lock in a directory. nil: there is none.
func lockShared(ctx context.Context, dir, name string) *flock.Lock {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil
	}
	tick := time.NewTicker(lockTurn)
	defer tick.Stop()
	for {
		lock, err := flock.Exclusive(filepath.Join(dir, name))
		if !errors.Is(err, flock.ErrLocked) { // it is held, or there are no locks
			return lock
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

func (s *shared) close() { _ = s.lock.Close() }

// nearest is the list's entry of a commit, or else of its branch, also one without blobs if those
// may be missing.
func (s *shared) nearest(branch string, c id, partial bool) (near lent, ok bool) {
	for _, l := range s.list {
		if l.isMany() || l.Partial && !partial {
			continue
		}
		if l.Commit == c.String() {
			return l, true
		}
		if l.Branch == branch {
			near, ok = l, true
		}
	}
	return near, ok
}

func (l lent) isMany() bool {
	return len(l.Packs) >= mostMany || len(l.Packs) >= mostEach && !l.Batches
}

// offer lends all that a clone has, which is a commit with its history, and removes packs that
// were lent before and are not listed any more.
func (s *shared) offer(r *repository, branch string, c id) error {
	packs, err := r.objects.Lend(s.dir, r.partialState() != "")
	if err != nil {
		return err
	}
	s.list = slices.DeleteFunc(s.list, func(l lent) bool { return l.Branch == branch || l.Commit == c.String() })
	s.list = append(s.list, lent{Branch: branch, Commit: c.String(), Packs: packs, Partial: r.partialState() == partial.Missing, Batches: r.partialState() != ""})
	s.list = s.list[max(0, len(s.list)-mostLent):]
	b, err := json.Marshal(s.list)
	if err != nil {
		return err
	}
	if err := r.write(filepath.Join(s.dir, lentName), string(b)+"\n"); err != nil {
		return err
	}
	return s.clean()
}

// clean removes packs that are not listed.
func (s *shared) clean() error {
	files, err := filepath.Glob(filepath.Join(s.dir, "pack-*"))
	for _, name := range files {
		pack := filepath.Base(name)
		pack = pack[:len(pack)-len(filepath.Ext(pack))]
		if !slices.ContainsFunc(s.list, func(l lent) bool { return slices.Contains(l.Packs, pack) }) {
			err = errors.Join(err, os.Remove(name))
		}
	}
	return err
}

// borrow adds the packs of a commit to a clone.
func (s *shared) borrow(r *repository, l lent) error {
	for _, pack := range l.Packs {
		if err := r.objects.Borrow(s.dir, pack); err != nil {
			return err
		}
	}
	return nil
}

// receiveFirst fetches a commit with its whole history into a clone that has
// nothing yet, or borrows what it can.
func (g *origin) receiveFirst(ctx context.Context, s *remote.Session, theirs id) error {
	pool, blobless := g.pool, g.o.Clone != CloneFull && s.Filters()
	if pool == nil {
		return g.fetchMore(ctx, s, remote.Want{Commit: theirs, Blobless: blobless})
	}
	near, ok := pool.nearest(g.branch, theirs, blobless)
	if ok && near.Commit == theirs.String() && g.borrow(near) == nil && g.repo.hasCommit(theirs) {
		return nil
	}
	if err := g.receiveRest(ctx, s, theirs, near, blobless); err != nil {
		return err
	}
	pool.news = true
	return nil
}

// lend offers the fetched packs of a commit to the next clone, which else asks for all again.
func (g *origin) lend(c id) {
	if g.pool != nil && g.pool.news {
		_ = g.pool.offer(g.repo, g.branch, c)
	}
}

// borrow adds the packs of a commit, which may be without blobs.
func (g *origin) borrow(l lent) error {
	if l.Partial {
		if err := g.repo.partial.Without(); err != nil {
			return err
		}
	}
	return g.pool.borrow(g.repo, l)
}

// receiveRest fetches the missing objects of a commit where near is borrowed, if that is in its
// history, and else all of it.
func (g *origin) receiveRest(ctx context.Context, s *remote.Session, theirs id, near lent, blobless bool) error {
	if near.Commit == "" || near.Commit == theirs.String() {
		return g.fetchMore(ctx, s, remote.Want{Commit: theirs, Blobless: blobless})
	}
	old := plumbing.NewHash(near.Commit)
	if err := g.fetchMore(ctx, s, remote.Want{Commit: theirs, Haves: []id{old}, Blobless: near.Partial}); err != nil {
		return err
	}
	if g.repo.leadsTo(theirs, old) && g.borrow(near) == nil && g.repo.hasCommit(old) {
		return nil
	}
	again, err := g.remote.Ask(ctx) // a session is for one fetch
	if err != nil {
		return err
	}
	defer again.Close()
	return g.fetchMore(ctx, again, remote.Want{Commit: theirs, Blobless: blobless})
}

// leadsTo reports whether old, which may not be local, is in the history of c, which is.
func (r *repository) leadsTo(c, old id) bool {
	seen := map[id]bool{c: true}
	for next := []id{c}; len(next) > 0; {
		at := next[len(next)-1]
		next = next[:len(next)-1]
		if at == old {
			return true
		}
		commit, err := r.commit(at)
		if err != nil {
			continue
		}
		for _, parent := range commit.Parents {
			if !seen[parent] {
				seen[parent] = true
				next = append(next, parent)
			}
		}
	}
	return false
}
