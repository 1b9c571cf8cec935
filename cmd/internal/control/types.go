// Package control is the control API of a running mount: HTTP and JSON on a
// Unix socket in the mount's state directory, for the other commands of
// wsmount, for metrics collectors and for agent hosts.
//
//	GET  /v1/status          Status
//	GET  /v1/work            Work
//	POST /v1/event           EventRequest -> EventResult
//	GET  /v1/events?name=*   the lifecycle bus as server-sent events
//	POST /v1/sync            SyncRequest -> EventResult
//	POST /v1/log             LogRequest -> LogResult
//	POST /v1/diff            DiffRequest -> DiffResult
//	POST /v1/restore         RestoreRequest -> RestoreResult
//	POST /v1/cache           CacheRequest -> CacheResult
//	GET  /v1/conflicts       ConflictsResult
//	GET  /v1/conflict?path=&side=    the content of one side
//	POST /v1/resolve?path=&keep=     the body is content -> ResolveResult
//	POST /v1/replace?path=&old=      the body is content: what replaces it, on that condition
//	POST /v1/lock?path=&old=         held until the caller hangs up: the lock of a file in a local directory
//	POST /v1/unmount         UnmountRequest -> UnmountResult
//	GET  /v1/debug           Debug
//	GET  /metrics            Prometheus text
//
// JSON is that of package exactjson: a byte of a name that is not UTF-8 stands in it as U+0000
// and two hexadecimal digits. In a query it is escaped as any other byte.
//
// It promises that only root and the user of the daemon are heard
// (SO_PEERCRED), that every call that changes something is logged with its
// caller, and that no answer holds a secret.
//
//	srv, err := control.Listen(dir.SocketPath(), backend, control.Options{Log: log})
//	client := control.NewClient(record.SocketPath())
//	status, err := client.Status(ctx)
package control

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/wsmount/wsmount/cache"
	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/cmd/internal/mountpoint"
	"github.com/wsmount/wsmount/mountspec"
	"github.com/wsmount/wsmount/mountspec/host/location"
)

// Schemas of what the API answers.
const (
	StatusSchema  = "wsmount.status/v1"
	EventSchema   = "wsmount.event/v1"
	UnmountSchema = "wsmount.umount/v1"
	ErrorSchema   = "wsmount.error/v1"
	DebugSchema   = "wsmount.debug/v1"
	WorkSchema    = "wsmount.work/v1"
)

// State is what a mount is doing.
type State string

const (
	Starting      State = "starting"
	Ready         State = "ready"
	Stopping      State = "stopping"
	Draining      State = "draining"       // unmounted by another; not all is sent yet
	Detached      State = "detached"       // out of sight, but files are open or another mount namespace has it
	NotResponding State = "not-responding" // the daemon runs and does not answer
	Dead          State = "dead"           // the daemon is gone, the mount is not
	Stopped       State = "stopped"
)

// Status is all that is known of a mount.
type Status struct {
	Schema     string    `json:"schema"`
	Workspace  string    `json:"workspace"`
	Mountpoint string    `json:"mountpoint"`
	Source     string    `json:"source,omitempty"` // the manifest or the registry entry
	State      State     `json:"state"`
	PID        int       `json:"pid"`
	Version    string    `json:"version"`
	Started    time.Time `json:"started"`
	Taken      time.Time `json:"taken"` // when this was true
	StateDir   string    `json:"stateDir"`
	Log        string    `json:"log,omitempty"`

	// ReadOnly says that nothing in the whole tree can be changed now, and Lasting that this
	// stays so while it is mounted: the kernel refuses changes then.
	ReadOnly   bool   `json:"readOnly"`
	Lasting    bool   `json:"readOnlyLasting,omitempty"`
	Unverified bool   `json:"unverified"`
	Durability string `json:"durability"` // "disk", or "volatile: tmpfs"

	// HeldBy are processes whose mount namespace has the mount when it is not at
	// its mount point any more.
	HeldBy []mountpoint.Holder `json:"heldBy,omitempty"`

	// UsedBy are the processes that keep a mount which ends with the last of them:
	// those of `wsmount exec`.
	UsedBy []int `json:"usedBy,omitempty"`

	Passthrough Passthrough `json:"passthrough"`
	OpenFiles   []OpenFile  `json:"openFiles"` // at most 100
	Parts       []Part      `json:"parts"`
	Notes       []string    `json:"notes,omitempty"`

	// Places are the directories of the host of which programs in the mount are told nothing.
	Places []string `json:"places,omitempty"`

	// NotSafe stands in the last status of a mount that ended before all was
	// where policy wants it: what is missing.
	NotSafe string `json:"notSafe,omitempty"`

	Fetching Fetching `json:"fetching"`
	Hooks    []Hook   `json:"hooks,omitempty"` // that the host has told of what goes wrong

	Operations     uint64 `json:"operations"`
	Panics         uint64 `json:"panics"`
	Notifications  uint64 `json:"notifications"`
	UnsavedBytes   int64  `json:"unsavedBytes"`
	ConflictsTotal int    `json:"conflicts"`
}

