package inforce

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/wsmount/wsmount/mountspec/host/hostfile"
	"github.com/wsmount/wsmount/mountspec/policy"
)

// Acts remember when actions were done that limits count, also of the mounts before: who
// mounts again has no more than before. A nil *Acts is of a policy that counts nothing.
type Acts struct {
	o ActsOptions

	writing sync.Mutex // one change at a time, which may wait for room on the disk

	mu   sync.Mutex // guards done
	done policy.Done
}

// ActsOptions of OpenActs.
type ActsOptions struct {
	Path       string                            // of the file that keeps them
	Remembered func(action string) time.Duration // how long; 0: not at all
	Now        func() time.Time
	WhileFull  func(do func() error) error // runs do again when it has made room on a full disk
}

// OpenActs reads what was done before.
func OpenActs(o ActsOptions) (*Acts, error) {
	if !slices.ContainsFunc(policy.Counted(), func(action string) bool { return o.Remembered(action) > 0 }) {
		return nil, nil
	}
	a := &Acts{o: o, done: policy.Done{}}
	f, err := hostfile.Read(o.Path, hostfile.Options{Private: true})
	if hostfile.IsAbsent(err) {
		return a, nil
	}
	if err == nil {
		err = json.Unmarshal(f.Data, &a.done)
	}
	if err != nil {
		return nil, fmt.Errorf("what limits of the policy count is not known: %w", err)
	}
	return a, nil
}

// Done is what was done, for a policy to count.
func (a *Acts) Done() policy.Done {
	if a == nil {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return maps.Clone(a.done) // lists are not changed, but replaced
}

// Begin notes that an action is about to be done, and is on the disk before it returns:
// when it fails the action must not be done. undo notes that it was not.
func (a *Acts) Begin(action string) (undo func() error, err error) {
	if a == nil || a.o.Remembered(action) == 0 {
		return func() error { return nil }, nil
	}
	at := a.o.Now().Round(0) // as it is read again
	err = a.change(action, func(list []time.Time) []time.Time { return append(list, at) })
	return func() error {
		return a.change(action, func(list []time.Time) []time.Time {
			if i := slices.IndexFunc(list, at.Equal); i >= 0 {
				list = slices.Delete(list, i, i+1)
			}
			return list
		})
	}, err
}

func (a *Acts) change(action string, f func([]time.Time) []time.Time) error {
	a.writing.Lock()
	defer a.writing.Unlock()
	done := a.Done()
	oldest := a.o.Now().Add(-a.o.Remembered(action))
	list := slices.DeleteFunc(slices.Clone(done[action]), func(t time.Time) bool { return !t.After(oldest) })
	list = f(list)
	next := maps.Clone(done)
	next[action] = list[max(0, len(list)-policy.MostCounted):]
	data, err := json.Marshal(next)
	if err == nil {
		err = a.o.WhileFull(func() error { return hostfile.WriteAtomic(a.o.Path, data, hostfile.Options{Private: true}) })
	}
	if err != nil {
		return fmt.Errorf("what limits of the policy count cannot be kept: %w", err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.done = next
	return nil
}
