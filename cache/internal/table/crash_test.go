package table

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/testrun"
	"github.com/wsmount/wsmount/integration/tier"
)

// The crash tests run a load whose state after each step is known, end it, and
// look for that state.

// keep is how many files the load leaves in its directory.
const keep = 50

// step makes file i and removes file i-keep, in one commit.
func step(t *Table, i int) error {
	if t.Inode(Root) == nil {
		directory(t, 0, "")
	}
	ino := t.Alloc()
	t.Put(ino, &Inode{Mode: syscall.S_IFREG, Size: int64(i), Target: strings.Repeat("x", i%700)})
	t.SetName(Root, fmt.Sprint("f", i), Name{Ino: ino, Seq: t.NextSeq()})
	if old, ok := t.Name(Root, fmt.Sprint("f", i-keep)); ok {
		t.SetName(Root, fmt.Sprint("f", i-keep), Name{})
		t.Drop(old.Ino)
	}
	t.Set("n", []byte(strconv.Itoa(i)))
	return t.Commit()
}

// verify gives the step after which t is, exactly.
func verify(t *Table) (int, error) {
	if err := t.Err(); err != nil {
		return 0, err
	}
	n, _ := strconv.Atoi(string(t.Get("n")))
	want := map[string]int{}
	for i := max(1, n-keep+1); i <= n; i++ {
		want[fmt.Sprint("f", i)] = i
	}
	var err error
	t.Names(Root, "", func(name string, got Name) bool {
		i := t.Inode(got.Ino)
		if i == nil || want[name] == 0 || i.Size != int64(want[name]) || len(i.Target) != want[name]%700 {
			err = fmt.Errorf("after step %d there is %q with %+v", n, name, i)
		}
		delete(want, name)
		return err == nil
	})
	if err == nil && len(want) > 0 {
		err = fmt.Errorf("after step %d there is no %v", n, want)
	}
	return n, errors.Join(err, t.Check())
}

// wantSteps wants t to be just as after a step.
func wantSteps(t testing.TB, tab *Table, want int, what ...any) {
	t.Helper()
	n, err := verify(tab)
	assert.Is(t, err, nil, what...)
	assert.Equal(t, n, want, append(what, "commits that are there")...)
}

func TestMain(m *testing.M) {
	tier.Checks(20, 1000)
	os.Exit(testrun.Main(m, func(r *testrun.Run) error {
		scratchDir = r.Dir
		return nil
	}))
}

// scratchDir is a directory for what several tests begin with.
var scratchDir string

// TestKilled: each Commit that returned is there after SIGKILL, through rotations of the
// log, and nothing is there in part. What the kernel has been given outlives the process.
func TestKilled(t *testing.T) {
	disk := vfs.NewCrashableMem()
	tab := open(t, "/t", Options{FS: disk, memTable: 64 << 10})
	for i := 1; i <= 900; i++ {
		assert.OK(t, step(tab, i))
		if i%61 != 0 {
			continue
		}
		after := disk.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: newRand(uint64(i))})
		next := open(t, "/t", Options{FS: after})
		wantSteps(t, next, i)
		assert.True(t, next.Session().Killed(), "it ended as", next.Session())
		assert.OK(t, next.Close())
	}
	assert.OK(t, tab.Close())
}

// TestPowerCutAnywhere cuts the power of a simulated disk after many steps,
// through rotations of the log, and lets some of what was not synced survive
// here and there; with every second seed all was synced, and nothing else survives.
func TestPowerCutAnywhere(t *testing.T) {
	tier.Seeds(t, tier.Pick(4, 40), func(t *testing.T, seed uint64) {
		disk := vfs.NewCrashableMem()
		tab := open(t, "/t", Options{FS: disk, memTable: 64 << 10, BootID: "before"})
		rng := newRand(seed)
		steps, synced, all := 1+rng.IntN(900), 0, seed%2 == 0
		for i := 1; i <= steps; i++ {
			assert.OK(t, step(tab, i))
			if rng.IntN(100) == 0 || all && i == steps {
				assert.OK(t, tab.Sync())
				synced = i
			}
		}
		survives := rng.IntN(100)
		if all {
			survives = 0
		}
		after := disk.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: survives, RNG: rng})
		assert.OK(t, tab.Close())
		tab = open(t, "/t", Options{FS: after, BootID: "after"})
		n, err := verify(tab)
		assert.True(t, err == nil && n >= synced && n <= steps, n, "of", steps, "commits are there", synced, "were synced", err)
		assert.OK(t, tab.Close())
	})
}
