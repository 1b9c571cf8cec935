package cache

import (
	"errors"
	"fmt"
	iofs "io/fs"
	"sync"
	"syscall"
	"time"

	"github.com/wsmount/wsmount/cache/internal/history"
	"github.com/wsmount/wsmount/cache/internal/table"
)

// Errors of the history.
var (
	// ErrNoVersion says that the history has no such version, or not any more.
	ErrNoVersion = errors.New("no such version in the history")

	// ErrNotKept says that a version is known, but not its content: it lived
	// too short, was too large, was never here, or is over the budget.
	ErrNotKept = errors.New("the content of this version was not kept")

	errGone = fmt.Errorf("nothing is there: %w", iofs.ErrNotExist)
)

const (
	modeType    = syscall.S_IFMT
	modeRegular = syscall.S_IFREG
	modeDir     = syscall.S_IFDIR
)

// What a Version tells of.
const (
	Made    = history.Made
	Written = history.Written
	Ended   = history.Ended
	Moved   = history.Moved
)

// Version is one entry of the history.
type Version struct {
	// ID names it. Later entries have greater numbers.
	ID string `json:"id"`
	// Number counts the entries of one name, from 1 on.
	Number uint64 `json:"number"`
	Change string `json:"change"`        // Made, Written, Ended or Moved
	New    bool   `json:"new,omitempty"` // the file came to be since the version before, if any
	// Why tells more: "closed", "removed", "pulled" ...
	Why string `json:"why,omitempty"`

	// Path is where the file is now, or was last.
	Path string `json:"path"`
	// Was is the path at that time, when it was another; From, of a move, the
	// path before.
	Was  string `json:"was,omitempty"`
	From string `json:"from,omitempty"`

	Time time.Time `json:"time"`
	Actor
	UID     uint32 `json:"uid,omitempty"`
	PID     uint32 `json:"pid,omitempty"`
	Command string `json:"command,omitempty"` // of that process

	Mode   uint32 `json:"mode"` // type and permissions, as in stat
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256,omitempty"` // "" when not computed
	// Base is the version at the backend that it was made against; "" for none.
	Base string `json:"base,omitempty"`
	// Commit is the revision of the store that this change went into; "" while it
	// is in none, or where the store has none.
	Commit string `json:"commit,omitempty"`
	// Kept says that Content gives it (a bucket's versions are not looked at for that),
	// Current that it is what is here now.
	Kept    bool `json:"kept"`
	Current bool `json:"current,omitempty"`
}

// historyState is what the history needs in memory. All else is in the table.
type historyState struct {
	// Guarded by the volume's lock.
	actor    Actor
	since    uint64 // records from here on are the actor's
	shown    *shownTree
	commands map[uint32]command       // by process id
	kept     map[table.Link]time.Time // when content was last kept, for the last keepPause

	mu       sync.Mutex // inside the volume's lock; guards what follows
	expected map[table.Ino]expected
	long     map[table.Link]struct{} // names that may have too many versions
	moved    []table.Ino             // whose content was moved into the history
	records  int                     // in the table; -1: not counted yet
	pruned   Pruned
	kick     chan struct{}

	pruning sync.Mutex // outside the volume's lock; what is too much is given up once
}

// expected is a version whose content is looked at when it has been left alone
// for a while.
type expected struct {
	id, gen uint64
	due     time.Time
}

// command is the name of a process, and when it was looked up.
type command struct {
	name string
	at   time.Time
}

func (h *historyState) init() {
	h.commands, h.kept = map[uint32]command{}, map[table.Link]time.Time{}
	h.expected, h.long = map[table.Ino]expected{}, map[table.Link]struct{}{}
	h.records, h.kick = -1, make(chan struct{}, 1)
}

// wake has the history worker look at what is due. It never blocks.
func (h *historyState) wake() {
	select {
	case h.kick <- struct{}{}:
	default:
	}
}