// Hook is a webhook or a program that is told of what goes wrong.
type Hook struct {
	Name      string    `json:"name"`
	Delivered uint64    `json:"delivered"`
	Lost      uint64    `json:"lost"`              // given up, or too many at once
	Waiting   int       `json:"waiting,omitempty"` // to be delivered
	Error     string    `json:"error,omitempty"`   // of the last try, while it fails
	Since     time.Time `json:"failingSince,omitzero"`
}

// Text is one line; "" where there is nothing to say.
func (h Hook) Text() string {
	text := fmt.Sprintf("%s: %d delivered", h.Name, h.Delivered)
	if h.Lost > 0 {
		text += fmt.Sprintf(", %d lost", h.Lost)
	}
	if h.Waiting > 0 {
		text += fmt.Sprintf(", %d waiting", h.Waiting)
	}
	if h.Error != "" {
		text += "; it fails since " + h.Since.Format(time.DateTime) + ": " + h.Error
	}
	return text
}

// Fetching is what is on its way here from the stores of all parts, in bytes.
type Fetching struct {
	Limit   int64 `json:"limit"`
	Used    int64 `json:"used"`
	Ahead   int64 `json:"ahead"`   // of these: nobody has asked for them yet
	Waiting int   `json:"waiting"` // fetches that wait until there is room
}

// NotSafe is the error of a mount that ended before all was safe. what is from
// Status.NotSafe, workspace is the address of the mount.
func NotSafe(what, workspace string) error {
	return exit.New(exit.Unsafe, "unmounted, but not everything is in the store: %s", what).
		Hint("`wsmount recover upload %s` sends it, from the working copy that keeps it; conflicts, and what needs --confirm, are resolved in a mount", workspace)
}

// Passthrough says whether the kernel reads and writes files without asking.
type Passthrough struct {
	On     bool   `json:"on"`
	Reason string `json:"reason,omitempty"` // why not
}

// Code says what a code project (CODE.md) is and what a runner would invoke; wsmount runs
// nothing of it.
type Code struct {
	ID          string `json:"id,omitempty"`
	Name        string `json:"name,omitempty"`
	Version     string `json:"version,omitempty"`
	Description string `json:"description,omitempty"`
	Entry       string `json:"entry,omitempty"`
}

// CodeOf is nil for nil.
func CodeOf(c *mountspec.Code) *Code {
	if c == nil {
		return nil
	}
	return &Code{c.ID, c.Name, c.Version, c.Description, c.Entry()}
}

// String is one line.
func (c *Code) String() string {
	if c == nil {
		return ""
	}
	text := strings.TrimSpace(cmp.Or((&mountspec.Code{ID: c.ID, Name: c.Name}).Title(), "without a name") + " " + c.Version)
	if c.Entry != "" {
		text += "; it is run as: " + c.Entry
	}
	return text
}

// A Person is named by commits.
type Person struct {
	Name  string `json:"name,omitempty"`
	Email string `json:"email"`
}

// Identity says whom the commits of a part name.
func (p Part) Identity() string {
	var out []string
	for _, a := range p.Authors {
		out = append(out, strings.TrimSpace(a.Name+" <"+a.Email+">"))
	}
	return strings.Join(out, ", with ")
}

