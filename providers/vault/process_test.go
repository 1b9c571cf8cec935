package vault

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/testrun"
	"github.com/wsmount/wsmount/integration/tier"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/vault/internal/lock"
)

// job is what another process does with a vault, which is this test again.
type job struct {
	vault, locks string
	verb         string // that is killed; "": it adds
	die          step   // at this step of it
	count        int
}

// stepFilling is when the first of the content is in the temporary file.
const stepFilling step = "filling"

const jobEnv = "VAULT_TEST_JOB"

// TestMain does the job of another process, if it is one.
func TestMain(m *testing.M) {
	if spec := strings.Split(os.Getenv(jobEnv), "\n"); len(spec) == 5 {
		count, _ := strconv.Atoi(spec[4])
		if err := (job{spec[0], spec[1], spec[2], step(spec[3]), count}).do(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(testrun.Main(m))
}

// start starts a process with the job.
func (j job) start(t *testing.T) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), jobEnv+"="+strings.Join([]string{j.vault, j.locks, j.verb, string(j.die), strconv.Itoa(j.count)}, "\n"))
	return run(t, cmd)
}

func run(t *testing.T, cmd *exec.Cmd) *exec.Cmd {
	t.Helper()
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	assert.OK(t, cmd.Start())
	return cmd
}

