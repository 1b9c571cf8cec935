package daemon

import (
	"context"
	"errors"
	"syscall"
	"testing"
	"time"

	"github.com/wsmount/wsmount/cache"
	"github.com/wsmount/wsmount/cmd/internal/commits"
	"github.com/wsmount/wsmount/cmd/internal/freshness"
	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/mountspec"
	"github.com/wsmount/wsmount/providers"
)

// looking is a syncing that programs look at, and whose TTL is a minute.
type looking struct {
	*syncing
	asked int // fetches that were counted
}

func newLooking(t *testing.T) *looking {
	s := byHand()
	s.Pull.On, s.Pull.TTL = mountspec.EventWorkspaceOpen, time.Minute
	w := newSyncing(t, s)
	l := &looking{syncing: w}
	assert.True(t, w.arm(), "it is armed")
	return l
}

// push has others push a file.
func (l *looking) push(name, content string) {
	l.Helper()
	assert.OK(l, l.remote.Tamper("main", providers.MustLocator(name), []byte(content)))
}

// finds looks a name up, and wants so many fetches to be made since the last look.
func (l *looking) finds(name string, want bool, fetches int, what string) fs.Entry {
	l.Helper()
	e := assert.Of(l.copy.Lookup(&fs.Op{}, fs.RootIno, name)).OK(l)
	assert.Equal(l, e.Ino != 0, want, what+": it is there")
	l.fetches(fetches, what)
	if e.Ino != 0 {
		l.copy.Forget(e.Ino, 1)
	}
	return e
}

func (l *looking) fetches(want int, what string) {
	l.Helper()
	n := l.clone.Switches().Calls()[providers.MethodFetch]
	assert.Equal(l, n-l.asked, want, what+": fetches")
	l.asked = n
}

// Within the TTL nothing is asked; after it the first look, of whatever kind, waits for
// what is new; and the kernel believes nothing for longer.
func TestLookAfterTheTTL(t *testing.T) {
	for name, look := range map[string]func(l *looking, ino fs.Ino) error{
		"lookup": func(l *looking, _ fs.Ino) error { return assert.ErrOf(l.copy.Lookup(&fs.Op{}, fs.RootIno, "other")) },
		"readdir": func(l *looking, _ fs.Ino) error {
			d, err := l.copy.OpenDir(&fs.Op{}, fs.RootIno)
			if err == nil {
				d.Release()
			}
			return err
		},
		"stat of a directory": func(l *looking, _ fs.Ino) error { return assert.ErrOf(l.copy.Attr(&fs.Op{}, fs.RootIno, nil)) },
		"open": func(l *looking, ino fs.Ino) error {
			o, err := l.copy.Open(&fs.Op{}, ino, syscall.O_RDONLY)
			if err == nil {
				o.File.Release()
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLooking(t)
			f := assert.Of(l.copy.Lookup(&fs.Op{}, fs.RootIno, "f")).OK(t)
			l.fetches(1, "the first look")
			l.push("new", "new")
			l.at = l.at.Add(time.Minute - 1)
			e := l.finds("new", false, 0, "within the TTL")
			assert.Equal(t, e.TTL, 1, "the kernel believes a name that is not there for")
			f = assert.Of(l.copy.Lookup(&fs.Op{}, fs.RootIno, "f")).OK(t)
			assert.Equal(t, max(f.TTL, f.Attr.TTL), 1, "the kernel believes a name and its attributes for")
			l.at = l.at.Add(1)
			assert.OK(t, look(l, f.Ino))
			l.fetches(1, "after the TTL")
			l.finds("new", true, 0, "after that")
			l.copy.Forget(f.Ino, 2)
		})
	}
}

// Whoever has a file open goes on with it, however old it is.
func TestOpenFileWaitsForNoPull(t *testing.T) {
	l := newLooking(t)
	e := assert.Of(l.copy.Lookup(&fs.Op{}, fs.RootIno, "f")).OK(t)
	o := assert.Of(l.copy.Open(&fs.Op{}, e.Ino, syscall.O_RDWR)).OK(t)
	l.fetches(1, "the first look")
	l.at = l.at.Add(time.Hour)
	assert.OK(t, assert.ErrOf(l.copy.Attr(&fs.Op{}, e.Ino, nil)))
	assert.OK(t, assert.ErrOf(o.File.Write(&fs.Op{}, []byte("ours"), 0)))
	buf := make([]byte, 8)
	_, err := o.File.Read(&fs.Op{}, buf, 0)
	assert.OK(t, errors.Join(err, o.File.Fsync(&fs.Op{}, false), o.File.Flush(&fs.Op{})))
	o.File.Release()
	l.copy.Forget(e.Ino, 1)
	l.fetches(0, "with an open file")
}

