package integration

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/internal/harness"
	"github.com/wsmount/wsmount/integration/memoryserver"
	"github.com/wsmount/wsmount/integration/model"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/memory"
)

// A serviceStore is a memoryd.
type serviceStore struct {
	t       testing.TB
	s       *harness.Service
	control *memoryserver.Control
}

// newServiceStore starts the service and registers @acme/copy, which lies there.
func newServiceStore(t testing.TB, w *harness.World, f copyFlavour) *serviceStore {
	t.Helper()
	st := &serviceStore{t: t, s: w.Service(f.service...)}
	config := "socket: " + st.s.Socket
	if f.config != "" {
		config += ", " + f.config
	}
	dir := w.Mkdir("ws", 0o755)
	w.Write("config/wsmount/config.yaml", "allow_paths: [ "+filepath.Dir(st.s.Socket)+" ]\nallow_write_back: [ \"@acme/*\" ]\n", 0o600)
	w.Write("ws/WORKSPACE.md", harness.Manifest("@acme/copy", "storage: {inline: {provider: memory, config: {"+config+"}, sync: {"+f.sync+"}}}\n"), 0o644)
	w.MustRun("registry", "add", dir)
	var err error
	if strings.Contains(f.config, "clone") {
		st.control, err = memoryserver.DialCloneControl(t.Context(), "unix", st.s.Socket, "a", "main")
	} else {
		st.control, err = memoryserver.DialControl(t.Context(), "unix", st.s.Socket)
	}
	assert.OK(t, err)
	t.Cleanup(func() { st.control.Close() })
	return st
}

func (st *serviceStore) tamper(path string, content []byte) error {
	return st.control.Tamper(st.t.Context(), providers.MustLocator(path), content)
}

// other is another writer at a service: it reads, and changes what it has read
// if that is still there.
type other struct {
	ctx context.Context
	p   *memory.Client
}

func (st *serviceStore) other() model.Other {
	st.t.Helper()
	p := assert.Of(memoryserver.Dial(st.t.Context(), st.s.Socket)).OK(st.t)
	st.t.Cleanup(func() { p.Close() })
	return &other{ctx: st.t.Context(), p: p}
}

func (o *other) Put(path string, content []byte) ([]byte, bool, error) {
	l := providers.MustLocator(modelDir + "/" + path)
	return o.change(l, content, func(info *providers.Info) error {
		cond := providers.IfAbsent()
		if info != nil {
			cond = providers.IfVersion(info.Version)
		}
		return assert.ErrOf(o.p.Write(o.ctx, l, providers.Bytes(content), providers.WriteOptions{If: cond}))
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

func (st *serviceStore) stored() (map[string]string, error) {
	lines, err := st.control.Dump(st.t.Context())
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

func (st *serviceStore) calm() error { return st.control.Clear(st.t.Context()) }

// What was meant to fail before and was not called is forgotten: else the failures
// of a rare verb add up, and one call fails for minutes.
func (st *serviceStore) disturb(n int) error {
	ctx := st.t.Context()
	if err := st.calm(); err != nil {
		return err
	}
	verbs := []providers.Method{providers.MethodWrite, providers.MethodDelete, providers.MethodList, providers.MethodRead,
		providers.MethodStat, providers.MethodMove, providers.MethodMkdir, providers.MethodCommit}
	verb := verbs[n%len(verbs)]
	if n = n / len(verbs); n%2 == 0 {
		return st.control.Lose(ctx, verb, 1)
	}
	return st.control.Fail(ctx, verb, 1+n%3, providers.ErrUnavailable)
}
