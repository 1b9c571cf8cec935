package crash

import (
	"context"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/internal/crasher"
	"github.com/wsmount/wsmount/integration/internal/harness"
	"github.com/wsmount/wsmount/integration/testrun"
	"github.com/wsmount/wsmount/integration/tier"
	"github.com/wsmount/wsmount/providers"
)

var (
	cuts = flag.Int("cuts", tier.Pick(1, 24), "how often the machine of a working copy loses power; more often as long as $SOAK says")
	// cutAt is after how many operations of each client the power goes; 0: at a random
	// moment, under load.
	cutAt = tier.Pick(80, 0)
)

// A loss of power, in make soak under load, loses nothing that was synced; names are as they
// were at one moment; and what may have lost bytes never replaces what the
// storage has.
func TestPowerLoss(t *testing.T) {
	t.Parallel()
	if !testrun.Private(t, "-cuts", strconv.Itoa(*cuts)) {
		return
	}
	s := newStage(t, syncSoon)
	p := &power{stage: s, disk: newDisk(t, s.w.Path("state"), 2<<30), r: rand.New(rand.NewPCG(tier.Seed(t), 9))}
	s.w.Own("state", 0o700)
	for p.round = range tier.Rounds(*cuts) {
		p.start()
		p.cut()
		p.check()
		p.clear()
	}
	t.Logf("%d cuts, %d operations lost behind the last fsync, %d changes kept back", p.round+1, p.lost, p.suspect)
}

// power is a run of losses of power.
type power struct {
	*stage
	disk    *disk
	r       *rand.Rand
	round   int
	files   []crasher.File
	clients []*crasher.Client
	acked   []int // operations of each client that were acknowledged before the cut
	lost    int
	suspect int
}

// start mounts, and starts clients in directories that the storage has.
func (p *power) start() {
	p.files = nil
	for i := range 6 {
		p.files = append(p.files, crasher.File{Name: fmt.Sprint("r", i), Seed: p.r.Uint64(), Len: 20_000})
	}
	there := map[string][]byte{}
	for i := range clientCount {
		for _, f := range p.files {
			there[filepath.Join(p.dir(i), f.Name)] = f.Bytes()
		}
	}
	p.fill(there)
	if p.m == nil {
		p.mount()
	}
	harness.Eventually(p.t, "the new directories are here", func() bool {
		p.w.Run("pull", p.m.Dir)
		return entries(p.t, filepath.Join(p.m.Dir, p.dir(clientCount-1))) == len(p.files)
	})
	treeLines(p.t, p.m.Dir) // it will work without the storage
	p.clients = nil
	logs := p.w.Mkdir(fmt.Sprint("logs", p.round), 0o755)
	for i := range clientCount {
		client, err := crasher.Start(crasher.Options{Dir: filepath.Join(p.m.Dir, p.dir(i)), Seed: p.r.Uint64(), Power: true, Stop: cutAt,
			Log: filepath.Join(logs, strconv.Itoa(i)), Files: p.files})
		assert.OK(p.t, err)
		p.t.Cleanup(client.Kill)
		p.clients = append(p.clients, client)
	}
}

func entries(t *testing.T, dir string) int {
	t.Helper()
	list, err := os.ReadDir(dir)
	assert.Must(t, err == nil || errors.Is(err, fs.ErrNotExist), err)
	return len(list)
}

func (p *power) dir(client int) string { return fmt.Sprintf("p%d-%d", p.round, client) }

// cut takes the power: at every other time, the first among them, when the storage has
// been out of reach for a while, so that a long queue is here.
func (p *power) cut() {
	if p.round%2 == 0 {
		p.store.Switches().Cut(true)
	}
	for i, client := range p.clients {
		goal := cutAt
		if goal == 0 {
			goal = client.Acked() + 30 + p.r.IntN(60)
		}
		harness.Eventually(p.t, fmt.Sprintf("client %d gets on", i), func() bool { return client.Acked() >= goal })
	}
	// An fsync that is under way when ext4 is shut down may succeed and have
	// written nothing; where there is no power nobody hears of that.
	p.acked = nil
	for _, client := range p.clients {
		p.acked = append(p.acked, client.Acked())
	}
	p.store.Switches().Cut(true) // nor does anything go out: it was to be safe here first
	p.disk.Off()
	for _, client := range p.clients {
		client.Kill()
	}
	err := syscall.Kill(p.m.PID, syscall.SIGKILL)
	assert.Must(p.t, err == nil || errors.Is(err, syscall.ESRCH), err)
	p.m.WaitGone()
	p.disk.On()
	p.store.Switches().Connect()
}

