package fs

import "sync"

// numbers gives inodes to the entries that a volume of the front shows, each with its data, for
// as long as the kernel references them: the entries may be many.
type numbers[K comparable, V any] struct {
	mu    sync.Mutex // guards the fields below
	inos  map[K]Ino
	known map[Ino]*numbered[K, V]
	last  Ino // RootIno is never given out
}

type numbered[K comparable, V any] struct {
	key  K
	what V
	refs uint64
}

func newNumbers[K comparable, V any]() numbers[K, V] {
	return numbers[K, V]{inos: map[K]Ino{}, known: map[Ino]*numbered[K, V]{}, last: RootIno}
}

// take adds a reference to the inode of a key, and replaces its data.
func (n *numbers[K, V]) take(key K, what V) Ino {
	n.mu.Lock()
	defer n.mu.Unlock()
	ino, ok := n.inos[key]
	if !ok {
		n.last++
		ino = n.last
		n.inos[key], n.known[ino] = ino, &numbered[K, V]{key: key}
	}
	one := n.known[ino]
	one.what = what
	one.refs++
	return ino
}

// of returns the key and data of an inode.
func (n *numbers[K, V]) of(ino Ino) (key K, what V, ok bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if one := n.known[ino]; one != nil {
		return one.key, one.what, true
	}
	return key, what, false
}

// give takes references back.
func (n *numbers[K, V]) give(ino Ino, refs uint64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	one := n.known[ino]
	if one == nil {
		return
	}
	if one.refs -= min(refs, one.refs); one.refs == 0 {
		delete(n.known, ino)
		delete(n.inos, one.key)
	}
}
