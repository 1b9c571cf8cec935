package audit

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/testrun"
	"github.com/wsmount/wsmount/integration/tier"
)

func TestMain(m *testing.M) { os.Exit(testrun.Main(m)) }

var at = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func open_(t *testing.T, path string) *Log {
	t.Helper()
	l := assert.Of(Open(path, Options{Now: func() time.Time { return at }})).OK(t)
	t.Cleanup(func() { l.Close() })
	return l
}

func lines(t *testing.T, path string) []map[string]any {
	t.Helper()
	f := assert.Of(os.Open(path)).OK(t)
	defer f.Close()
	var out []map[string]any
	s := bufio.NewScanner(f)
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		var m map[string]any
		assert.OK(t, json.Unmarshal(s.Bytes(), &m), s.Text())
		out = append(out, m)
	}
	return out
}

// every is one record of each kind.
var every = []Record{
	Reveal{Slug: "s", Workspace: "@a/b"}, RevealAsked{Slug: "s"}, RevealFailed{Slug: "s"}, RevealDenied{Slug: "s"}, Denied{What: "w"},
	PolicyDecision{Decision: "allow"}, CrossOwnerRef{From: "@a/b"}, Push{Remote: "r"}, Conflict{Path: "p"}, Registration{Verb: "add"},
	PersonalWriteAsked{Locator: "l"}, PersonalWrite{Locator: "l"}, PersonalWriteFailed{Reason: "r"}, Published{Bundle: "b"},
}

func TestEveryRecordIsOneObjectOnALine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	l := open_(t, path)
	for _, r := range every {
		assert.OK(t, l.Write(r))
	}
	got := lines(t, path)
	assert.Must(t, len(got) == len(every), len(got), "lines", len(every))
	seen := map[any]bool{}
	for i, m := range got {
		assert.True(t, m["event"] == every[i].event() && m["time"] == "2026-11-20T12:00:00Z" && !seen[m["event"]], "record", i, m)
		seen[m["event"]] = true
	}
	if got[0]["slug"] != "s" || got[0]["workspace"] != "@a/b" {
		t.Errorf("fields lost: %v", got[0])
	}
	assert.Equal(t, assert.Of(os.Stat(path)).OK(t).Mode().Perm(), 0o600, "mode")
}

// A reveal and each kind of denial survive a power cut; what comes by the
// thousand is left to the kernel.
func TestWhatIsDurable(t *testing.T) {
	for r, want := range map[string]bool{
		"reveal": Reveal{}.durable(), "asked reveal": RevealAsked{}.durable(), "failed reveal": RevealFailed{}.durable(), "denied reveal": RevealDenied{}.durable(), "denial": Denied{}.durable(),
		"denied by policy": PolicyDecision{Decision: "deny"}.durable(), "refused ref": CrossOwnerRef{}.durable(),
	} {
		assert.True(t, want, r, "is not")
	}
	assert.True(t, !(PolicyDecision{Decision: "allow"}).durable() && !(Conflict{}).durable(), "an allowed action or a conflict waits for the disk")
}

// The disk has a denial when it is refused, and all that stands before it.
func TestDenialReachesTheDisk(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	l := open_(t, path)
	tier.Dirty(t, func() string {
		assert.OK(t, l.Write(Conflict{}))
		return path
	})
	assert.OK(t, l.Write(Denied{What: "all"}))
	tier.OnDisk(t, path)
}

// The attack: a manifest's text that looks like a second record.
func TestTextCannotForgeARecord(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	l := open_(t, path)
	assert.OK(t, l.Write(Denied{What: "x\"}\n{\"event\":\"secret.reveal\"\u2028\x1b[2J"}))
	raw, _ := os.ReadFile(path)
	n := strings.Count(string(raw), "\n")
	assert.True(t, n == 1 && !strings.Contains(string(raw), "\x1b"), raw)
}

func TestRecordsAreBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	l := open_(t, path)
	huge := strings.Repeat("x", 1<<20)
	list := make([]string, 10000)
	for i := range list {
		list[i] = huge[:2000]
	}
	for _, r := range []Record{Denied{What: huge, Reason: huge, Workspace: huge}, PolicyDecision{Chain: list, Warnings: list},
		Reveal{Slug: huge, Actor: Actor{huge, list}, Classification: list}} {
		before, _ := os.Stat(path)
		assert.OK(t, l.Write(r))
		after, _ := os.Stat(path)
		n := after.Size() - before.Size()
		assert.True(t, n <= 256<<10, r, "took", n)
	}
	assert.Equal(t, list[0], huge[:2000], "the caller's list was changed")
}

