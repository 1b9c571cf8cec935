package crash

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/internal/crasher"
	"github.com/wsmount/wsmount/integration/internal/harness"
	"github.com/wsmount/wsmount/integration/tier"
)

var kills = flag.Int("kills", tier.Pick(0, 50), "how often the daemon of a working copy is killed, at points in a random order; more often as long as $SOAK says; 0: at one point that each test names")

// clientCount is how many programs work while their file system dies, and longQueue how
// many changes wait then where closes do not.
var clientCount, longQueue = tier.Pick(4, 8), tier.Pick(30, 100)

// A killPoint is where the daemon dies.
type killPoint struct {
	name    string
	call    string // of the storage,
	after   bool
	syscall string // or a system call of the daemon; neither: at any time
}

// killPoints are those of a storage.
func killPoints(calls []string) []killPoint {
	points := []killPoint{{name: "any time"}}
	for _, call := range calls {
		points = append(points, killPoint{"before " + call, call, false, ""}, killPoint{"after " + call, call, true, ""})
	}
	for _, call := range []string{"pwrite64", "write", "openat", "unlinkat", "fdatasync", "ftruncate"} {
		points = append(points, killPoint{name: "at " + call, syscall: call})
	}
	return points
}

// SIGKILL of the daemon of a working copy loses nothing that was acknowledged,
// wherever it hits, and the storage gets all of it afterwards.
func TestCrashWorkingCopy(t *testing.T) {
	t.Parallel()
	t.Run("canonical", func(t *testing.T) {
		t.Parallel()
		newCrash(t, newStage(t, syncCanonical), 1).run((*kills+1)/2, "after write")
	})
	t.Run("pull-push", func(t *testing.T) {
		t.Parallel()
		newCrash(t, newStage(t, syncSoon), 2).queues().run(*kills/2, "at fdatasync")
	})
}

// newCrash prepares a run of kills; which makes its random numbers its own.
func newCrash(t *testing.T, s *stage, which uint64) *crash {
	t.Helper()
	tier.RequireTools(t, "strace")
	return &crash{stage: s, r: rand.New(rand.NewPCG(tier.Seed(t), which)), hits: map[string]int{}}
}

// queues says that closes do not wait for the storage: kills hit a long queue. However
// much of it are deletions, no commit halts for that: the storage has more.
func (c *crash) queues() *crash { c.behind = true; return c }

// run kills so often at points in a random order; not once: at the one of a name, which
// has to come.
func (c *crash) run(rounds int, name string) {
	c.t.Helper()
	if rounds == 0 {
		all := killPoints(c.far.calls())
		at := slices.IndexFunc(all, func(p killPoint) bool { return p.name == name })
		assert.True(c.t, at >= 0, "no point is called", name)
		c.points, c.comes, rounds = all[at:at+1], true, 1
	}
	c.start()
	if c.each && !c.comes {
		c.meet()
	}
	for range tier.Rounds(rounds) {
		c.round()
	}
	c.report()
}

// crash is a run of kills of one mount.
type crash struct {
	*stage
	behind  bool // see queues
	flags   []string
	killed  func(what string) // called while the daemon is dead; may be nil
	r       *rand.Rand
	clients []*crasher.Client
	// happened says of each client whether its last operation has happened, which it is
	// told when the next round begins; nil: they all work.
	happened []bool
	points   []killPoint // still to come
	comes    bool        // these are certain to
	each     bool        // each call comes while the clients work, see meet
	hits     map[string]int
	rounds   int
	queued   int // rounds that began with a long queue
}

// start fills the storage, mounts it and starts the clients.
func (c *crash) start() {
	var files []crasher.File
	for i := range 4 {
		files = append(files, crasher.File{Name: fmt.Sprint("r", i), Seed: uint64(i), Len: 70_000})
	}
	logs := c.w.Mkdir("logs", 0o755)
	there := map[string][]byte{}
	for i := range clientCount {
		for _, f := range files {
			there[fmt.Sprintf("c%d/%s", i, f.Name)] = f.Bytes()
		}
	}
	if c.behind {
		for i := range clientCount * crasher.MaxNames {
			there[fmt.Sprint("kept/", i)] = []byte("kept")
		}
	}
	c.fill(there)
	c.mount(c.flags...)
	if c.behind { // it will work without the storage
		treeLines(c.t, c.m.Dir)
	}
	for i := range clientCount {
		client, err := crasher.Start(crasher.Options{Dir: fmt.Sprintf("%s/c%d", c.m.Dir, i), Seed: c.r.Uint64(),
			Log: filepath.Join(logs, strconv.Itoa(i)), Files: files})
		assert.OK(c.t, err)
		c.t.Cleanup(client.Kill)
		c.clients = append(c.clients, client)
	}
}

// progress waits until every client has been told n more things.
func (c *crash) progress(n int) {
	c.t.Helper()
	for i, client := range c.clients {
		goal := client.Acked() + n
		for end := time.Now().Add(harness.Hangs); client.Acked() < goal; time.Sleep(2 * time.Millisecond) {
			if time.Now().After(end) {
				ops, _, err := crasher.History(client.Log)
				c.t.Fatalf("kill %d: client %d, with %d of %d, hangs in %v, %v, says %q\n%s", c.rounds, i, client.Acked(), goal,
					ops[max(0, len(ops)-5):], err, client.Said(time.Second), c.daemonLog())
			}
		}
	}
}