// Part is the status of one volume of the tree.
type Part struct {
	Name       string `json:"name"`
	At         string `json:"at"` // path in the mount, "/" for the root
	Provider   string `json:"provider"`
	Mode       string `json:"mode"`            // sync mode: canonical, pull-push, watch
	Path       string `json:"path,omitempty"`  // of a local store
	Store      *Store `json:"store,omitempty"` // of one at a service
	Unverified bool   `json:"unverified"`
	Code       *Code  `json:"code,omitempty"` // of a workspace that is a code project

	// Authors are whom commits name, unless an event says who acts: the author, then those
	// who are named with him.
	Authors []Person `json:"authors,omitempty"`

	Unavailable string   `json:"unavailable,omitempty"` // why an optional part is not there
	ReadOnly    string   `json:"readOnly,omitempty"`    // why, or empty
	Closed      string   `json:"closed,omitempty"`      // why nothing in it may be opened now, or empty
	Refused     uint64   `json:"refused"`               // changes refused because of it
	Governing   []string `json:"governing,omitempty"`   // files that cannot be changed from inside
	Exclude     []string `json:"exclude,omitempty"`     // patterns of what stays out of the store
	Durability  string   `json:"durability"`
	IOMode      string   `json:"ioMode"` // of the open files: passthrough, cached, direct, mixed or none
	OpenFiles   int      `json:"openFiles"`

	// Moved is where the directory of a local store is now, when it has been
	// renamed or removed since the mount began: Path names something else, or
	// nothing.
	Moved string `json:"moved,omitempty"`

	// OtherMounts are directories of a local store, the first of them, that are
	// not served because another file system is mounted there.
	OtherMounts []string `json:"otherMounts,omitempty"`
	NotEntered  int64    `json:"notEntered,omitempty"` // lookups refused because of it

	Nested []Nested `json:"nested,omitempty"` // what is mounted right inside it

	Watch     Watch   `json:"watch"`
	Unsaved   Unsaved `json:"unsaved"`
	Copy      *Copy   `json:"workingCopy,omitempty"` // of a remote store
	HeldBack  int     `json:"heldBack"`
	Conflicts int     `json:"conflicts"`
	// ConflictCopies are files that what replicates the store has left; they hold
	// nothing up, and `wsmount conflicts` lists them.
	ConflictCopies int `json:"conflictCopies,omitempty"`

	Reachable   bool              `json:"reachable"`             // the store answered when it was last asked
	StoreErrors map[string]uint64 `json:"storeErrors,omitempty"` // requests to it that failed, by kind
	Events      []Outcome         `json:"events,omitempty"`      // what was followed, by result

	Inodes int       `json:"inodes"` // that the kernel knows
	Errors uint64    `json:"errors"` // since the start
	Recent []Failure `json:"recentErrors,omitempty"`
}

// Store is where the bytes of a part lie at a service.
type Store struct {
	Endpoint   string `json:"endpoint"`
	Bucket     string `json:"bucket,omitempty"` // or container
	Prefix     string `json:"prefix,omitempty"`
	Repository string `json:"repository,omitempty"`
	Branch     string `json:"branch,omitempty"` // that is tracked; "": the remote's own
}

// StoreOf is nil for a place of this machine, and for one that only its provider knows.
func StoreOf(l location.Location) *Store {
	switch l.Service {
	case location.Dir, location.Raw:
		return nil
	case location.Git:
		return &Store{Endpoint: l.Endpoint, Repository: l.Bucket, Branch: l.Branch}
	}
	return &Store{Endpoint: l.Endpoint, Bucket: l.Bucket, Prefix: l.Prefix}
}

// Nested is a workspace that is mounted inside a part.
type Nested struct {
	At        string `json:"at"` // below the part, without a leading slash
	Workspace string `json:"workspace"`
	State     string `json:"state,omitempty"` // why not all can be done there: "unavailable", "closed" or "read-only"
}

// Watch is how changes by others are noticed.
type Watch struct {
	State       string `json:"state"` // off, on, partial or exhausted
	Reason      string `json:"reason,omitempty"`
	Directories int    `json:"directories"`
}

