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
	"strings"
	"testing"
	"time"

	"github.com/wsmount/wsmount/integration/model"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/memory"
)

// modelDir is where the models work. What lies beside it keeps a safety halt
// away: nobody who removes a few names removes half of the store.
const modelDir = "model"

// other is another writer at a service: it reads, and changes what it has read
// if that is still there.
type other struct {
	ctx context.Context
	p   *memory.Client
}

func (c *workingCopy) other() *other {
	c.t.Helper()
	p, err := memory.Dial(c.t.Context(), "unix", c.s.Socket)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { p.Close() })
	return &other{ctx: c.t.Context(), p: p}
}

func (o *other) Put(path string, content []byte) ([]byte, bool, error) {
	l := providers.MustLocator(modelDir + "/" + path)
	return o.change(l, content, func(info *providers.Info) error {
		cond := providers.IfAbsent()
		if info != nil {
			cond = providers.IfVersion(info.Version)
		}
		_, err := o.p.Write(o.ctx, l, providers.Bytes(content), providers.WriteOptions{If: cond})
		return err
	})
}

func (o *other) Remove(path string) ([]byte, bool, error) {
	l := providers.MustLocator(modelDir + "/" + path)
	return o.change(l, nil, func(info *providers.Info) error {
		if info == nil {
			return providers.ErrNotExist
		}
		return o.p.Delete(o.ctx, l, providers.DeleteOptions{If: providers.IfVersion(info.Version)})
	})
}

// change reads what is at l and lets do change it. After a fault it looks
// whether the change was made all the same.
func (o *other) change(l providers.Locator, content []byte, do func(*providers.Info) error) (old []byte, done bool, err error) {
	for try := range 20 {
		now, info, err := o.read(l)
		if errors.Is(err, providers.ErrUnavailable) {
			time.Sleep(time.Millisecond)
			continue
		}
		if err != nil {
			return nil, false, err
		}
		if try > 0 && info != nil && content != nil && bytes.Equal(now, content) || try > 0 && info == nil && content == nil && old != nil {
			return old, true, nil
		}
		if info != nil && info.Kind != providers.KindFile {
			return nil, false, nil
		}
		old = now
		err = do(info)
		if err == nil {
			return old, true, nil
		}
		if !errors.Is(err, providers.ErrUnavailable) {
			return nil, false, nil // somebody was quicker, or a directory is in the way
		}
	}
	return nil, false, errors.New("the service does not recover")
}

func (o *other) read(l providers.Locator) ([]byte, *providers.Info, error) {
	info, err := o.p.Stat(o.ctx, l)
	switch {
	case errors.Is(err, providers.ErrNotExist), errors.Is(err, providers.ErrNotDir):
		return nil, nil, nil
	case err != nil:
		return nil, nil, err
	case info.Kind != providers.KindFile:
		return nil, &info, nil
	}
	c, err := o.p.Read(o.ctx, l, providers.ReadOptions{Version: info.Version})
	if errors.Is(err, providers.ErrConflict) || errors.Is(err, providers.ErrNotExist) {
		return o.read(l)
	}
	if err != nil {
		return nil, nil, err
	}
	defer c.Body.Close()
	b, err := io.ReadAll(c.Body)
	return b, &info, err
}

// stored lists what the service has in modelDir, as model.Digests does.
func (c *workingCopy) stored() (map[string]string, error) {
	lines, err := c.control.Dump(c.t.Context())
	if err != nil {
		return nil, err
	}
	seen := map[string]string{}
	for _, line := range lines {
		var path, kind, digest string
		var size int64
		if _, err := fmt.Sscanf(line, "%q %s %d sha256:%s", &path, &kind, &size, &digest); err != nil && kind != "dir" && kind != "directory" {
			return nil, fmt.Errorf("%q: %w", line, err)
		}
		path, below := strings.CutPrefix(path, modelDir+"/")
		switch {
		case !below:
		case kind == "file":
			seen[path] = digest[:12]
		default:
			seen[path] = model.DirMark
		}
	}
	return seen, nil
}

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
	return c.ask(http.MethodPost, "/v1/event", map[string]any{"name": name, "timeoutSeconds": 20}, nil)
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
	return fmt.Sprintf("%d files, %d names, %d held back, halted: %q, unpushed: %v, retrying %d, last error %q",
		p.Unsaved.Files, p.Unsaved.Names, p.HeldBack, p.Copy.Halted, p.Copy.Unpushed, p.Copy.Retrying, p.Copy.LastError), nil
}