// Every text field of every record has to go through cut: a new field that
// is forgotten fails here.
func TestEveryTextIsBounded(t *testing.T) {
	for _, r := range every {
		v := reflect.New(reflect.TypeOf(r)).Elem()
		fill(v)
		line := assert.Of(encode(v.Interface().(Record), at)).OK(t)
		if strings.Contains(string(line), strings.Repeat("x", maxText+1)) {
			t.Errorf("%T has a text without a bound", r)
		}
	}
}

func fill(v reflect.Value) {
	for i := range v.NumField() {
		switch f := v.Field(i); f.Kind() {
		case reflect.String:
			f.SetString(strings.Repeat("x", maxText*2))
		case reflect.Slice:
			f.Set(reflect.ValueOf([]string{strings.Repeat("x", maxText*2)}))
		case reflect.Struct:
			fill(f)
		}
	}
}

func TestConcurrentWritersOfTwoLogs(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	logs := []*Log{open_(t, path), open_(t, path)}
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for j := range 50 {
				assert.Is(t, logs[i%2].Write(Push{Remote: fmt.Sprint(i, "-", j), Branch: strings.Repeat("b", 900)}), nil)
			}
		})
	}
	wg.Wait()
	assert.Equal(t, len(lines(t, path)), 400, "records")
}

func TestOpenRefuses(t *testing.T) {
	for _, c := range []struct {
		name    string
		prepare func(path string) error
	}{
		{"a link to another file", func(p string) error {
			if err := os.WriteFile(p+".other", nil, 0o600); err != nil {
				return err
			}
			return os.Symlink(p+".other", p)
		}},
		{"a device", func(p string) error { return os.Symlink("/dev/null", p) }},
		{"a file that others can read", func(p string) error { return os.WriteFile(p, nil, 0o644) }},
		{"a second name for another file", func(p string) error {
			if err := os.WriteFile(p+".other", nil, 0o600); err != nil {
				return err
			}
			return os.Link(p+".other", p)
		}},
		{"a directory", func(p string) error { return os.Mkdir(p, 0o700) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "audit.log")
			assert.OK(t, c.prepare(path))
			if l, err := Open(path, Options{}); err == nil {
				l.Close()
				t.Error("opened")
			}
		})
	}
}

func TestRotation(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	l := open_(t, path)
	write := func() {
		t.Helper()
		assert.OK(t, l.Write(Denied{What: "w"}))
	}
	write()
	assert.OK(t, os.Rename(path, path+".1"))
	write()
	write()
	a, b := len(lines(t, path+".1")), len(lines(t, path))
	assert.True(t, a == 1 && b == 2, a, b, "records, want 1 and 2")
	assert.OK(t, os.Rename(path, path+".2")) // and makes a new one, as logrotate does
	assert.OK(t, os.WriteFile(path, nil, 0o600))
	write()
	assert.Equal(t, len(lines(t, path+".2")), 2, "records in what has another name")
	assert.Equal(t, len(lines(t, path)), 1, "records in what was made instead")
}

func TestClosedAndNil(t *testing.T) {
	l := open_(t, filepath.Join(t.TempDir(), "audit.log"))
	l.Close()
	assert.True(t, l.Write(Denied{}) != nil, "a closed log took a record")
	var none *Log
	err := none.Write(Denied{})
	assert.True(t, err == nil && none.Close() == nil, "the nil log is not silent")
}

// On a full disk a record is whole or absent, and gets the room that is made for it.
func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("none", dir, "tmpfs", 0, "size=64k"); err != nil {
		tier.RequireRoot(t) // to mount a disk
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	path, other := filepath.Join(dir, "audit.log"), filepath.Join(dir, "other")
	made := 0
	l, err := Open(path, Options{WhileFull: func(do func() error) error {
		err := do()
		if errors.Is(err, unix.ENOSPC) && os.Remove(other) == nil {
			made++
			err = do()
		}
		return err
	}})
	assert.OK(t, err)
	defer l.Close()
	_ = os.WriteFile(other, make([]byte, 32<<10), 0o600)
	records := 0
	for ; err == nil; records++ {
		err = l.Write(Denied{Workspace: "@acme/ops", What: "storage", Reason: strings.Repeat("r", 900)})
	}
	b, rerr := os.ReadFile(path)
	if lines := bytes.Count(b, []byte("\n")); !errors.Is(err, unix.ENOSPC) || rerr != nil || made != 1 || lines != records-1 || b[len(b)-1] != '\n' {
		t.Errorf("%d lines of %d records, the last %q; room was made %d times: %v, %v", lines, records-1, b[max(0, len(b)-20):], made, err, rerr)
	}
}
