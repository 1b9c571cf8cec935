//go:build soak

package crash

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/internal/crasher"
	"github.com/wsmount/wsmount/integration/internal/harness"
	"github.com/wsmount/wsmount/integration/testrun"
)

// Files that were synced are there in whole after a loss of power, or are gone
// as somebody wanted: also those that were just being replaced and removed. The power goes
// at whatever moment comes, and so it is here; what a rename over a file begins to write
// is in make test.
func TestPowerLossWhileReplacing(t *testing.T) {
	t.Parallel()
	if !testrun.Private(t, "-cuts", strconv.Itoa(*cuts)) {
		return
	}
	s := newStage(t, syncAsked)
	p := &power{stage: s, disk: newDisk(t, s.w.Path("state"), 512<<20)}
	s.w.Own("state", 0o700)
	p.mount()
	back := 0
	for p.round = range *cuts {
		dir := filepath.Join(p.m.Dir, p.dir(0))
		assert.OK(t, os.Mkdir(dir, 0o755))
		var work sync.WaitGroup
		var safe [8]atomic.Int64 // how many files each was told are safe
		for i := range safe {
			work.Go(func() { saver(dir, i, &safe[i]) })
		}
		work.Go(func() { syncer(dir) })
		harness.Eventually(t, "each has replaced and removed some files", func() bool {
			for i := range safe {
				if safe[i].Load() < 10 {
					return false
				}
			}
			return true
		})
		var synced []int // before the cut: see power.cut
		for i := range safe {
			synced = append(synced, int(safe[i].Load()))
		}
		p.disk.Off()
		err := syscall.Kill(p.m.PID, syscall.SIGKILL)
		assert.Must(t, err == nil || errors.Is(err, syscall.ESRCH), err)
		work.Wait()
		p.m.WaitGone()
		p.disk.On()
		p.m.Start()
		back += p.intact(dir, synced)
		assert.Must(t, !t.Failed(), "after cut", p.round+1)
	}
	t.Logf("%d cuts, %d files looked at", *cuts, back)
}

const savedLen = 3000

func saved(i, k int) []byte { return crasher.Pattern(uint64(i)<<32|uint64(k), savedLen) }

// saver makes files, syncs each, and renames it over the one before, or
// removes it, until there is no power. safe is how many it has synced.
func saver(dir string, i int, safe *atomic.Int64) {
	for k := 0; ; k++ {
		name := filepath.Join(dir, fmt.Sprintf("new-%d-%d", i, k))
		err := putSynced(name, saved(i, k))
		if err != nil {
			return
		}
		safe.Store(int64(k + 1))
		if k%3 == 2 {
			err = os.Remove(name)
		} else {
			err = os.Rename(name, filepath.Join(dir, fmt.Sprintf("saved-%d", i)))
		}
		if err != nil {
			return
		}
	}
}

func putSynced(name string, b []byte) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	return errors.Join(err, f.Sync(), f.Close())
}

// syncer makes the disk's journal go on.
func syncer(dir string) {
	f, err := os.Create(filepath.Join(dir, "syncer"))
	if err != nil {
		return
	}
	defer f.Close()
	for err == nil {
		if _, err = f.WriteAt([]byte("x"), 0); err == nil {
			err = f.Sync()
		}
	}
}

// intact looks at what is there after a loss of power.
func (p *power) intact(dir string, synced []int) (looked int) {
	list := assert.Of(os.ReadDir(dir)).OK(p.t)
	for _, e := range list {
		i, k := 0, 0
		kind, number, _ := strings.Cut(e.Name(), "-")
		if kind == "syncer" {
			continue
		}
		got, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			p.t.Error(err)
			continue
		}
		looked++
		fmt.Sscanf(number, "%d-%d", &i, &k)
		fits := bytes.Equal(got, saved(i, k)) || kind == "new" && k >= synced[i]
		for k = 0; kind == "saved" && !fits && k < 10_000; k++ {
			fits = bytes.Equal(got, saved(i, k))
		}
		if !fits {
			p.t.Errorf("cut %d: %s has %d bytes that it never had", p.round+1, e.Name(), len(got))
		}
	}
	return looked
}
