package cache

import (
	"context"
	"log/slog"
	"os"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/wsmount/wsmount/cache/internal/budget"
	"github.com/wsmount/wsmount/cache/internal/commit"
	"github.com/wsmount/wsmount/cache/internal/files"
	"github.com/wsmount/wsmount/cache/internal/history"
	"github.com/wsmount/wsmount/cache/internal/reconcile"
	"github.com/wsmount/wsmount/cache/internal/waiting"
	"github.com/wsmount/wsmount/cache/pins"
	"github.com/wsmount/wsmount/providers"
)

// Options configure a working copy. StateDir is required.
type Options struct {
	// StateDir holds the names, the content and the history. It is made, 0700, if it is missing,
	// and belongs to one Volume at a time.
	StateDir string

	// Provider is the remote's name for status and user.wsmount.provider.
	Provider string

	Owner  *Owner // owner of entries of unknown owner; nil: the user of this process
	MapIDs bool   // owners come from the remote and go to it
	Umask  uint32 // for entries without mode: of 0666 and 0777

	Policy Policy
	// Believed says how long the kernel may believe names and attributes, of a Policy
	// without a TTL; nil: until Pull brings others. It must return at once.
	Believed func() time.Duration

	Exclude Excluder // nil: nothing is excluded
	Guard   Guard    // limits of commits
	// IgnoreFile is the name, in any directory, of files that list names which stay local unless
	// the remote has them already, as .gitignore does; "": there are none. It works with change
	// sets only.
	IgnoreFile string
	ReadOnly   bool      // send nothing, even unsaved changes
	Pins       *pins.Set // content that is not given up; nil: none
	// Lost is asked before content is given up while commits are not pushed; nil: it may be given
	// up. Lost must not call the volume.
	Lost Lost

	// ListRoot says that a program is about to look into the root: Open begins its listing, and
	// does not wait for it.
	ListRoot bool

	// CacheSize bounds the clean content that is kept, in bytes; 0: as much as the disk has
	// room for above KeepFree, which content leaves free; 0: 256 MiB, or 2 percent if less.
	CacheSize, KeepFree int64

	// TotalSize bounds the clean content of all open working copies that have the same TotalFile,
	// whose directory must exist, in bytes; 0: it is not bounded. The working copy with the most
	// content gives up the most. They learn each other's sizes once a second, and open content
	// stays, so the total may exceed the bound by the content that they open and fetch meanwhile.
	TotalSize int64
	TotalFile string

	// BallastFile is a file, in an existing directory and on the disk of StateDir, that working
	// copies give up together when that disk is full; "": each has its own, of 64 MiB.
	BallastFile string

	// Fetches bounds the bytes that are fetched at once. The working copies of one
	// mount share it; nil: one of its own.
	Fetches *FetchBudget

	// Patience is how long a close or fsync goes on trying, and how long a listing or fetch may
	// stand still; 0: 60 s.
	Patience time.Duration

	// Pulled, if not nil, is told each path that leads to a new file, or to a new version of one,
	// because another writer made it. The kernel does not tell watchers of a directory: see Nudge.
	// Pulled must return at once.
	Pulled func(path string)

	Log *slog.Logger     // nil is silent
	Now func() time.Time // nil: time.Now

	boot   string         // id of the boot of the machine; "": ask the machine
	names  vfs.FS         // where the table lies, in tests; nil: on the disk
	strict bool           // broken rules panic, in tests
	onward func(Progress) // is told of all progress, in tests; nil: unused
	within func(*Tx)      // sees each update before its end, in tests
	far    time.Duration  // from this time to answer a read on, a service is far away; 0: files.FarAway
	// looks turns the time that a look waits for news into the time to wait really, in tests whose
	// clock stands while that of a busy machine goes on; nil: unchanged.
	looks func(time.Duration) time.Duration
	// partsWait is how long after a mount the parts of abandoned uploads are freed; 0: a minute.
	partsWait time.Duration
	part      int64                                            // size of a part of large content; 0: 8 MiB
	pause     func(ctx context.Context, d time.Duration) error // nil: waiting.Sleep
}

// FetchBudget is the bytes that working copies may have under way together.
type FetchBudget = budget.Budget

// NewFetchBudget is a budget of so many bytes; 0: a quarter of the memory that
// this process may use, but 64 MiB at least and 1 GiB at most.
func NewFetchBudget(bytes int64) *FetchBudget { return budget.New(bytes) }

// Owner is a user and a group.
type Owner struct{ UID, GID uint32 }

