package pending

import (
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
)

// Unsaved is how many files have content that the remote lacks, and how many bytes.
func (q *Queue) Unsaved(*tree.View) (files int, size int64) { return len(q.unsaved), q.total }

// IsUnsaved reports whether the remote lacks content of an inode.
func (q *Queue) IsUnsaved(_ *tree.View, ino table.Ino) bool {
	_, unsaved := q.unsaved[ino]
	return unsaved
}

// count keeps the sum of unsaved bytes, and returns the name's place in the order.
func (q *Queue) count(v *tree.View, l table.Link) uint64 {
	rec := v.Record(l)
	if rec.Remote != nil && rec.Remote.Ino != rec.Ino {
		q.countInode(v, rec.Remote.Ino)
	}
	q.countInode(v, rec.Ino)
	return rec.Seq
}

func (q *Queue) countInode(v *tree.View, ino table.Ino) {
	n := v.Inode(ino)
	size := int64(-1)
	if n != nil && n.IsRegular() {
		for _, l := range n.Links {
			if rec := v.Record(l); rec.Seq != 0 && (Carries(rec, n) || !IsKnown(v, ino, n)) {
				size = n.Size
				break
			}
		}
	}
	was, counted := q.unsaved[ino]
	switch {
	case size < 0 && !counted:
		return
	case size < 0:
		delete(q.unsaved, ino)
		delete(q.closed, ino)
		delete(q.overdue, ino)
		size = 0
	default:
		q.unsaved[ino] = size
	}
	q.total += size - was
}

// IsKnown reports whether the remote has this state of an inode under any name.
func IsKnown(v *tree.View, ino table.Ino, n *table.Inode) bool {
	for _, h := range n.RemoteLinks {
		if b := v.Record(h).Remote; b != nil && b.Ino == ino && b.ContentVersion == n.ContentVersion {
			return true
		}
	}
	return false
}

// Carries reports whether a name needs content of n to be sent: the remote does not have this
// state of it anywhere.
func Carries(rec table.Name, n *table.Inode) bool {
	if rec.Remote != nil && rec.Remote.Ino == rec.Ino {
		return rec.Remote.ContentVersion != n.ContentVersion
	}
	return len(n.RemoteLinks) == 0
}

// Closed says that a program has closed a state of content, or wants it sent as it is.
func (q *Queue) Closed(v *tree.View, ino table.Ino, n *table.Inode) {
	if q.IsUnsaved(v, ino) {
		q.closed[ino] = n.ContentVersion
	}
}

// SendOpen has content be sent although a program goes on writing it, until the remote has
// all of it.
func (q *Queue) SendOpen(_ *tree.View, ino table.Ino, n *table.Inode) {
	q.closed[ino], q.overdue[ino] = n.ContentVersion, struct{}{}
}

// Lingering lists the files that have been open for writing for Options.MaxOpen, once in
// that time.
func (q *Queue) Lingering(v *tree.View) (files []table.Ino) {
	for ino := range q.writing {
		if open, _ := q.o.Writers.Writing(v, ino); !open {
			delete(q.writing, ino)
		}
	}
	now := q.o.Now()
	q.o.Writers.All(v, func(ino table.Ino) {
		since, known := q.writing[ino]
		switch {
		case !known:
			q.writing[ino] = now
		case now.Sub(since) >= q.o.MaxOpen:
			q.writing[ino] = now
			files = append(files, ino)
		}
	})
	return files
}

// IsOpen reports whether a program is still writing a state that none has closed, and that no
// caller waits for. Content that was closed and is being written once more counts, too: its first
// state is gone, and the next is half made. After SendOpen that counts no more.
func (q *Queue) IsOpen(v *tree.View, ino table.Ino, n *table.Inode) bool {
	open, touched := q.o.Writers.Writing(v, ino)
	if !open || q.isAwaited(v, ino) {
		return false
	}
	_, overdue := q.overdue[ino]
	return !overdue && (q.closed[ino] < n.ContentVersion || touched)
}

// IsLeftAlone reports whether a name waits for a program that writes it: a name on its way does
// not.
func (q *Queue) IsLeftAlone(v *tree.View, l table.Link) bool {
	return !q.o.Sender.IsSending(v, l) && q.IsBeingWritten(v, v.Record(l))
}

// IsBeingWritten reports whether a name's content is left alone because a program is writing
// it.
func (q *Queue) IsBeingWritten(v *tree.View, rec table.Name) bool {
	return IsBeingWritten(v, rec, q.IsOpen)
}

// IsBeingWritten is Queue.IsBeingWritten where isOpen says which content is being written.
func IsBeingWritten(v *tree.View, rec table.Name, isOpen func(*tree.View, table.Ino, *table.Inode) bool) bool {
	n := v.Inode(rec.Ino)
	return n != nil && rec.Attempt == nil && Carries(rec, n) && isOpen(v, rec.Ino, n)
}

// isAwaited reports whether a caller waits for content of an inode: a program that closed it while
// another went on writing gets the present content sent.
func (q *Queue) isAwaited(_ *tree.View, ino table.Ino) bool {
	for w := range q.waiters {
		if w.Ino == ino {
			return true
		}
	}
	return false
}
