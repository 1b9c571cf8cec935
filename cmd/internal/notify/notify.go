// Package notify reports problems of a mount to the hooks of the host configuration:
// conflicts, changes that are held back, pulls and pushes that fail.
//
// It looks at the statuses of the mount, and so reports each matter once, when it begins, and
// again only when it has ended in between. It promises that no caller waits for a hook; that
// a hook gets neither content of files nor secrets; that a webhook is called through the guard of
// the host, and follows no redirect; that each try has a time limit, and a notice a few tries;
// and that notices that a hook did not get are counted, and in the status.
//
//	n := notify.Start(notify.Options{Hooks: resolver.Hooks(), ...})
//	n.Observe(status) // every few seconds
//	err := n.Close()
package notify

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/wsmount/wsmount/cmd/internal/control"
	"github.com/wsmount/wsmount/mountspec/host/hook"
	"github.com/wsmount/wsmount/mountspec/host/program"
)

// Options of a Notifier.
type Options struct {
	Hooks      []hook.Hook
	Workspace  string // of the mount
	Mountpoint string
	Transport  func(url string) (http.RoundTripper, error)            // the guarded way to a webhook
	Secret     func(ctx context.Context, slug string) (string, error) // a secret of the host
	Holds      func(text string) bool                                 // says that a text holds a secret
	Lookup     func(name string) (string, bool)                       // the environment, which Start reads
	Changed    func()                                                 // called when Status has changed
	Now        func() time.Time
	Log        *slog.Logger
	pause      func(ctx context.Context, d time.Duration) error // nil: sleep
}

// A Notifier reports to hooks. A nil one has none; its methods may be called concurrently.
type Notifier struct {
	o       Options
	host    string
	senders []*sender

	mu     sync.Mutex // guards the fields below
	w      *watcher
	last   control.Status
	closed bool
}

// Start starts the senders of the hooks; nil when there are none.
func Start(o Options) *Notifier {
	if len(o.Hooks) == 0 {
		return nil
	}
	if o.pause == nil {
		o.pause = sleep
	}
	env := map[string]string{} // the process forgets it
	for _, name := range program.Variables() {
		if value, ok := o.Lookup(name); ok {
			env[name] = value
		}
	}
	o.Lookup = func(name string) (string, bool) { value, ok := env[name]; return value, ok }
	n := &Notifier{o: o, w: newWatcher()}
	n.host, _ = os.Hostname()
	names := map[string]int{}
	for _, h := range o.Hooks {
		name := h.Name()
		if names[name]++; names[name] > 1 {
			name = fmt.Sprintf("%s (%d)", name, names[name])
		}
		n.senders = append(n.senders, startSender(name, h, &n.o))
	}
	return n
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Conflict notes a conflict that was found in a workspace of the mount, which policy may have
// decided at once.
func (n *Notifier) Conflict(workspace, path string) {
	if n == nil {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.w.conflict(workspace, path)
}

// Observe reports news in the status of the mount to the hooks.
func (n *Notifier) Observe(s control.Status) {
	if n == nil {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.last = s; !n.closed {
		n.tell(n.w.look(s, false))
	}
}

// tell hands notices on. mu guards their order.
func (n *Notifier) tell(list []Notice) {
	for _, notice := range list {
		if n.o.Holds != nil && n.o.Holds(notice.Reason+"\n"+notice.Text) {
			notice.Reason, notice.Text = "", notice.Event+" in "+notice.Part+": `wsmount status` says why"
		}
		notice.ID, notice.Host, notice.Workspace, notice.Mountpoint = rand.Text(), n.host, n.o.Workspace, n.o.Mountpoint
		notice.Text = "wsmount: " + notice.Text + " (" + n.o.Mountpoint + ")"
		for _, s := range n.senders {
			if s.hook.Wants(notice.Event) {
				s.offer(notice)
			}
		}
	}
}

// Status returns the state of each hook.
func (n *Notifier) Status() (list []control.Hook) {
	if n == nil {
		return nil
	}
	for _, s := range n.senders {
		list = append(list, s.status())
	}
	return list
}

// closeTime is how long hooks may take for notices that were not sent when the mount ended.
const closeTime = 5 * time.Second

// Close sends the notices that are left, once and for a few seconds.
func (n *Notifier) Close() error {
	if n == nil {
		return nil
	}
	n.mu.Lock()
	n.tell(n.w.look(n.last, true))
	n.closed = true
	n.mu.Unlock()
	end := time.AfterFunc(closeTime, func() {
		for _, s := range n.senders {
			s.cancel()
		}
	})
	defer end.Stop()
	for _, s := range n.senders {
		s.end()
	}
	for _, s := range n.senders {
		<-s.done
	}
	return nil
}
