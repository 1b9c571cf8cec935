package files

import (
	"sync"
	"sync/atomic"

	"github.com/wsmount/wsmount/cache/internal/content"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
)

// OpenInode is an inode whose content is in use: by programs, and by us while we send, keep
// or evict it. All users share one. Methods that take a View concern fields that the lock
// of the tree guards.
type OpenInode struct {
	Ino table.Ino

	// mu orders the opening of the content, the dirty intent, and the flush of changes into
	// the table. Reads and writes do not take it. It comes before the lock of the tree.
	mu   sync.Mutex
	f    *content.File // nil until opened; set under mu and the lock of the tree
	seen uint64        // f.Writes() that the table has; guarded by mu

	opens, writers int // guarded by the lock of the tree

	// unread says that none of this content was shown to a program: all opens of it still
	// wait for the first bytes, to read. A pull may then give the inode another version,
	// with another content version, and the opens begin anew. version is the content
	// version that the inode had. Guarded by the lock of the tree.
	unread  bool
	version uint64

	writer Caller // the last caller that opened it for writing; guarded by the lock of the tree

	// stamp is the time of the last change, 0 when the table has it.
	stamp atomic.Int64

	// intent says that the table knows that content may change. A close ends it in the
	// commit that records the changes, so that the release need make none, and the next
	// change begins it anew. A change counts itself in changing before it looks at intent;
	// the end of an intent looks at changing afterwards.
	intent   atomic.Bool
	changing atomic.Int32

	passed   atomic.Bool  // the kernel may map the content file itself
	disk     atomic.Int64 // the content file's time at our last look, if so
	unseen   atomic.Bool  // a writer may have mapped it
	lingered bool         // a goroutine waits for mappings to end; guarded by the lock of the tree
}

// Caller is the process that asks for a change.
type Caller struct {
	Known    bool
	UID, PID uint32
}

// LockedInode is an OpenInode for the holder of its lock, mu.
type LockedInode struct{ *OpenInode }

func (oi *OpenInode) lock() LockedInode {
	oi.mu.Lock()
	return LockedInode{oi}
}

func (oi LockedInode) unlock() { oi.mu.Unlock() }

// Follow keeps account of the content's changes since a state, which is the one that the
// table has.
func (oi LockedInode) Follow(state string) { oi.f.Follow(state, oi.seen) }

// Content is the content. A caller that got the inode from Opener.Open has it; for others
// it is set under one of the locks, and nil until it was opened.
func (oi *OpenInode) Content() *content.File { return oi.f }

// Retain counts one more user, which ends with Opener.Release.
func (oi *OpenInode) Retain(*tree.View) { oi.opens++ }

// IsUnread reports whether no program has seen any of the content.
func (oi *OpenInode) IsUnread(*tree.View) bool { return oi.unread }

// Writer is the last caller that opened it for writing.
func (oi *OpenInode) Writer(*tree.View) Caller { return oi.writer }

// SetWriter notes a caller that opened it for writing: later flushes count as its changes.
func (oi *OpenInode) SetWriter(_ *tree.View, c Caller) { oi.writer = c }

// Stat is the stat of open content, which the table may not have yet: its size, and the
// time of the last change, 0 when the table has that. False when the table is up to date.
func (oi *OpenInode) Stat(*tree.View) (size, changed int64, ok bool) {
	if oi.f == nil || oi.unread {
		return 0, 0, false
	}
	return oi.f.Size(), oi.stamp.Load(), true
}

// Blocks is the space that stat shows: of content that is not all local, the space that the
// whole will take. It may wait for a write.
func (oi *OpenInode) Blocks() int64 {
	if oi.f.Whole() {
		return oi.f.Blocks()
	}
	return max(oi.f.Blocks(), (oi.f.Size()+511)/512)
}

// IsTouched reports whether content is being changed, or was since the last flush.
func (oi *OpenInode) IsTouched() bool { return oi.changing.Load() > 0 || oi.stamp.Load() != 0 }

// MayBeMapped reports whether a program may change the content through a mapping, which we
// do not see.
func (oi *OpenInode) MayBeMapped() bool { return oi.unseen.Load() }

// isOutdated reports whether a pull gave an inode another version while the opens of this
// one were waiting for their first bytes.
func (oi *OpenInode) isOutdated(n *table.Inode) bool {
	return oi.unread && (n == nil || n.ContentVersion != oi.version)
}

// addWriter counts one more writer.
func (oi *OpenInode) addWriter() {
	oi.writers++
	if oi.passed.Load() {
		oi.unseen.Store(true)
	}
}
