package integration

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/model"
	"github.com/wsmount/wsmount/integration/s3server"
	"github.com/wsmount/wsmount/integration/tier"
)

// modelDir is where the models work. What lies beside it keeps a safety halt
// away: nobody who removes a few names removes half of the store.
const modelDir = "model"

// ask calls the control API of the mount.
func (c *workingCopy) ask(method, path string, in, out any) error {
	var s struct{ StateDir string }
	if c.socket == "" {
		if err := json.Unmarshal([]byte(c.w.MustRun("status", "--json", c.Dir)), &s); err != nil {
			return err
		}
		c.socket = s.StateDir + "/control.sock"
	}
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		// The path may be too long for an address.
		dir, err := os.Open(filepath.Dir(c.socket))
		if err != nil {
			return nil, err
		}
		defer dir.Close()
		var d net.Dialer
		return d.DialContext(ctx, "unix", fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), filepath.Base(c.socket)))
	}}}
	q, err := http.NewRequestWithContext(c.t.Context(), method, "http://wsmount"+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	a, err := client.Do(q)
	if err != nil {
		return err
	}
	defer a.Body.Close()
	answer, err := io.ReadAll(a.Body)
	if err == nil && a.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s: %s", path, a.Status, answer)
	}
	if err != nil || out == nil {
		return err
	}
	return json.Unmarshal(answer, out)
}

// event lets an event happen, and waits for what it starts.
func (c *workingCopy) event(name string) error {
	return c.ask(http.MethodPost, "/v1/event", map[string]any{"name": name, "timeoutSeconds": 120}, nil)
}

// pullNow lets the mount look at the store, as far as nothing is unsaved.
func (c *workingCopy) pullNow() error { return errors.Join(c.event("turn-start"), c.event("turn-end")) }

// unsaved says what the store does not have yet, or "".
func (c *workingCopy) unsaved() (string, error) {
	var s struct {
		Parts []struct {
			Unsaved  struct{ Files, Names int }
			HeldBack int
			Copy     struct {
				Halted    []string
				Unpushed  bool
				Retrying  int
				LastError string
				Held      []struct{ Path, Reason string }
			} `json:"workingCopy"`
		}
	}
	if err := c.ask(http.MethodGet, "/v1/status", nil, &s); err != nil || len(s.Parts) == 0 {
		return "no answer", err
	}
	p := s.Parts[0]
	if p.Unsaved.Files+p.Unsaved.Names+p.HeldBack+len(p.Copy.Halted) == 0 && !p.Copy.Unpushed {
		return "", nil
	}
	return fmt.Sprintf("%d files, %d names, %d held back, halted: %q, unpushed: %v, retrying %d, last error %q, held: %q",
		p.Unsaved.Files, p.Unsaved.Names, p.HeldBack, p.Copy.Halted, p.Copy.Unpushed, p.Copy.Retrying, p.Copy.LastError, p.Copy.Held), nil
}

// settle returns when the store has everything, and the mount has seen the
// store after that.
func (c *workingCopy) settle() (err error) {
	var left string
	if !assert.Await(func() bool {
		left, err = c.unsaved()
		return left == "" || err != nil
	}) {
		return fmt.Errorf("not saved: %s", left)
	}
	if err != nil {
		return err
	}
	return c.pullNow()
}

// fill puts what lies beside the models into the mount.
func (c *workingCopy) fill() {
	c.t.Helper()
	for _, dir := range []string{"beside", modelDir} {
		assert.OK(c.t, os.Mkdir(c.Dir+"/"+dir, 0o755))
	}
	for i := range 60 {
		assert.OK(c.t, os.WriteFile(fmt.Sprintf("%s/beside/%d", c.Dir, i), []byte{byte(i)}, 0o644))
	}
}

// shared is what is mounted, with other mounts of the same store.
func (c *workingCopy) shared(beside ...*workingCopy) model.Shared {
	s := model.Shared{Other: c.other(), Stored: c.stored, Disturb: c.disturb}
	for _, m := range append([]*workingCopy{c}, beside...) {
		again := func(end func()) func() error {
			return func() error {
				end()
				m.socket = ""
				m.must(m.calm()) // else there is no new mount
				m.Start()
				return nil
			}
		}
		s.Mounts = append(s.Mounts, model.Mount{Dir: m.Dir + "/" + modelDir, Settle: m.settle, Pull: m.pullNow, Kept: m.atRoot,
			Remount: again(m.stopUnsettled), Kill: again(m.Kill)})
	}
	return s
}

// atRoot looks for content at the root of the mount, where a file has its name that was changed when
// its directory was gone.
func (c *workingCopy) atRoot(_, digest string) bool {
	names, _ := filepath.Glob(c.Dir + "/*")
	return slices.ContainsFunc(names, func(name string) bool {
		content, err := os.ReadFile(name) // of a directory there is none
		return err == nil && model.Digest(content) == digest
	})
}

// stopUnsettled unmounts, also where not all could be sent in the time for that.
func (c *workingCopy) stopUnsettled() {
	c.t.Helper()
	r := c.w.Run("umount", c.Dir)
	assert.Must(c.t, r.Code == 0 || r.Code == 7, "umount:", r)
	c.WaitGone()
}

const stored = "mode: pull-push, pull: {on: turn-start}, commit: {on: write, batch_window_ms: 20}"

// The same with two mounts of one bucket, and a tool that knows nothing of them. In make soak
// each service has 20,000 operations of the first seed: half of them where closes wait for the
// bucket, half where they do not.
func TestBucketModelShared(t *testing.T) {
	t.Parallel()
	for _, f := range everywhere() {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel() // it waits for a disk or a server, mostly
			tier.Seeds(t, 1, func(t *testing.T, seed uint64) {
				c := f.with(scarce...).mount(t)
				c.fill()
				c.mustSettle()
				two := c.beside()
				s := c.shared(two)
				s.Apart = f.server == string(s3server.MinIO)
				model.RunShared(t, s, model.SharedOptions{Ops: tier.Pick(200, 10_000), Settle: tier.Pick(100, 250), Seed: seed})
			})
		})
	}
}

// scarce are flags of a mount that has room for little, and does not wait long.
var scarce = []string{"--cache-size", "200KiB", "--stop-timeout", "5s"}

// A working copy behaves as a plain directory, with so little room that most of
// its content has to come from the service again, and with remounts.
func TestCopyModel(t *testing.T) {
	t.Parallel()
	for _, f := range append([]copyFlavour{canonicalStore, bucket, writeBack, repository}, tier.Pick(served(), everywhere())...) {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel() // it waits for a disk or a server, mostly
			c := f.with("--cache-size", "200KiB").mount(t)
			c.fill()
			s := model.Subject{Dir: c.Dir + "/" + modelDir, Remount: func() error { c.Stop(); c.socket = ""; c.Start(); return nil }}
			ops := tier.Pick(1000, 20_000)
			if f.server != "" {
				ops = ops * 2 / 5 // each close is a request that takes its time
			}
			model.Run(t, s, model.Options{Ops: ops})
		})
	}
}