// check mounts again and compares.
func (p *power) check() {
	p.m.Start()
	for i, client := range p.clients {
		p.compare(i, client)
	}
	p.calm()
	for i, client := range p.clients {
		p.storage(i, client)
	}
	assert.Must(p.t, !p.t.Failed(), "after cut", p.round+1)
	p.accept()
}

// compare looks for the moment that a client's directory is of: not before its
// last fsync that was acknowledged before the cut.
func (p *power) compare(i int, client *crasher.Client) {
	ops, _, err := crasher.History(client.Log)
	assert.OK(p.t, err)
	first, last := 0, len(ops)
	for k, o := range ops {
		switch synced := o.Do == "fsync" || o.Do == "store"; {
		case synced && k < p.acked[i]:
			first = k + 1
		case o.Do == "fsync":
			ops[k] = crasher.Op{Do: "write", H: o.H} // of nothing
		case synced:
			ops[k].Do = "write"
		}
	}
	var best []string
	at := 0
	for k := last; k >= first; k-- {
		found := crasher.CheckPrefix(client.Dir, client.Files, ops, k)
		if len(found) == 0 {
			p.lost += last - k
			return
		}
		if best == nil || len(found) < len(best) {
			best, at = found, k
		}
	}
	p.t.Errorf("cut %d, client %d: no moment from %d to %d fits; at %d %q", p.round+1, i, first, last, at, best)
	for _, line := range best[:min(3, len(best))] {
		path, _, _ := strings.Cut(line, ":")
		for said := range strings.Lines(p.daemonLog()) {
			if strings.Contains(said, path) || strings.Contains(said, "end cleanly") {
				p.t.Logf("%s", said)
			}
		}
		p.t.Logf("%s: %s", path, strings.Join(crasher.Story(client.Files, ops, at, path), "\n"))
	}
}

// calm has everything sent that may be sent.
func (p *power) calm() {
	p.t.Helper()
	r := p.w.Run("commit", "--confirm", p.m.Dir)
	assert.Must(p.t, r.Code == 0 || r.Code == 7, "commit: exit", r.Code, r.Err)
	u := p.unsent()
	p.suspect += u.Queue
	p.t.Logf("cut %d: commit ends with %d, %d left, held %q\n%s%s", p.round+1, r.Code, u.Queue, u.Reasons, r.Out, r.Err)
}

// accept says of what is suspect that it is good, and has it sent.
func (p *power) accept() {
	p.t.Helper()
	if p.unsent().Queue > 0 {
		r := p.w.Run("umount", p.m.Dir)
		assert.Must(p.t, r.Code == 7, "umount with suspect content: exit", r.Code, r.Err)
		p.m.WaitGone()
		p.w.MustRun("recover", "accept", "@acme/stage")
		p.m.Start()
	}
	p.w.MustRun("commit", "--confirm", p.m.Dir)
	p.settle()
	p.converged()
}

// clear removes what the clients of a round left, so that a round costs what the
// first did: each compares whole trees.
func (p *power) clear() {
	p.t.Helper()
	for i := range p.clients {
		assert.OK(p.t, os.RemoveAll(filepath.Join(p.m.Dir, p.dir(i))))
	}
	p.w.Run("commit", p.m.Dir) // which stops, for all there was is to be deleted
	p.w.MustRun("commit", "--confirm", p.m.Dir)
	p.settle()
}

// storage checks that the storage has only content that some file had at some
// moment.
func (p *power) storage(i int, client *crasher.Client) {
	ops, _, err := crasher.History(client.Log)
	assert.OK(p.t, err)
	seen := crasher.Contents(client.Files, ops)
	ctx := context.Background()
	page, err := p.store.List(ctx, loc(p.dir(i)), providers.ListOptions{Recursive: true})
	assert.Must(p.t, err == nil && page.Next == "", err, page.Next)
	for _, entry := range page.Entries {
		if entry.Kind != providers.KindFile {
			continue
		}
		content := assert.Of(p.store.Read(ctx, entry.Locator, providers.ReadOptions{})).OK(p.t)
		b, err := io.ReadAll(content.Body)
		content.Body.Close()
		assert.OK(p.t, err)
		assert.True(p.t, seen[sha256.Sum256(b)], "cut", p.round+1, "the storage has", len(b), "bytes at", entry.Locator, "that it never had")
	}
}