func (j job) do() error {
	ctx := context.Background()
	p, err := Open(ctx, j.vault, Options{Locks: j.locks})
	if err != nil {
		return err
	}
	if j.verb == "" {
		return errors.Join(add(ctx, p, j.count), p.Close())
	}
	p.at = func(now step) {
		if now == j.die {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	}
	note, always := providers.MustLocator("note"), providers.Unconditional()
	switch j.verb {
	case "write":
		rest := readFunc(func(b []byte) (int, error) { p.at(stepFilling); return copy(b, "w"), io.EOF })
		_, err = p.Write(ctx, note, providers.Body{Reader: io.MultiReader(strings.NewReader("ne"), rest), Size: providers.SizeUnknown}, providers.WriteOptions{If: always})
	case "delete":
		err = p.Delete(ctx, note, providers.DeleteOptions{If: always})
	case "move":
		_, err = p.Move(ctx, note, providers.MustLocator("moved"), providers.MoveOptions{Source: always, Target: always})
	}
	return errors.Join(err, errors.New("it was not killed"))
}

var counters = []string{"one", "two", "three", "four"}

// add adds one to a counter, count times, each time to the next.
func add(ctx context.Context, p *Provider, count int) error {
	for i := range count {
		l := providers.MustLocator(counters[i%len(counters)])
		for {
			content, info, err := providers.Fetch(ctx, p, l, providers.ReadOptions{})
			if err != nil {
				return err
			}
			number, err := parse(string(content))
			if err != nil {
				return err
			}
			_, err = p.Write(ctx, l, providers.String(counted(number+1)), providers.WriteOptions{If: providers.IfVersion(info.Version)})
			var timeout *TimeoutError
			if err == nil {
				break
			}
			if !errors.Is(err, providers.ErrConflict) && !errors.As(err, &timeout) {
				return err
			}
		}
	}
	return nil
}

// counted is a number with what tells that none of it is missing.
func counted(number int) string {
	return fmt.Sprintf("%d %x\n", number, sha256.Sum256([]byte(strconv.Itoa(number))))
}

func parse(content string) (int, error) {
	text, _, _ := strings.Cut(content, " ")
	number, err := strconv.Atoi(text)
	if err == nil && counted(number) != content {
		err = fmt.Errorf("torn: %q", content)
	}
	return number, err
}

// Eight writers lose no update and tear no file: six of this package in three processes and
// two that know only the protocol; and eight of this package of which no two have one cache
// directory, as of a service, a shell and a sandbox of one user.
func TestNoLostUpdate(t *testing.T) {
	for name, x := range map[string]struct {
		each int // of each counter the same number
		own  bool
	}{
		"one cache directory": {each: tier.Pick(4, 1252)},
		"own cache directory": {each: tier.Pick(8, 400), own: true},
	} {
		t.Run(name, func(t *testing.T) { noLostUpdate(t, x.each, x.own) })
	}
}

func noLostUpdate(t *testing.T, each int, own bool) {
	vault, locks := t.TempDir(), t.TempDir()
	cache := func() string {
		if own {
			return t.TempDir()
		}
		return locks
	}
	for _, name := range counters {
		assert.OK(t, os.WriteFile(filepath.Join(vault, name), []byte(counted(0)), 0o644))
	}
	var all []*exec.Cmd
	for range 2 {
		all = append(all, job{vault: vault, locks: cache(), count: each}.start(t), job{vault: vault, locks: cache(), count: each}.start(t))
		if own {
			all = append(all, job{vault: vault, locks: cache(), count: each}.start(t))
			continue
		}
		tier.RequireTools(t, "python3")
		script := append([]string{filepath.Join("testdata", "writer.py"), vault, locks, strconv.Itoa(each)}, counters...)
		all = append(all, run(t, exec.CommandContext(t.Context(), "python3", script...)))
	}
	var wg sync.WaitGroup
	for range 2 {
		dir := cache()
		wg.Go(func() {
			p, err := Open(t.Context(), vault, Options{Locks: dir})
			if err != nil {
				t.Error(err)
				return
			}
			assert.Is(t, errors.Join(add(t.Context(), p, each), p.Close()), nil)
		})
	}
	wg.Wait()
	for _, cmd := range all {
		assert.OK(t, cmd.Wait(), cmd.Args)
	}
	for _, name := range counters {
		number := assert.Of(parse(string(assert.Of(os.ReadFile(filepath.Join(vault, name))).OK(t)))).OK(t)
		assert.Equal(t, number, 8*each/len(counters), name)
	}
	assert.Equal(t, len(assert.Of(os.ReadDir(vault)).OK(t)), len(counters), "entries of the vault")
}

var tempForm = regexp.MustCompile(`^note\.[0-9]+\.[0-9a-f]{32}\.tmp$`)

// clock is the machine's, set forward by what is slept by it: who waits for what has no end but
// time's does not wait.
type clock struct{ slept atomic.Int64 }

func (c *clock) now() time.Time { return time.Now().Add(time.Duration(c.slept.Load())) }

func (c *clock) sleep(ctx context.Context, d time.Duration) error {
	if d > time.Second { // between two signs that a holder lives
		<-ctx.Done()
		return ctx.Err()
	}
	c.slept.Add(int64(d))
	return ctx.Err()
}

// in has a provider wait by the clock.
func (c *clock) in(t *testing.T, p *Provider, vault, locks string) {
	t.Helper()
	vault, locks = assert.Of(filepath.EvalSymlinks(vault)).OK(t), assert.Of(filepath.EvalSymlinks(locks)).OK(t)
	p.mutex = lock.New(p.root, lock.Place(locks, vault), lock.Options{Now: c.now, Sleep: c.sleep})
}

// staleTime is when a holder is taken for dead that shows nothing, and taken over: after 10 s, two
// pauses later.
const staleTime = 10*time.Second + 2*200*time.Millisecond

// Wherever a process is killed, each name leads to all of the old or of the new, nothing is left
// beside them, but a temporary name by one that was about to replace, and the next gets in within the stale time. In make
// soak that passes by itself, five times each, and how long it took is told.
func TestKilledHolder(t *testing.T) {
	var longest atomic.Int64
	t.Cleanup(func() {
		t.Logf("the next got in %v after a holder was killed, at the latest", time.Duration(longest.Load()))
	})
	for _, x := range []struct {
		verb        string
		at          step
		note, moved string // content; "": nothing is there
		locked      bool
	}{
		{"write", stepFilling, "old", "", false}, {"write", stepFilled, "old", "", false}, {"write", stepHeld, "old", "", true},
		{"write", stepLooked, "old", "", true}, {"write", stepChanged, "new", "", true}, {"write", stepSynced, "new", "", true},
		{"write", stepReleased, "new", "", false},
		{"delete", stepHeld, "old", "", true}, {"delete", stepLooked, "old", "", true}, {"delete", stepChanged, "", "", true},
		{"delete", stepSynced, "", "", true}, {"delete", stepReleased, "", "", false},
		{"move", stepHeld, "old", "", true}, {"move", stepLooked, "old", "", true}, {"move", stepChanged, "", "old", true},
		{"move", stepSynced, "", "old", true}, {"move", stepReleased, "", "old", false},
	} {
		t.Run(x.verb+" "+string(x.at), func(t *testing.T) {
			t.Parallel()
			for range tier.Pick(1, 5) {
				vault, locks := t.TempDir(), t.TempDir()
				note := filepath.Join(vault, "note")
				assert.OK(t, os.WriteFile(note, []byte("old"), 0o644))
				err := job{vault, locks, x.verb, x.at, 0}.start(t).Wait()
				var exit *exec.ExitError
				assert.Must(t, errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL, "it ended with", err)
				for name, want := range map[string]string{"note": x.note, "moved": x.moved} {
					content, err := os.ReadFile(filepath.Join(vault, name))
					assert.Equal(t, string(content), want, name)
					assert.Equal(t, err == nil, want != "", name)
				}
				left, began := assert.Of(filepath.Glob(filepath.Join(locks, "*", "lock"))).OK(t), time.Now()
				assert.Equal(t, len(left) > 0, x.locked, "a lock is left")
				p, c := assert.Of(Open(t.Context(), vault, Options{Locks: locks})).OK(t), &clock{}
				if !tier.Soak {
					c.in(t, p, vault, locks)
				}
				cond := providers.IfAbsent()
				if before, err := p.Stat(t.Context(), providers.MustLocator("note")); err == nil {
					cond = providers.IfVersion(before.Version)
				}
				_, err = p.Write(t.Context(), providers.MustLocator("note"), providers.String("next"), providers.WriteOptions{If: cond})
				assert.OK(t, errors.Join(err, p.Close()))
				waited := time.Duration(c.slept.Load())
				assert.True(t, waited <= staleTime && (tier.Soak || (waited > 0) == x.locked), "the next waited", waited)
				longest.Store(max(longest.Load(), int64(waited+time.Since(began))))
				for _, name := range names(t, vault) {
					assert.True(t, name == "note" || name == "moved" || x.at == stepLooked && tempForm.MatchString(name), "left behind:", name)
				}
			}
		})
	}
}
