package inforce

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/wsmount/wsmount/mountspec/host/hostfile"
	"github.com/wsmount/wsmount/mountspec/policy"
)

// Acts remember when actions were done that limits count: by all working copies of one
// workspace, those that are mounted now and those of before. Who mounts again, or another
// working copy, has no more than before. A nil *Acts is of a policy that counts nothing.
type Acts struct {
	o ActsOptions

	mu    sync.Mutex // guards what follows
	done  policy.Done
	stamp hostfile.Stamp // of the file that done was read from
	read  time.Time
}

// ActsOptions of OpenActs.
type ActsOptions struct {
	Path       string                            // of the file that keeps them; its directory is made
	Remembered func(action string) time.Duration // how long; 0: not at all
	Now        func() time.Time
	WhileFull  func(do func() error) error // runs do again when it has made room on a full disk
}

// OpenActs reads what was done before.
func OpenActs(o ActsOptions) (*Acts, error) {
	if !slices.ContainsFunc(policy.Counted(), func(action string) bool { return o.Remembered(action) > 0 }) {
		return nil, nil
	}
	a := &Acts{o: o}
	err := o.WhileFull(func() error { return os.MkdirAll(filepath.Dir(o.Path), 0o700) })
	if err == nil {
		err = a.load()
	}
	if err != nil {
		return nil, fmt.Errorf("what limits of the policy count is not known: %w", err)
	}
	return a, nil
}

// load reads what was done, if another may have written it since. mu guards it.
func (a *Acts) load() error {
	if a.done != nil && a.stamp.IsOf(a.o.Path) && a.stamp.Settled(a.read) {
		return nil
	}
	read, done := time.Now(), policy.Done{}
	f, err := hostfile.Read(a.o.Path, hostfile.Options{Private: true})
	switch {
	case hostfile.IsAbsent(err):
		a.done, a.stamp = done, hostfile.Stamp{}
		return nil
	case err == nil:
		err = json.Unmarshal(f.Data, &done)
	}
	if err != nil {
		return err
	}
	a.done, a.stamp, a.read = done, hostfile.StampOf(&f.Stat), read
	return nil
}

// Done is what was done, for a policy to count. Where that cannot be read any more, it is
// what was known: Begin refuses then.
func (a *Acts) Done() policy.Done {
	if a == nil {
		return nil
	}
	done, _ := a.now()
	return done
}

// now is what was done, and what was known of it where that cannot be read any more.
func (a *Acts) now() (policy.Done, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	err := a.load()
	return maps.Clone(a.done), err // lists are not changed, but replaced
}

// wrote keeps what is in the file now, until that is read again.
func (a *Acts) wrote(done policy.Done) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.done, a.stamp = done, hostfile.Stamp{}
}

// Begin asks whether an action may be done after what was done, and notes that it is about
// to be: that is on the disk before it returns. When it fails the action must not be done.
// Of several at once each is asked with those before it. undo notes that it was not done.
func (a *Acts) Begin(action string, may func(policy.Done) error) (undo func() error, err error) {
	if a == nil || a.o.Remembered(action) == 0 {
		return func() error { return nil }, may(a.Done())
	}
	at := a.o.Now().Round(0) // as it is read again
	err = a.change(action, func(done policy.Done) ([]time.Time, error) {
		return append(slices.Clone(done[action]), at), may(done)
	})
	return func() error {
		return a.change(action, func(done policy.Done) ([]time.Time, error) {
			list := slices.Clone(done[action])
			if i := slices.IndexFunc(list, at.Equal); i >= 0 {
				list = slices.Delete(list, i, i+1)
			}
			return list, nil
		})
	}, err
}

// change has f make the list of an action of what all working copies have done.
func (a *Acts) change(action string, f func(policy.Done) ([]time.Time, error)) error {
	var refused error
	err := a.o.WhileFull(func() error {
		unlock, err := hostfile.Lock(a.o.Path+".lock", hostfile.Options{})
		if err != nil {
			return err
		}
		defer unlock()
		done, err := a.now()
		if err != nil {
			return err
		}
		list, err := f(done)
		if refused = err; err != nil {
			return nil
		}
		oldest := a.o.Now().Add(-a.o.Remembered(action))
		list = slices.DeleteFunc(list, func(t time.Time) bool { return !t.After(oldest) })
		next := maps.Clone(done)
		next[action] = list[max(0, len(list)-policy.MostCounted):]
		data, err := json.Marshal(next)
		if err == nil {
			err = hostfile.WriteAtomic(a.o.Path, data, hostfile.Options{Private: true})
		}
		if err == nil {
			a.wrote(next)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("what limits of the policy count cannot be kept: %w", err)
	}
	return refused
}
