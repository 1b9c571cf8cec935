package tree

import "testing"

func TestGuardedStateNeedsItsOwnLock(t *testing.T) {
	tree, other := newTree(t, Options{}), newTree(t, Options{})
	state := Guard(tree, 1)
	v := tree.Lock()
	defer tree.Unlock()
	*state.Of(v)++
	if got := *state.Of(v); got != 2 {
		t.Errorf("the state is %d after it was set to 2", got)
	}
	snapshot := v.Snapshot()
	defer snapshot.at.Close()
	for name, without := range map[string]*View{"a snapshot": snapshot.View, "another tree": &other.held} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("the View of %s leads to the state", name)
				}
			}()
			state.Of(without)
		}()
	}
}