// Unsaved is what the store does not have yet.
type Unsaved struct {
	Files  int       `json:"files"`
	Names  int       `json:"names"` // all names that differ: content, renames, removals, modes, ...
	Bytes  int64     `json:"bytes"`
	Oldest time.Time `json:"oldest,omitzero"`

	// Unknown says of a mount whose daemon is gone why nobody can say what is
	// unsaved now; the rest is what it said last.
	Unknown string `json:"unknown,omitempty"`
}

// HaltedCommit is how the text of a halt in [Copy] begins that keeps back what was
// changed here.
const HaltedCommit = VerbCommit + ": "

// Copy is how the working copy of a remote store is.
type Copy struct {
	StateDir  string `json:"stateDir"`
	Policy    string `json:"policy"`    // when it pulls, commits and pushes
	WriteBack bool   `json:"writeBack"` // closes return before the store has the bytes
	Revision  string `json:"revision,omitempty"`
	Unpushed  bool   `json:"unpushed"`
	Retrying  int    `json:"retrying"` // changes that failed and will be tried again
	LastError string `json:"lastError,omitempty"`
	PutOff    string `json:"pullPutOff,omitempty"` // why a pull waits

	// LastPull and LastPush are when the store last gave what it has, and took a change,
	// since the mount began.
	LastPull time.Time `json:"lastPull,omitzero"`
	LastPush time.Time `json:"lastPush,omitzero"`

	CredentialFailures uint64    `json:"credentialFailures,omitempty"` // not obtained, or refused
	CredentialsExpire  time.Time `json:"credentialsExpire,omitzero"`

	Content cache.ContentUsage `json:"content"` // what it takes of the local disk

	// UnpushedCommits the remote does not have, the oldest since UnpushedSince.
	UnpushedCommits int       `json:"unpushedCommits,omitempty"`
	UnpushedSince   time.Time `json:"unpushedSince,omitzero"`

	Clone *Clone `json:"clone,omitempty"` // of a store that is cloned

	Branch     string   `json:"branch,omitempty"`   // that commits go to, of a store that has some
	Branches   []Branch `json:"branches,omitempty"` // that wait to be merged, at most 20
	PushFails  *Fails   `json:"pushFails,omitempty"`
	PullsFails *Fails   `json:"pullRequestFails,omitempty"`

	// Failing is the work in the background that fails, and the requests that the store
	// refuses, until they have succeeded again.
	Failing []Failing `json:"failing,omitempty"`

	// Unreachable is how long the store has not answered, in seconds; Stale
	// says that what is shown could not be checked there in time.
	Unreachable float64 `json:"unreachableSeconds,omitempty"`
	Stale       bool    `json:"stale"`

	Halted   []string `json:"halted,omitempty"`   // what waits for --confirm
	Excluded int      `json:"excluded,omitempty"` // entries of the store that are hidden here

	InFlight []Transfer `json:"inFlight,omitempty"` // at most 20
	Held     []Held     `json:"held,omitempty"`     // at most 20

	HistoryVersions int   `json:"historyVersions"` // -1: not counted yet
	HistoryBytes    int64 `json:"historyBytes"`

	// Requests are what the mount has asked of the store's service, by the
	// service's own name of the request; they cost money.
	Requests map[string]Requests `json:"requests,omitempty"`
}

// Clone is how much of what a store has is here.
type Clone struct {
	Kind     string    `json:"kind"`               // full or blobless
	Missing  int       `json:"missing"`            // contents of the head that are not here yet; -1: not counted yet
	Fetching int       `json:"fetching,omitempty"` // contents that are on their way
	Paused   string    `json:"paused,omitempty"`   // why contents come only when they are needed
	Error    string    `json:"error,omitempty"`    // of the last request for contents, while they fail
	Failing  time.Time `json:"failingSince,omitzero"`
}

// Branch is a branch with commits that the tracked one lacks, or one that the
// remote did not take.
type Branch struct {
	Name     string    `json:"name"`
	Revision string    `json:"revision"`
	Commits  int       `json:"commits"` // that the tracked branch lacks
	Pushed   bool      `json:"pushed"`
	PRURL    string    `json:"prUrl,omitempty"`
	PRWanted time.Time `json:"prWantedSince,omitzero"` // while there should be a pull request and is none

	// Refused is why the remote did not take it, in one word; Says are its own.
	Refused      string    `json:"refused,omitempty"`
	RefusedSays  string    `json:"refusedSays,omitempty"`
	RefusedSince time.Time `json:"refusedSince,omitzero"`
}

