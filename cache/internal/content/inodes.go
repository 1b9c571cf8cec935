package content

import "sync"

// inodes is the state of inodes in memory. Its lock is never held over a system call.
type inodes struct{ held lockedInodes }

// lockedInodes is inodes for the holder of their lock, from inodes.lock until unlock.
type lockedInodes struct {
	mu     sync.Mutex
	files  map[uint64]*File  // in use, each with its count of users
	deltas map[uint64]*delta // accounts of changes, each with its base, of files not in use too
	known  known
}

func (i *inodes) init() {
	i.held.files = make(map[uint64]*File)
	i.held.deltas = make(map[uint64]*delta)
	i.held.known.init()
}

// lock waits for the inodes, and gives them to the caller until unlock.
func (i *inodes) lock() *lockedInodes {
	i.held.mu.Lock()
	return &i.held
}

func (i *lockedInodes) unlock() { i.mu.Unlock() }

// named reports whether a file still is the content of an inode.
func (i *inodes) named(n names, f *File) bool {
	all := i.lock()
	defer all.unlock()
	return all.files[n.ino] == f
}

// name makes a file the content of its inode, which had none.
func (i *inodes) name(n names, f *File) {
	all := i.lock()
	defer all.unlock()
	all.files[n.ino] = f
}

// forget takes an inode out of all maps: a File of it that is in use has no name any more.
func (i *inodes) forget(n names) {
	all := i.lock()
	defer all.unlock()
	all.drop(n.ino)
	delete(all.files, n.ino)
}

// drop is forget for content that is not in use.
func (i *lockedInodes) drop(ino uint64) {
	delete(i.deltas, ino)
	i.known.drop(ino)
}

// unlist takes a file that is not in use out of the map.
func (i *inodes) unlist(f *File) {
	all := i.lock()
	defer all.unlock()
	if all.files[f.ino] == f {
		delete(all.files, f.ino)
	}
}

// share counts one more user of a file that has some.
func (i *inodes) share(f *File) {
	all := i.lock()
	defer all.unlock()
	f.users++
}

// release counts one user of a file less, and reports whether it was the last, and
// whether the file still is the content of its inode.
func (i *inodes) release(f *File) (last, named bool) {
	all := i.lock()
	defer all.unlock()
	f.users--
	last, named = f.users == 0, all.files[f.ino] == f
	if last && named {
		delete(all.files, f.ino)
		all.known.touch(f.ino)
	}
	return last, named
}

// unchanged reports whether content that no program has changed is in use.
func (i *inodes) unchanged() bool {
	all := i.lock()
	defer all.unlock()
	for _, f := range all.files {
		if f.writes.Load() == 0 && f.size.Load() > 0 {
			return true
		}
	}
	return false
}

// candidate is content that may be evicted if it is not used any more often.
type candidate struct {
	*entry
	uses uint64
}

// candidates are clean files that are not in use, those that were never read before the
// rest, and each oldest first.
func (i *inodes) candidates(tried map[uint64]bool) []candidate {
	const most = 64
	all := i.lock()
	defer all.unlock()
	var out []candidate
	for _, head := range []*entry{&all.known.ahead, &all.known.head} {
		for e := head.prev; e != head && len(out) < most; e = e.prev {
			if all.files[e.ino] == nil && !tried[e.ino] {
				out = append(out, candidate{e, e.uses})
			}
		}
	}
	return out
}

// evict takes a candidate out of all maps, and reports false when it is none any more.
func (i *inodes) evict(n names, c candidate) bool {
	all := i.lock()
	defer all.unlock()
	if all.known.all[n.ino] != c.entry || c.entry.uses != c.uses || !c.clean || all.files[n.ino] != nil {
		return false
	}
	all.drop(n.ino)
	return true
}
