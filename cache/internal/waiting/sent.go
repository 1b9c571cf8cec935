package waiting

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/wsmount/wsmount/cache/internal/errno"
	"github.com/wsmount/wsmount/cache/internal/exiting"
	"github.com/wsmount/wsmount/cache/internal/pending"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
	"github.com/wsmount/wsmount/cache/internal/upload"
	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/providers"
)

// Sent waits until the remote has the local changes.
type Sent struct {
	o       SentOptions
	exiting exiting.Threads // threads that close files because they end
}

// SentOptions are the parts of a working copy that a Sent needs.
type SentOptions struct {
	Waits  *Waits
	Tree   *tree.Tree
	Queue  *pending.Queue
	Sender Sender

	ReadOnly bool          // nothing is sent
	NoWait   bool          // close and fsync return when the working copy has the bytes
	Patience time.Duration // how long there may be no progress
	// Failure is the last failure to send; "": nothing failed.
	Failure func() string
}

// Sender sends pending changes.
type Sender interface {
	Jobs() *upload.Jobs
	IsPlaceKnown(v *tree.View, ino table.Ino) bool
}

// NewSent makes a Sent.
func NewSent(o SentOptions) *Sent { return &Sent{o: o} }

// Content returns when the remote has the content that an inode has now, and every change of
// names and attributes before. It is called at each close and fsync with new bytes. With
// NoWait it returns at once, except when too much is unsaved: then the remote must catch up
// first, for as long as Patience; the working copy has the bytes, so that this never fails.
func (s *Sent) Content(op *fs.Op, ino table.Ino) error {
	v := s.o.Tree.Lock()
	n := v.Inode(ino)
	if n == nil || s.o.ReadOnly {
		s.o.Tree.Unlock()
		return nil
	}
	s.o.Queue.Closed(v, ino, n)
	if s.o.NoWait {
		w := &pending.Waiter{Room: true}
		s.o.Queue.Open(v)
		s.o.Queue.Kick()
		full := s.o.Queue.IsFull(v)
		if full {
			s.o.Queue.Add(v, w)
			s.o.Queue.Ask(v)
		}
		s.o.Tree.Unlock()
		if full {
			_ = s.For(op, w)
		}
		return nil
	}
	w := &pending.Waiter{Ino: ino, Version: n.ContentVersion, Names: s.o.Queue.Structural(v)}
	for _, l := range n.Links {
		s.o.Sender.Jobs().Forgive(v, l)
	}
	s.o.Queue.Ask(v)
	s.o.Queue.Add(v, w)
	s.o.Tree.Unlock()
	return s.For(op, w)
}

// Names returns when the remote has all changes of names and attributes so far. It fails when
// one of them is held back.
func (s *Sent) Names(op *fs.Op) error {
	if s.o.ReadOnly {
		return nil
	}
	v := s.o.Tree.Lock()
	w := &pending.Waiter{Names: s.o.Queue.Structural(v)}
	var refused error
	for l := range w.Names {
		if t := s.o.Sender.Jobs().Of(v, l); t != nil && t.State == upload.Held {
			refused = fmt.Errorf("%s: %w", v.PathFor(l), t.Err)
			delete(w.Names, l)
		}
	}
	s.o.Queue.Ask(v)
	s.o.Queue.Add(v, w)
	s.o.Tree.Unlock()
	if err := s.For(op, w); err != nil {
		return err
	}
	return errno.Translate(refused)
}

// For waits for a waiter, for at most Patience without progress, and for a moment only when the
// calling thread ends.
func (s *Sent) For(op *fs.Op, c *pending.Waiter) error {
	v := s.o.Tree.Lock()
	if c.IsOver(v) {
		s.o.Tree.Unlock()
		return errno.Translate(c.Err())
	}
	w := s.o.Waits.For(op, s.o.Patience)
	c.OnMoved(v, w.Moved)
	s.o.Tree.Unlock()
	defer w.Close()
	if op != nil && op.PID != 0 {
		go func() {
			if s.exiting.Wait(w, op.PID) {
				w.End(syscall.EINTR)
			}
		}()
	}
	var err error
	select {
	case <-c.Done():
		err = c.Err()
	case <-w.Done():
		v = s.o.Tree.Lock()
		err = context.Cause(w)
		if last := c.Last(v); last != nil {
			err = providers.Kinded(last, err)
		}
		s.o.Queue.Remove(v, c)
		s.o.Tree.Unlock()
	}
	return errno.Translate(err)
}

// Place waits until no operation of this working copy on the remote names of an inode is under
// way or unanswered: an entry that was not found may be found after that. It reports whether
// there was anything to wait for.
func (s *Sent) Place(ctx context.Context, ino table.Ino) (waited bool) {
	v := s.o.Tree.Lock()
	if s.o.Sender.IsPlaceKnown(v, ino) {
		s.o.Tree.Unlock()
		return false
	}
	w := &pending.Waiter{Place: ino}
	s.o.Queue.Add(v, w)
	s.o.Tree.Unlock()
	select {
	case <-w.Done():
	case <-ctx.Done():
		v = s.o.Tree.Lock()
		s.o.Queue.Remove(v, w)
		s.o.Tree.Unlock()
	}
	return true
}

// Late says why the changes were not sent in time, if err is a timeout.
func (s *Sent) Late(err error) error {
	if !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	why := s.o.Failure()
	if why == "" {
		why = "the remote has not answered yet"
	}
	return providers.Kinded(fmt.Errorf("not all was sent in time: %s", why), err)
}
