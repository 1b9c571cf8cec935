package history

import (
	"context"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/wsmount/wsmount/cache/internal/chores"
	"github.com/wsmount/wsmount/cache/internal/content"
	"github.com/wsmount/wsmount/cache/internal/files"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
	"github.com/wsmount/wsmount/providers"
)

// Options are the dependencies of a Keeper.
type Options struct {
	Tree   *tree.Tree
	Store  *content.Store
	Open   *files.OpenSet
	Update func(do func(Tx) error) error // a transaction of Tree
	// Revision is the revision of the remote that the table has, "" if that is not known; keeps is
	// false where the remote keeps none.
	Revision func(v *tree.View) (r providers.Revision, keeps bool)
	// Ended is told the result of work in the background.
	Ended   func(chores.Activity, error)
	Budget  Budget
	Small   int64 // content up to this size in bytes is copied while an open waits; 0: 4 MiB
	Asked   bool  // commits are asked for: a person may ask for their content again
	Now     func() time.Time
	Context context.Context // ends with the working copy
	Log     *slog.Logger
}

// Budget bounds a history.
type Budget struct {
	Versions int // of a file
	Age      time.Duration
	Bytes    int64 // of content
}

// Keeper keeps the history of a working copy: it notes changes, has the store keep content, and
// gives up records and content over the Budget.
type Keeper struct {
	o Options

	// The lock of the tree guards these.
	actor    Actor
	since    uint64                   // records from here on are the actor's
	commands map[uint32]command       // by process id
	lately   map[table.Link]time.Time // when content was last kept, for the last keepPause

	mu       sync.Mutex // inside the lock of the tree; guards the fields up to kick
	expected map[table.Ino]expected
	long     map[table.Link]struct{} // names that may have too many versions
	moved    []table.Ino             // their content was moved into the history
	records  int                     // in the table; -1: not counted yet
	pruned   Pruned
	kick     chan struct{}

	working sync.Mutex // outside all others; see Work
	pruning sync.Mutex // outside the lock of the tree; an excess is given up once
}

// expected is a version whose content is looked at when it has been left alone for a while.
type expected struct {
	id, gen uint64
	due     time.Time
}

// command is the name of a process, and when it was looked up.
type command struct {
	name string
	at   time.Time
}

// New makes a Keeper for the history in the table and the store.
func New(o Options) *Keeper {
	if o.Small == 0 {
		o.Small = keepSmall
	}
	return &Keeper{o: o, commands: map[uint32]command{}, lately: map[table.Link]time.Time{},
		expected: map[table.Ino]expected{}, long: map[table.Link]struct{}{}, records: -1, kick: make(chan struct{}, 1)}
}

// SetActor sets the actor on whose behalf all later changes are made.
func (k *Keeper) SetActor(a Actor) {
	v := k.o.Tree.Lock()
	defer k.o.Tree.Unlock()
	if a != k.actor {
		k.actor, k.since = a, v.NextSeq()
	}
}

// actsAnew reports whether the actor has changed since a record: its content is a state that a
// person may go back to, however soon the next follows.
func (k *Keeper) actsAnew(_ *tree.View, id uint64, r *Record) bool {
	return r == nil || id < k.since || r.Actor != k.actor
}

// sign writes the caller's process into a record.
func (k *Keeper) sign(_ *tree.View, r *Record, by files.Caller) {
	r.UID, r.PID = by.UID, by.PID
	if !by.Known || by.PID == 0 {
		return
	}
	c, ok := k.commands[by.PID]
	if now := k.o.Now(); !ok || now.Sub(c.at) > time.Second {
		if len(k.commands) > 256 {
			clear(k.commands)
		}
		name, _ := os.ReadFile("/proc/" + strconv.Itoa(int(by.PID)) + "/comm")
		c = command{strings.TrimSpace(string(name)), now}
		k.commands[by.PID] = c
	}
	r.Cmd = c.name
}

// pastOf is where the remote has content of an inode; nil: at no known place.
func (k *Keeper) pastOf(v *tree.View, ino table.Ino, n *table.Inode, is func(contentVersion uint64) bool) *Past {
	rev, keeps := k.o.Revision(v)
	if keeps && rev == "" || !n.IsRegular() {
		return nil
	}
	for _, l := range n.RemoteLinks {
		b := v.Record(l).Remote
		at, ok := v.RemotePath(l)
		if ok && b != nil && b.Ino == ino && is(b.ContentVersion) && !b.Version.IsZero() {
			return &Past{Revision: rev, Path: at.String(), Version: VersionText(b.Version), Size: b.Version.Size}
		}
	}
	return nil
}

// PastOf is where the remote has the present content of an inode; nil: at no known place.
func (k *Keeper) PastOf(v *tree.View, ino table.Ino, n *table.Inode) *Past {
	return k.pastOf(v, ino, n, func(at uint64) bool { return at == n.ContentVersion })
}

// keptLately reports whether content of a name went into the history less than keepPause
// ago.
func (k *Keeper) keptLately(_ *tree.View, l table.Link) bool {
	at, ok := k.lately[l]
	return ok && k.o.Now().Sub(at) < keepPause
}

// keptNow notes that content of a name goes into the history now.
func (k *Keeper) keptNow(_ *tree.View, l table.Link) {
	if len(k.lately) > 4096 {
		clear(k.lately)
	}
	k.lately[l] = k.o.Now()
}