// In a turn, and while there are changes of ours, nothing comes: a look does not wait, and
// the kernel asks again soon. When that is over, the next look waits.
func TestLookThatNothingCanComeFor(t *testing.T) {
	for _, c := range []struct {
		what       string
		begin, end func(l *looking)
	}{
		{"a turn", func(l *looking) { l.event(mountspec.EventTurnStart, nil) }, func(l *looking) { l.event(mountspec.EventTurnEnd, nil) }},
		{"changes", func(l *looking) {
			e, o, err := l.copy.Create(&fs.Op{}, fs.RootIno, "ours", syscall.O_WRONLY, syscall.S_IFREG|0o644)
			assert.OK(l, err)
			o.File.Release()
			l.copy.Forget(e.Ino, 1)
		}, func(l *looking) {
			l.copy.messages.Bind(commits.Bound{}) // nobody asks the policy, which grants nothing
			assert.OK(l, assert.ErrOf(l.copy.Commit(l.Context(), cache.CommitOptions{})))
		}},
	} {
		t.Run(c.what, func(t *testing.T) {
			l := newLooking(t)
			l.finds("new", false, 1, "the first look")
			l.push("new", "new")
			c.begin(l)
			l.at = l.at.Add(time.Minute)
			e := l.finds("new", false, 0, "meanwhile")
			assert.Equal(t, e.TTL, freshness.Recheck, "meanwhile the kernel believes it for")
			c.end(l)
			l.asked = l.clone.Switches().Calls()[providers.MethodFetch]
			l.at = l.at.Add(time.Minute)
			e, err := l.copy.Lookup(&fs.Op{}, fs.RootIno, "new")
			assert.Must(t, err == nil && e.Ino != 0, "afterwards: got", e.Ino, err)
		})
	}
}

// A remote that fails keeps nobody waiting twice, and what is shown then is told to be
// old. When it answers, it is not.
func TestLookAtARemoteThatFails(t *testing.T) {
	l := newLooking(t)
	l.finds("new", false, 1, "the first look")
	l.push("new", "new")
	l.at = l.at.Add(time.Minute)
	l.clone.Switches().Fail(providers.MethodFetch, 1, providers.ErrPermission)
	l.finds("new", false, 1, "the look that meets it")
	assert.True(t, l.freshness.Stale() != nil, "it is told to be stale")
	l.at = l.at.Add(time.Second)
	l.finds("new", false, 0, "the next look")
	assert.Equal(t, l.asks(time.Minute-time.Second-1, 0), 0, "pulls in the pause")
	assert.Equal(t, l.asks(1, 0), 1, "pulls after the pause")
	l.fetches(1, "after the pause")
	l.finds("new", true, 0, "when it has answered")
	assert.True(t, l.freshness.Stale() == nil, "it is told to be fresh")
}

// late is a looking whose TTL is over and whose remote answers when it is told to. asked is
// closed when it is asked.
func late(t *testing.T) (l *looking, asked, answer chan struct{}) {
	l = newLooking(t)
	l.finds("new", false, 1, "the first look")
	l.push("new", "new")
	l.at = l.at.Add(time.Minute)
	asked, answer = make(chan struct{}), make(chan struct{})
	l.slow = func(ctx context.Context) error {
		close(asked)
		select {
		case <-answer:
		case <-ctx.Done():
		}
		return ctx.Err()
	}
	l.clone.Switches().Delay(1)
	return l, asked, answer
}

// Nobody waits longer than the patience for a remote that answers late, nor does anybody
// after that.
func TestLookIsPatientOnce(t *testing.T) {
	l, _, _ := late(t)
	l.copy.patience = time.Millisecond
	for range 2 {
		assert.Equal(t, assert.Of(l.copy.Lookup(&fs.Op{}, fs.RootIno, "new")).OK(t).Ino, 0, "what is known")
		assert.True(t, l.freshness.Stale() != nil, "it is told to be stale")
		l.copy.patience = time.Hour
	}
}

// When the first has waited long enough, the others go too; the pull goes on, and what it
// brings is shown.
func TestLookAtARemoteThatIsLate(t *testing.T) {
	l, asked, answer := late(t)
	waited := make(chan error)
	go func() {
		_, err := l.copy.Lookup(&fs.Op{}, fs.RootIno, "new")
		waited <- err
	}()
	<-asked
	l.unreachable(errLate)
	assert.OK(t, <-waited)
	l.finds("new", false, 1, "the next look, while it is being asked")
	assert.True(t, !l.gate.tryTake(), "the pull is still under way")
	close(answer)
	l.gate.token <- struct{}{} // when it has ended
	l.gate.give()
	l.finds("new", true, 0, "when it has answered")
	assert.True(t, l.freshness.Stale() == nil, "it is told to be fresh")
}
