package control

import (
	"strings"
	"time"

	"github.com/wsmount/wsmount/cache"
	"github.com/wsmount/wsmount/mountspec/host/location"
)

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

	// Away is why a store cannot be reached, as the last request said; "": it answered.
	Away string `json:"away,omitempty"`

	// Patience is for how long, in seconds, a store that does not answer is tried, at the
	// unmount too.
	Patience float64 `json:"patienceSeconds,omitempty"`

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
