package tree

// Guarded is state of another package that the lock of a tree guards. Only a View leads to it.
type Guarded[T any] struct {
	by    *guarded
	state T
}

// Guard puts state under the lock of t.
func Guard[T any](t *Tree, state T) *Guarded[T] {
	return &Guarded[T]{t.held.guarded, state}
}

// Of is the state, for the holder of the lock. It panics for the View of a snapshot or of another
// tree, which says nothing about the lock.
func (g *Guarded[T]) Of(v *View) *T {
	if v.guarded != g.by {
		panic("tree: a View of another lock, or of none")
	}
	return &g.state
}