// settle returns when the store has everything, and the mount has seen the
// store after that.
func (c *workingCopy) settle() error {
	for end := time.Now().Add(15 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		left, err := c.unsaved()
		if err != nil {
			return err
		}
		if left == "" {
			return c.pullNow()
		}
		if time.Now().After(end) {
			return fmt.Errorf("unsaved after 15 s: %s", left)
		}
	}
}

// disturb makes the service fail in one of its ways, for a few calls. What was
// meant to fail before and was not called is forgotten: else the failures of a
// rare verb add up, and one call fails for minutes.
func (c *workingCopy) disturb(n int) error {
	ctx := c.t.Context()
	if err := c.control.Clear(ctx); err != nil {
		return err
	}
	verbs := []providers.Method{providers.MethodWrite, providers.MethodDelete, providers.MethodList, providers.MethodRead,
		providers.MethodStat, providers.MethodMove, providers.MethodMkdir, providers.MethodCommit}
	verb := verbs[n%len(verbs)]
	if n = n / len(verbs); n%2 == 0 {
		return c.control.Lose(ctx, verb, 1)
	}
	return c.control.Fail(ctx, verb, 1+n%3, providers.ErrUnavailable)
}

// fill puts what lies beside the models into the mount.
func (c *workingCopy) fill() {
	c.t.Helper()
	for _, dir := range []string{"beside", modelDir} {
		if err := os.Mkdir(c.Dir+"/"+dir, 0o755); err != nil {
			c.t.Fatal(err)
		}
	}
	for i := range 60 {
		if err := os.WriteFile(fmt.Sprintf("%s/beside/%d", c.Dir, i), []byte{byte(i)}, 0o644); err != nil {
			c.t.Fatal(err)
		}
	}
}

func (c *workingCopy) shared() model.Shared {
	again := func(end func()) func() error {
		return func() error { end(); c.socket = ""; c.Start(); return nil }
	}
	return model.Shared{Dir: c.Dir + "/" + modelDir, Other: c.other(), Settle: c.settle, Stored: c.stored, Pull: c.pullNow,
		Disturb: c.disturb, Remount: again(c.stopUnsettled), Kill: again(c.killAndUnmount)}
}

// stopUnsettled unmounts, also where not all could be sent in the time for that.
func (c *workingCopy) stopUnsettled() {
	c.t.Helper()
	if r := c.w.Run("umount", c.Dir); r.Code != 0 && r.Code != 7 {
		c.t.Fatalf("umount: %+v", r)
	}
	c.WaitGone()
}

// killAndUnmount leaves nothing of the mount but what is on the disk.
func (c *workingCopy) killAndUnmount() {
	c.t.Helper()
	c.Kill()
}

const stored = "mode: pull-push, pull: {on: turn-start}, commit: {on: write, batch_window_ms: 20}"

var storeSync = copyFlavour{name: "store", sync: stored}

// Two writers in one tree, with faults, remounts, kills and evictions between:
// in the end both see the same, and nothing that either was told is written is
// gone.
func TestCopyModelShared(t *testing.T) {
	if os.Getenv("WSMOUNT_MODEL_OPS") == "" {
		t.Skip("make model runs it")
	}
	for _, f := range []copyFlavour{canonicalStore, storeSync} {
		t.Run(f.name, func(t *testing.T) {
			c := f.with("--cache-size", "200KiB", "--stop-timeout", "5s").mount(t)
			c.fill()
			model.RunShared(t, c.shared(), model.SharedOptions{Ops: copyModelOps(), Settle: 500})
		})
	}
}

// A working copy behaves as a plain directory, with so little room that most of
// its content has to come from the service again, and with remounts.
func TestCopyModel(t *testing.T) {
	for _, f := range []copyFlavour{canonicalStore, bucket, writeBack, repository} {
		t.Run(f.name, func(t *testing.T) {
			c := f.with("--cache-size", "200KiB").mount(t)
			c.fill()
			s := model.Subject{Dir: c.Dir + "/" + modelDir, Remount: func() error { c.Stop(); c.socket = ""; c.Start(); return nil }}
			model.Run(t, s, model.Options{Ops: copyModelOps()})
		})
	}
}

// copyModelOps is fewer operations than of a local directory, where nothing
// that is asked for lists says how many.
func copyModelOps() int {
	if os.Getenv("WSMOUNT_MODEL_OPS") != "" {
		return 0
	}
	return 5000
}