// Policy says when changes go to the remote and come from it. One engine serves every policy: they
// differ in when it runs and in which callers wait for it. The zero value is that of canonical
// storage but for TTL.
type Policy struct {
	// Commit says what makes changes due.
	Commit Due
	// Held reports whether no change becomes due by itself at present; nil: never.
	Held func() bool
	// Window gathers changes before they are sent; 0: at once.
	Window time.Duration
	// MaxOpen is how long a file that stays open for writing is left alone; 0: 60 s.
	MaxOpen time.Duration
	// MaxUnsaved makes everything due, in bytes; 0: 1 GiB.
	MaxUnsaved int64
	// NoWait lets close and fsync return when the working copy has the bytes.
	// Without it they return when the remote has them.
	NoWait bool
	// Atomic sends due changes as one set, where the provider can commit one. A provider that is
	// also a providers.Syncer always gets sets.
	Atomic bool
	// Push sends each commit on to the remote of a providers.Pusher.
	Push bool
	// MergeCommits keeps local commits that were not pushed when others pushed: the next commit
	// has them as another parent. Without it, they are made anew on top of the others' commits.
	MergeCommits bool

	// TTL is how long names, attributes and versions count as fresh; then the
	// next look asks the remote. 0: until Pull.
	TTL time.Duration

	Conflict Conflict
	History  Budget
}

// Due says when changes become due to be sent.
type Due uint8

// The values of Due.
const (
	DueChange Due = iota // each change, after Policy.Window
	DueAsked             // only Volume.Commit: turns, conversations, manual
)

// Conflict says how a name is resolved that another writer changed and that was changed locally.
type Conflict = reconcile.Conflict

// The conflict policies: see package reconcile.
const (
	SplitConflicts = reconcile.Split
	Abort          = reconcile.Abort
	LastWriterWins = reconcile.LastWriterWins
	Manual         = reconcile.Manual
	Combine        = reconcile.Combine
	Markers        = reconcile.Markers
)

// Budget bounds the history; zero fields take the defaults: 64 versions of a
// file, 30 days, 1 GiB of content.
type Budget = history.Budget

// Excluder says which paths never leave this machine. mountspec's ExcludeSet
// is one.
type Excluder interface {
	// Match reports whether path, or a directory above it, is excluded.
	Match(path string, isDir bool) bool
	// SameBelow reports whether Match says the same of each name below two
	// directories; false if that is not known. A rename asks, so it must not
	// depend on how much lies below.
	SameBelow(a, b string) bool
	// String tells rules apart: those of one text say the same of every path.
	String() string
}

// DefaultPatience is Options.Patience when that is 0.
const DefaultPatience = 60 * time.Second

const (
	defaultMaxOpen    = 60 * time.Second
	defaultMaxUnsaved = 1 << 30
	defaultVersions   = 64
	defaultHistoryAge = 30 * 24 * time.Hour
	defaultHistory    = 1 << 30
)

// needsToWrite are the capabilities that a working copy requires, unless it is read-only.
var needsToWrite = providers.Capabilities{
	Writable: true,
	Conditions: providers.Conditions{
		Create: providers.GuardChecked, Replace: providers.GuardChecked, Delete: providers.GuardChecked,
	},
}

func (o *Options) setDefaults() {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Owner == nil {
		o.Owner = &Owner{uint32(os.Geteuid()), uint32(os.Getegid())}
	}
	if o.Provider == "" {
		o.Provider = "unknown"
	}
	if o.Fetches == nil {
		o.Fetches = NewFetchBudget(0)
	}
	if o.pause == nil {
		o.pause = waiting.Sleep
	}
	if o.looks == nil {
		o.looks = func(d time.Duration) time.Duration { return d }
	}
	setDefault(&o.Patience, DefaultPatience)
	setDefault(&o.partsWait, time.Minute)
	setDefault(&o.far, files.FarAway)
	setDefault(&o.Guard.MaxFile, commit.DefaultMaxFile)
	setDefault(&o.Guard.MaxCommit, commit.DefaultMaxCommit)
	setDefault(&o.Policy.MaxOpen, defaultMaxOpen)
	setDefault(&o.Policy.MaxUnsaved, defaultMaxUnsaved)
	setDefault(&o.Policy.History.Versions, defaultVersions)
	setDefault(&o.Policy.History.Age, defaultHistoryAge)
	setDefault(&o.Policy.History.Bytes, defaultHistory)
}

func setDefault[T int | int64 | time.Duration](field *T, value T) {
	if *field <= 0 {
		*field = value
	}
}
