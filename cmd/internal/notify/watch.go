package notify

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/wsmount/wsmount/cmd/internal/control"
	"github.com/wsmount/wsmount/mountspec/host/hook"
)

// Schema of a Notice.
const Schema = "wsmount.notice/v1"

// A Notice is the report of a problem. It holds no content of files and no secret.
type Notice struct {
	Schema     string    `json:"schema"`
	ID         string    `json:"id"`    // the same however often it is sent
	Event      string    `json:"event"` // conflict, held-back, pull-failed or push-failed
	Time       time.Time `json:"time"`
	Host       string    `json:"host"` // name of the machine
	Workspace  string    `json:"workspace"`
	Mountpoint string    `json:"mountpoint"`
	Part       string    `json:"part"`            // the workspace that it is about, and
	At         string    `json:"at"`              // where that is in the mount
	Count      int       `json:"count,omitempty"` // of conflicts, or of changes that are held back
	Paths      []string  `json:"paths,omitempty"` // the first of them
	Reason     string    `json:"reason,omitempty"`
	Text       string    `json:"text"` // all of it in one line, for people
}

const (
	maxPaths = 20

	// quiet is how long nothing more is said of one matter: news meanwhile is reported
	// together.
	quiet = time.Minute
)

// A watcher finds news in a status.
type watcher struct {
	known map[string]*matter // by part, event and activity
	found map[string][]string
}

func newWatcher() *watcher {
	return &watcher{known: map[string]*matter{}, found: map[string][]string{}}
}

// A matter is the known state of an event in a part.
type matter struct {
	since time.Time       // since when something fails; zero: it does not
	count int             // of waiting names
	names map[string]bool // of them
	told  time.Time       // when it was last reported
}

// conflict notes one that was found, and may be decided already.
func (w *watcher) conflict(workspace, path string) {
	if len(w.found[workspace]) <= maxPaths && !slices.Contains(w.found[workspace], path) {
		w.found[workspace] = append(w.found[workspace], path)
	}
}

// look returns the news; last includes matters that were reported just now.
func (w *watcher) look(s control.Status, last bool) (list []Notice) {
	for _, p := range s.Parts {
		if p.Copy == nil {
			continue
		}
		about := looking{w: w, part: p, now: s.Taken, last: last}
		about.failing(hook.PullFailed, "pull")
		for _, activity := range []string{"push", "upload", "commit"} {
			about.failing(hook.PushFailed, activity)
		}
		var conflicts, held []string
		for _, h := range p.Copy.Held {
			if h.Conflict {
				conflicts = append(conflicts, h.Path)
			} else {
				held = append(held, h.Path)
			}
		}
		if about.waiting(hook.Conflict, p.Conflicts, conflicts, w.found[p.Name]) {
			delete(w.found, p.Name)
		}
		about.waiting(hook.HeldBack, p.HeldBack-p.Conflicts, held, nil)
		about.halted()
		list = append(list, about.list...)
	}
	return list
}

// looking is a look at one part.
type looking struct {
	w    *watcher
	part control.Part
	now  time.Time
	last bool
	list []Notice
}

func (l *looking) matter(event, activity string) *matter {
	key := strings.Join([]string{l.part.Name, l.part.At, event, activity}, "\n")
	if l.w.known[key] == nil {
		l.w.known[key] = &matter{}
	}
	return l.w.known[key]
}

// tell adds a notice, unless one of the same matter was just reported: then it waits.
func (l *looking) tell(m *matter, n Notice) bool {
	if !l.last && !m.told.IsZero() && l.now.Sub(m.told) < quiet {
		return false
	}
	m.told = l.now
	n.Schema, n.Time, n.Part, n.At = Schema, l.now, l.part.Name, l.part.At
	l.list = append(l.list, n)
	return true
}

// failing reports work that has begun to fail.
func (l *looking) failing(event, activity string) {
	m := l.matter(event, activity)
	i := slices.IndexFunc(l.part.Copy.Failing, func(f control.Failing) bool { return f.Activity == activity })
	if i < 0 {
		m.since = time.Time{}
		return
	}
	f := l.part.Copy.Failing[i]
	if !m.since.Equal(f.Since) && l.tell(m, Notice{Event: event, Reason: f.Error, Text: fmt.Sprintf("%s of %s fails: %s", activity, l.part.Name, f.Error)}) {
		m.since = f.Since
	}
}

// waiting reports names that wait for a person and did not before: there are count of them,
// of which some are named, and found are others that have been decided already. It reports
// whether all news was reported.
func (l *looking) waiting(event string, count int, named, found []string) bool {
	m := l.matter(event, "")
	var news []string
	for _, name := range slices.Concat(named, found) {
		if !m.names[name] && !slices.Contains(news, name) {
			news = append(news, name)
		}
	}
	more := max(count-m.count, len(news))
	if more > 0 {
		n := Notice{Event: event, Count: more, Paths: news[:min(len(news), maxPaths)]}
		one := more == 1
		n.Text = fmt.Sprintf("%s: %d %s", l.part.Name, more, map[string]map[bool]string{
			hook.Conflict: {true: "conflict", false: "conflicts"},
			hook.HeldBack: {true: "change is held back", false: "changes are held back"},
		}[event][one])
		if len(news) > 0 {
			n.Text += ": " + strings.Join(news[:min(len(news), 3)], ", ")
		}
		if !l.tell(m, n) {
			return false
		}
	}
	m.count, m.names = count, map[string]bool{}
	for _, name := range named {
		m.names[name] = true
	}
	return true
}

// halted reports a pull or commit that waits for --confirm.
func (l *looking) halted() {
	m := l.matter(hook.HeldBack, "halted")
	count := len(l.part.Copy.Halted)
	if count > m.count {
		reason := strings.Join(l.part.Copy.Halted, "; ")
		if !l.tell(m, Notice{Event: hook.HeldBack, Reason: reason, Text: fmt.Sprintf("%s waits for --confirm: %s", l.part.Name, reason)}) {
			return
		}
	}
	m.count = count
}