// Fails is what goes wrong in the background, and is tried again.
type Fails struct {
	Since time.Time `json:"since"`
	Next  time.Time `json:"next"`
	Error string    `json:"error"` // "": it was broken off, or is under way
}

// Failing is work of which no program is told, or not why, and which fails.
type Failing struct {
	Activity string    `json:"activity"` // pull, push, commit, upload, list, read, ...
	Since    time.Time `json:"since"`
	Last     time.Time `json:"last"`
	Times    int       `json:"times,omitempty"` // 0: not counted
	Error    string    `json:"error"`
}

// Requests are requests of one kind to a service, and the bytes of their bodies.
type Requests struct {
	Count    int64 `json:"count"`
	Sent     int64 `json:"sent"`
	Received int64 `json:"received"`
}

// Transfer is a change on its way to the store.
type Transfer struct {
	Path    string  `json:"path"`
	What    string  `json:"what"`
	Sent    int64   `json:"sent"`
	Size    int64   `json:"size"`
	Seconds float64 `json:"seconds"`
}

// Held is a change that the store does not have, and why.
type Held struct {
	Path     string `json:"path"`
	Reason   string `json:"reason"`
	Conflict bool   `json:"conflict,omitempty"`
}

// Failure is a request that failed for a reason that a person should see.
type Failure struct {
	Time  time.Time `json:"time"`
	Op    string    `json:"op"`
	Path  string    `json:"path"`
	Errno string    `json:"errno"`
	Error string    `json:"error"`
}

// OpenFile is a file that a program holds open.
type OpenFile struct {
	Part    string `json:"part"`
	Path    string `json:"path"`
	IOMode  string `json:"ioMode"`
	Opens   int    `json:"opens"`
	Writers int    `json:"writers"`
}

// Work is what a mount does for somebody who waits for it.
type Work struct {
	Schema string `json:"schema"`
	// Beat changes whenever a commit, a pull or a push has come further: a mount
	// that works is told from one that hangs by it.
	Beat uint64 `json:"beat"`
	// What a commit does that is under way, in a part, and with how many names;
	// "": there is none of which that could be said.
	What  string `json:"what,omitempty"`
	Part  string `json:"part,omitempty"`
	Done  int    `json:"done,omitempty"`
	Total int    `json:"total,omitempty"`
	// Fetch are the bytes that somebody waits for to be on the local disk, of which
	// Fetched are.
	Fetch   int64 `json:"fetchBytes,omitempty"`
	Fetched int64 `json:"fetchedBytes,omitempty"`
}

// EventRequest emits a lifecycle event and waits for what it starts. Timeout is how
// long nothing may come further.
type EventRequest struct {
	Name    string            `json:"name"`
	At      string            `json:"at,omitempty"` // only the part at this path; empty: all
	Vars    map[string]string `json:"vars,omitempty"`
	Timeout float64           `json:"timeoutSeconds,omitempty"`
	NoWait  bool              `json:"noWait,omitempty"`
}

// EventResult is what an event did, summed over the parts that it reached.
type EventResult struct {
	Schema    string `json:"schema"`
	Event     string `json:"event"`     // with aliases resolved
	Parts     int    `json:"parts"`     // how many it reached
	Pulled    int    `json:"pulled"`    // names that others changed
	Committed int    `json:"committed"` // names that were sent
	Pushed    int    `json:"pushed"`    // pushes
	Revision  string `json:"revision,omitempty"`
	PRURL     string `json:"prUrl,omitempty"`
	Conflicts int    `json:"conflicts"`
	HeldBack  int    `json:"heldBack"`

	ConflictPaths []string `json:"conflictPaths,omitempty"` // the first of them, after the workspace's name

	Notes  []string `json:"notes,omitempty"`  // what went otherwise than expected, and is no failure
	PutOff []string `json:"putOff,omitempty"` // pulls that wait, and why
	Failed []string `json:"failed,omitempty"` // what could not be done
	Hint   string   `json:"hint,omitempty"`   // what to do about the first of that, where that is known

	// Failing is what fails in the background of the parts, whether this event asked
	// for it or not.
	Failing []string `json:"failing,omitempty"`

	Exit int `json:"exit"` // the exit code that this means

	conflicts map[string]bool // those that are counted; in what was received, none
}

