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
//	POST /v1/replace?path=&old=      the body is the new content; old is the condition
//	POST /v1/lock?path=&old=         held until the caller hangs up: the lock of a file in a local directory
//	GET  /v1/hold            held until the caller hangs up: the mount stays meanwhile
//	POST /v1/unmount         UnmountRequest -> UnmountResult
//	GET  /v1/debug           Debug
//	GET  /metrics            Prometheus text
//
// JSON is that of package exactjson: a byte of a name that is not UTF-8 stands in it as U+0000
// and two hexadecimal digits. In a query it is escaped as any other byte.
//
// It promises that only root and the user of the daemon are answered (SO_PEERCRED), that every
// call that changes something is logged with its caller, and that no answer holds a secret.
//
//	srv, err := control.Listen(dir.SocketPath(), backend, control.Options{Log: log})
//	client := control.NewClient(record.SocketPath())
//	status, err := client.Status(ctx)
package control

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/cmd/internal/mountpoint"
	"github.com/wsmount/wsmount/mountspec"
)

// Schemas of the API's answers.
const (
	StatusSchema  = "wsmount.status/v1"
	EventSchema   = "wsmount.event/v1"
	UnmountSchema = "wsmount.umount/v1"
	ErrorSchema   = "wsmount.error/v1"
	DebugSchema   = "wsmount.debug/v1"
	WorkSchema    = "wsmount.work/v1"
)

// State is the state of a mount.
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

// Status is everything known of a mount.
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

	// Places are the directories of the host that programs in the mount must not learn.
	Places []string `json:"places,omitempty"`

	// NotSafe is set in the last status of a mount that ended before all changes
	// were where policy wants them: it names those that are not.
	NotSafe string `json:"notSafe,omitempty"`

	Fetching Fetching `json:"fetching"`
	Hooks    []Hook   `json:"hooks,omitempty"` // those of the host

	Operations     uint64 `json:"operations"`
	Panics         uint64 `json:"panics"`
	Notifications  uint64 `json:"notifications"`
	UnsavedBytes   int64  `json:"unsavedBytes"`
	ConflictsTotal int    `json:"conflicts"`
}

// Hook is a webhook or a program that is told of problems.
type Hook struct {
	Name      string    `json:"name"`
	Delivered uint64    `json:"delivered"`
	Lost      uint64    `json:"lost"`              // given up, or too many at once
	Waiting   int       `json:"waiting,omitempty"` // to be delivered
	Error     string    `json:"error,omitempty"`   // of the last attempt, while it fails
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

// Fetching is the downloads under way from the stores of all parts, in bytes.
type Fetching struct {
	Limit   int64 `json:"limit"`
	Used    int64 `json:"used"`
	Ahead   int64 `json:"ahead"`   // of these, the prefetched ones
	Waiting int   `json:"waiting"` // fetches that wait until there is room
}

// NotSafe is the error of a mount that ended before all was safe. The text is from
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

// Code describes a code project (CODE.md) and the command that a runner would invoke;
// wsmount runs nothing of it.
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

// A Person is an author of commits.
type Person struct {
	Name  string `json:"name,omitempty"`
	Email string `json:"email"`
}

// Work is the work of a mount that callers wait for.
type Work struct {
	Schema string `json:"schema"`
	// Beat changes whenever a commit, a pull or a push makes progress: it tells a
	// working mount from one that hangs.
	Beat uint64 `json:"beat"`
	// The step of the commit under way in a part, and its number of names; "": no such commit.
	What  string `json:"what,omitempty"`
	Part  string `json:"part,omitempty"`
	Done  int    `json:"done,omitempty"`
	Total int    `json:"total,omitempty"`
	// Fetch are the bytes that a caller waits for to be on the local disk; Fetched of them are.
	Fetch   int64 `json:"fetchBytes,omitempty"`
	Fetched int64 `json:"fetchedBytes,omitempty"`
}

// UnmountRequest ends a mount.
type UnmountRequest struct {
	Lazy  bool `json:"lazy,omitempty"`  // detach now, end with the last open file
	Force bool `json:"force,omitempty"` // fail the requests under way

	// Timeout is how long programs that are ending may take to release it; 0 is
	// mountpoint.EndingLimit.
	Timeout float64 `json:"timeoutSeconds,omitempty"`
}

// UnmountResult is the result.
type UnmountResult struct {
	Schema     string              `json:"schema"`
	Mountpoint string              `json:"mountpoint"`
	Unmounted  bool                `json:"unmounted"`
	Busy       bool                `json:"busy,omitempty"`
	Holders    []mountpoint.Holder `json:"holders,omitempty"`
	Inside     []string            `json:"mountsInside,omitempty"`
	OpenFiles  int                 `json:"openFiles,omitempty"` // if it is busy
	HeldBy     []mountpoint.Holder `json:"heldBy,omitempty"`    // whose mount namespaces keep it alive
	WaitedFor  []mountpoint.Holder `json:"waitedFor,omitempty"` // programs that used it and were ending

	// Unsent are the changes that stay in working copies because policy did not
	// want them sent, or their daemon was gone; Conflicts is how many of them are
	// conflicts. Unpushed are commits that stay likewise.
	Unsent    int `json:"unsent,omitempty"`
	Conflicts int `json:"conflicts,omitempty"`
	Unpushed  int `json:"unpushed,omitempty"`
}

// Debug is the part of a debug bundle that only the daemon has.
type Debug struct {
	Schema     string          `json:"schema"`
	Stats      json.RawMessage `json:"stats"`
	Config     json.RawMessage `json:"config"`
	Goroutines string          `json:"goroutines"`
}

// errorBody is the body of a refusal.
type errorBody struct {
	Schema string `json:"schema"`
	Error  string `json:"error"`
	Hint   string `json:"hint,omitempty"`
	Exit   int    `json:"exit"`
}
