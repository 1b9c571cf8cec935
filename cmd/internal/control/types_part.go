package control

import (
	"strings"
	"time"

	"github.com/wsmount/wsmount/cache"
	"github.com/wsmount/wsmount/mountspec/host/location"
)

// Identity lists the authors of a part's commits.
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
	Store      *Store `json:"store,omitempty"` // of a store at a service
	Unverified bool   `json:"unverified"`
	Code       *Code  `json:"code,omitempty"` // set for a code project

	// Authors are the author of commits, unless an event names another, and then the co-authors.
	Authors []Person `json:"authors,omitempty"`

	Unavailable string   `json:"unavailable,omitempty"` // why an optional part is missing
	ReadOnly    string   `json:"readOnly,omitempty"`    // why, or empty
	Closed      string   `json:"closed,omitempty"`      // why nothing in it may be opened now, or empty
	Refused     uint64   `json:"refused"`               // changes refused because of it
	Governing   []string `json:"governing,omitempty"`   // files that cannot be changed from inside
	Exclude     []string `json:"exclude,omitempty"`     // patterns of names kept out of the store
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

	Nested []Nested `json:"nested,omitempty"` // workspaces mounted right inside it

	Watch     Watch   `json:"watch"`
	Unsaved   Unsaved `json:"unsaved"`
	Copy      *Copy   `json:"workingCopy,omitempty"` // of a remote store
	HeldBack  int     `json:"heldBack"`
	Conflicts int     `json:"conflicts"`
	// ConflictCopies counts the files that replication of the store has left; they
	// block nothing; see `wsmount conflicts`.
	ConflictCopies int `json:"conflictCopies,omitempty"`

	Reachable   bool              `json:"reachable"`             // the store answered when it was last asked
	StoreErrors map[string]uint64 `json:"storeErrors,omitempty"` // requests to it that failed, by kind
	Events      []Outcome         `json:"events,omitempty"`      // followed events, by result

	Inodes int       `json:"inodes"` // that the kernel knows
	Errors uint64    `json:"errors"` // since the start
	Recent []Failure `json:"recentErrors,omitempty"`
}

// Store is the place of a part's bytes at a service.
type Store struct {
	Endpoint   string `json:"endpoint"`
	Bucket     string `json:"bucket,omitempty"` // or container
	Prefix     string `json:"prefix,omitempty"`
	Repository string `json:"repository,omitempty"`
	Branch     string `json:"branch,omitempty"` // the tracked one; "": the remote's default
}

// StoreOf is nil for a local place, and for one that only its provider knows.
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
	State     string `json:"state,omitempty"` // restriction: "unavailable", "closed" or "read-only"
}

// Watch is how changes by others are noticed.
type Watch struct {
	State       string `json:"state"` // off, on, partial or exhausted
	Reason      string `json:"reason,omitempty"`
	Directories int    `json:"directories"`
}

// Unsaved are the changes that the store does not have yet.
type Unsaved struct {
	Files  int       `json:"files"`
	Names  int       `json:"names"` // all names that differ: content, renames, removals, modes, ...
	Bytes  int64     `json:"bytes"`
	Oldest time.Time `json:"oldest,omitzero"`

	// Unknown is why the unsaved changes of a mount without daemon are not known;
	// the other fields are from its last status.
	Unknown string `json:"unknown,omitempty"`
}

// HaltedCommit is the prefix, in [Copy], of the text of a halt that holds local changes back.
const HaltedCommit = VerbCommit + ": "

// Copy is the state of the working copy of a remote store.
type Copy struct {
	StateDir  string `json:"stateDir"`
	Policy    string `json:"policy"`    // when it pulls, commits and pushes
	WriteBack bool   `json:"writeBack"` // closes return before the store has the bytes
	Revision  string `json:"revision,omitempty"`
	Unpushed  bool   `json:"unpushed"`
	Retrying  int    `json:"retrying"` // changes that failed and will be tried again
	LastError string `json:"lastError,omitempty"`
	PutOff    string `json:"pullPutOff,omitempty"` // why a pull waits

	// LastPull and LastPush are when the store last answered a pull, and took a
	// change, since the mount.
	LastPull time.Time `json:"lastPull,omitzero"`
	LastPush time.Time `json:"lastPush,omitzero"`

	CredentialFailures uint64    `json:"credentialFailures,omitempty"` // not obtained, or refused
	CredentialsExpire  time.Time `json:"credentialsExpire,omitzero"`

	Content cache.ContentUsage `json:"content"` // its use of the local disk

	// UnpushedCommits counts the commits that the remote lacks, the oldest made at UnpushedSince.
	UnpushedCommits int       `json:"unpushedCommits,omitempty"`
	UnpushedSince   time.Time `json:"unpushedSince,omitzero"`

	Clone *Clone `json:"clone,omitempty"` // set for a store that is cloned

	Branch     string   `json:"branch,omitempty"`   // the target of commits; needs branches
	Branches   []Branch `json:"branches,omitempty"` // unmerged ones, at most 20
	PushFails  *Fails   `json:"pushFails,omitempty"`
	PullsFails *Fails   `json:"pullRequestFails,omitempty"`

	// Failing is the failing background work, and the requests that the store refuses,
	// until they succeed again.
	Failing []Failing `json:"failing,omitempty"`

	// Unreachable is how long the store has not answered, in seconds; Stale says
	// that the shown state could not be checked there in time.
	Unreachable float64 `json:"unreachableSeconds,omitempty"`
	Stale       bool    `json:"stale"`

	// Away is why the store could not be reached at the last request; "": it answered.
	Away string `json:"away,omitempty"`

	// Patience is how long, in seconds, requests to a store that does not answer are
	// retried, also at the unmount.
	Patience float64 `json:"patienceSeconds,omitempty"`

	Halted   []string `json:"halted,omitempty"`   // halts that wait for --confirm
	Excluded int      `json:"excluded,omitempty"` // entries of the store that are hidden locally

	InFlight []Transfer `json:"inFlight,omitempty"` // at most 20
	Held     []Held     `json:"held,omitempty"`     // at most 20

	HistoryVersions int   `json:"historyVersions"` // -1: not counted yet
	HistoryBytes    int64 `json:"historyBytes"`

	// Requests are the requests to the store's service, by the service's own name
	// of the request; they cost money.
	Requests map[string]Requests `json:"requests,omitempty"`
}

// Clone is how much of a store's content is local.
type Clone struct {
	Kind     string    `json:"kind"`               // full or blobless
	Missing  int       `json:"missing"`            // missing contents of the head; -1: not counted yet
	Fetching int       `json:"fetching,omitempty"` // contents being fetched
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
	PRWanted time.Time `json:"prWantedSince,omitzero"` // set while its pull request is missing

	// Refused is why the remote did not take it, in one word; RefusedSays is the remote's text.
	Refused      string    `json:"refused,omitempty"`
	RefusedSays  string    `json:"refusedSays,omitempty"`
	RefusedSince time.Time `json:"refusedSince,omitzero"`
}

// Fails is a failure in the background that is tried again.
type Fails struct {
	Since time.Time `json:"since"`
	Next  time.Time `json:"next"`
	Error string    `json:"error"` // "": it was canceled, or is under way
}

// Failing is failing work of which no program learns, or not the reason.
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

// Held is a change that is held back, and why.
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