// meet lets the clients work until each call that a kill can hit has come. One that never
// does fails by its name, and no kill waits for it.
func (c *crash) meet() {
	c.t.Helper()
	var missing []string
	for range 20 {
		c.progress(10)
		missing = slices.DeleteFunc(c.far.calls(), func(call string) bool { _, came := c.came.Load(call); return came })
		if len(missing) == 0 {
			return
		}
	}
	c.t.Fatalf("the storage is never asked for %q, where kills are to hit", missing)
}

// round is one kill: work, die, come back, compare, settle, compare.
func (c *crash) round() {
	if len(c.points) == 0 {
		c.points = killPoints(c.far.calls())
		c.r.Shuffle(len(c.points), func(i, j int) { c.points[i], c.points[j] = c.points[j], c.points[i] })
	}
	p := c.points[0]
	c.points = c.points[1:]
	what := fmt.Sprintf("kill %d, %s", c.rounds+1, p.name)
	for i, happened := range c.happened {
		assert.OK(c.t, c.clients[i].Go(happened))
	}
	c.progress(5)
	c.rounds++
	if c.behind {
		c.far.cut()
		c.queue(longQueue)
		c.queued++
	} else {
		c.progress(10)
	}
	c.kill(p)
	for i, client := range c.clients {
		said := client.Said(harness.Hangs)
		assert.Must(c.t, said == "dead", what, "client", i, "says", said)
	}
	if c.killed != nil {
		c.killed(what)
	}
	c.m.Start()
	c.happened = nil
	for i, client := range c.clients {
		c.happened = append(c.happened, c.check(fmt.Sprintf("%s, client %d", what, i), client))
	}
	c.far.connect()
	c.settle()
	c.converged()
	if c.t.Failed() {
		c.t.Fatalf("after %s\n%s", what, c.problems())
	}
}

// queue waits until the storage lacks more than n changes.
func (c *crash) queue(n int) {
	c.t.Helper()
	for end := time.Now().Add(harness.Hangs); ; time.Sleep(100 * time.Millisecond) {
		u := c.unsent()
		if u.Queue > n {
			return
		}
		assert.Must(c.t, !time.Now().After(end), "no queue of", n, u)
	}
}

// kill kills the daemon at a point, or after a while if it does not get there.
func (c *crash) kill(p killPoint) {
	patience := time.Minute
	if c.comes {
		patience = harness.Hangs
	}
	switch {
	case p.syscall != "":
		c.strace(p, patience)
	case p.call != "":
		tr := c.set(p.call, p.after, c.nth(4))
		defer close(tr.free) // what hangs there ends after the daemon
		c.far.connect()
		select {
		case <-tr.hit:
			c.hits[p.name]++
		case <-time.After(patience):
			c.misses(p.call)
		}
		defer c.trap.Store(nil)
	default:
		time.Sleep(time.Duration(c.r.IntN(50)) * time.Millisecond)
		c.hits[p.name]++
	}
	err := syscall.Kill(c.m.PID, syscall.SIGKILL)
	assert.Must(c.t, err == nil || err == syscall.ESRCH, err)
	c.m.WaitGone()
}

// nth is which of the calls that come is hit.
func (c *crash) nth(most int) int {
	if c.comes {
		return 1
	}
	return 1 + c.r.IntN(most)
}

// misses notes that a point did not come.
func (c *crash) misses(call string) {
	c.t.Logf("no %s came", call)
	if c.comes {
		c.t.Fail()
	}
}

// strace kills the daemon at the entry of a system call.
func (c *crash) strace(p killPoint, patience time.Duration) {
	pid := c.m.PID
	cmd := exec.Command("strace", "-f", "-qqq", "-o", os.DevNull, "-p", strconv.Itoa(pid), "-e", "trace="+p.syscall,
		"-e", fmt.Sprintf("inject=%s:signal=SIGKILL:when=%d", p.syscall, c.nth(3)))
	assert.OK(c.t, cmd.Start())
	c.far.connect()
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	select {
	case <-done:
		c.hits[p.name]++
	case <-time.After(patience):
		c.misses(p.syscall)
		cmd.Process.Kill()
		<-done
	}
}

// check compares a client's directory with what it was told, and says whether
// the operation that failed has happened.
func (c *crash) check(what string, client *crasher.Client) bool {
	c.t.Helper()
	ops, whole, err := crasher.History(client.Log)
	assert.OK(c.t, err)
	before := ops
	if !whole {
		before = ops[:len(ops)-1]
	}
	for end := time.Now().Add(c.far.late()); ; time.Sleep(20 * time.Millisecond) {
		after := crasher.Check(client.Dir, crasher.Replay(client.Files, ops))
		if len(after) == 0 {
			return true
		}
		without := crasher.Check(client.Dir, crasher.Replay(client.Files, before))
		if len(without) == 0 {
			return false
		}
		if time.Now().After(end) {
			c.t.Errorf("%s, which was in %v: as if it had not happened %q, as if it had %q; before it: %v",
				what, ops[len(ops)-1], without, after, ops[max(0, len(ops)-12):len(ops)-1])
			return true
		}
	}
}

// report ends the clients and says what was hit. In a run that comes to every point six
// times and more, as with SOAK=10m, each was hit once in six: not every call comes each
// time, as when the clients have all the directories that they may have.
func (c *crash) report() {
	for _, client := range c.clients {
		client.Kill()
	}
	c.t.Logf("%d kills, %d with a queue of %d, %v", c.rounds, c.queued, longQueue, c.hits)
	points := killPoints(c.far.calls())
	tries := c.rounds / len(points)
	for _, p := range points {
		if c.hits[p.name] < tries/6 {
			c.t.Errorf("%s: hit %d times of %d, want a sixth of them", p.name, c.hits[p.name], tries)
		}
	}
}