// maxConflictPaths bounds the conflicts that are named.
const maxConflictPaths = 100

// Conflict counts a conflict, the first time that it is told of.
func (r *EventResult) Conflict(path string) (first bool) {
	if r.conflicts[path] {
		return false
	}
	if r.conflicts == nil {
		r.conflicts = map[string]bool{}
	}
	r.conflicts[path] = true
	if r.Conflicts++; len(r.ConflictPaths) < maxConflictPaths {
		r.ConflictPaths = append(r.ConflictPaths, path)
	}
	return true
}

// Add adds what another part did.
func (r *EventResult) Add(o EventResult) {
	r.Pulled += o.Pulled
	r.Committed += o.Committed
	r.Pushed += o.Pushed
	r.Conflicts += o.Conflicts
	r.ConflictPaths = append(r.ConflictPaths, o.ConflictPaths...)
	r.HeldBack += o.HeldBack
	r.PutOff = append(r.PutOff, o.PutOff...)
	r.Notes = append(r.Notes, o.Notes...)
	r.Failed = append(r.Failed, o.Failed...)
	r.Failing = append(r.Failing, o.Failing...)
	if o.Revision != "" {
		r.Revision = o.Revision
	}
	if o.PRURL != "" {
		r.PRURL = o.PRURL
	}
	switch {
	case o.Conflicts > 0:
		r.Exit = int(exit.Conflict)
	case o.HeldBack > 0 && r.Exit == 0:
		r.Exit = int(exit.Unsafe)
	}
}

// Fail notes what could not be done. The first failure chooses the exit code,
// unless there is a conflict.
func (r *EventResult) Fail(what string, code int, hint string) {
	if len(r.Failed) == 0 && r.Exit != int(exit.Conflict) {
		r.Exit, r.Hint = code, hint
	}
	if !slices.Contains(r.Failed, what) {
		r.Failed = append(r.Failed, what)
	}
}

// UnmountRequest ends a mount.
type UnmountRequest struct {
	Lazy  bool `json:"lazy,omitempty"`  // detach now, end with the last open file
	Force bool `json:"force,omitempty"` // fail what is under way

	// Timeout is how long programs that are ending may take to let go of it; 0 is
	// mountpoint.EndingLimit.
	Timeout float64 `json:"timeoutSeconds,omitempty"`
}

// UnmountResult says what became of it.
type UnmountResult struct {
	Schema     string              `json:"schema"`
	Mountpoint string              `json:"mountpoint"`
	Unmounted  bool                `json:"unmounted"`
	Busy       bool                `json:"busy,omitempty"`
	Holders    []mountpoint.Holder `json:"holders,omitempty"`
	Inside     []string            `json:"mountsInside,omitempty"`
	OpenFiles  int                 `json:"openFiles,omitempty"` // when it is busy
	HeldBy     []mountpoint.Holder `json:"heldBy,omitempty"`    // whose mount namespaces keep it alive
	WaitedFor  []mountpoint.Holder `json:"waitedFor,omitempty"` // programs that used it and were ending

	// Unsent are the changes that stay in working copies because policy did not
	// want them sent, or their daemon was gone; Conflicts is how many of them are
	// conflicts. Unpushed are commits that stay likewise.
	Unsent    int `json:"unsent,omitempty"`
	Conflicts int `json:"conflicts,omitempty"`
	Unpushed  int `json:"unpushed,omitempty"`
}

// Debug is what a debug bundle wants from the daemon itself.
type Debug struct {
	Schema     string          `json:"schema"`
	Stats      json.RawMessage `json:"stats"`
	Config     json.RawMessage `json:"config"`
	Goroutines string          `json:"goroutines"`
}

// errorBody is how the API refuses.
type errorBody struct {
	Schema string `json:"schema"`
	Error  string `json:"error"`
	Hint   string `json:"hint,omitempty"`
	Exit   int    `json:"exit"`
}
