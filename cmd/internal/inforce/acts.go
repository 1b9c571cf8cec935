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

// Acts keeps the times of actions that limits count: those by all working copies of one
// workspace, mounted now or before. So a new mount, or another working copy, does not
// reset a limit. A nil *Acts is for a policy without limits.
type Acts struct {
	o ActsOptions

	mu    sync.Mutex // guards the fields below
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

// OpenActs reads the past actions.
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

// load reads the past actions, if another process may have written the file since. mu guards it.
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

// Done returns the past actions, for a policy to count. If they cannot be read any more,
// it is the last known ones: Begin refuses then.
func (a *Acts) Done() policy.Done {
	if a == nil {
		return nil
	}
	done, _ := a.now()
	return done
}

// now returns the past actions; with an error, the last known ones.
func (a *Acts) now() (policy.Done, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	err := a.load()
	return maps.Clone(a.done), err // lists are not changed, but replaced
}

// wrote keeps the content of the file, until that is read again.
func (a *Acts) wrote(done policy.Done) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.done, a.stamp = done, hostfile.Stamp{}
}

// Begin asks may whether an action is allowed after the past ones, and records that it is about to
// be done: the record is on the disk before Begin returns. If it fails the action must not be
// done. Of concurrent calls each sees those before it. undo removes the record.
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

// change replaces the list of an action by f's result, from the list of all working copies.
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
