package control

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/cmd/internal/lifecycle"
	"github.com/wsmount/wsmount/integration/assert"
)

// buffer is a log that two goroutines may use.
type buffer struct {
	mu sync.Mutex // guards b
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// mount is a Backend that answers from memory.
type mount struct {
	bus      *lifecycle.Bus
	followed chan struct{} // closed when somebody follows its events

	mu    sync.Mutex // guards what follows
	event EventRequest
	beat  uint64
	held  int
}

func (m *mount) Status() Status {
	return Status{Schema: StatusSchema, Workspace: "@acme/ops", State: Ready}
}

func (m *mount) Work() Work {
	m.mu.Lock()
	defer m.mu.Unlock()
	return Work{Schema: WorkSchema, Beat: m.beat, What: "noting", Part: "@acme/ops", Done: int(m.beat), Total: 100}
}

// moves comes further for a while, and then does not any more until ctx ends.
func (m *mount) moves(ctx context.Context, d time.Duration) error {
	for end := time.Now().Add(d); ctx.Err() == nil; time.Sleep(5 * time.Millisecond) {
		m.mu.Lock()
		if time.Now().Before(end) {
			m.beat++
		}
		m.mu.Unlock()
	}
	return ctx.Err()
}

func (m *mount) Event(ctx context.Context, r EventRequest) (EventResult, error) {
	if r.At == "/slow" {
		return EventResult{}, exit.New(exit.Unreachable, "%w", m.moves(ctx, 2*time.Second))
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.event = r
	if r.At == "/broken" {
		panic("a fault of ours")
	}
	if r.At == "/nowhere" || r.At == "/w\xff" {
		return EventResult{}, exit.New(exit.Unresolvable, "no part at %s", r.At).Hint("see `wsmount status`")
	}
	m.bus.Emit(lifecycle.Event{Name: r.Name, Payload: r.Vars})
	return EventResult{Schema: EventSchema, Event: r.Name, Parts: 1}, nil
}

func (m *mount) Subscribe(name string, h func(lifecycle.Event)) func() {
	defer close(m.followed)
	return m.bus.On(name, h)
}

func (m *mount) Unmount(r UnmountRequest) (UnmountResult, error) {
	if r.Force {
		return UnmountResult{Schema: UnmountSchema, Unmounted: true}, nil
	}
	return UnmountResult{}, errors.New("no reason given")
}

func (m *mount) Hold(pid int) (func(), error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.held != 0 {
		return nil, errors.New("it ends")
	}
	m.held = pid
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.held = 0
	}, nil
}

func (m *mount) holder() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.held
}

func (m *mount) Debug() Debug { return Debug{Schema: DebugSchema, Goroutines: "goroutine 1"} }

func serve(t *testing.T, o Options) (*mount, *Client) {
	t.Helper()
	return serveAt(t, filepath.Join(t.TempDir(), "s"), o)
}

func serveAt(t *testing.T, path string, o Options) (*mount, *Client) {
	t.Helper()
	m := &mount{bus: lifecycle.New(lifecycle.Options{})}
	s := assert.Of(Listen(path, m, o)).OK(t)
	t.Cleanup(func() {
		m.bus.Close()
		s.Close(context.Background())
		assert.Is(t, assert.ErrOf(os.Stat(path)), os.ErrNotExist, "the socket is left behind")
	})
	return m, NewClient(path)
}

func TestCalls(t *testing.T) {
	ctx := context.Background()
	var log buffer
	m, c := serve(t, Options{Log: slog.New(slog.NewTextHandler(&log, nil)),
		Metrics: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("wsmount_ops_total 1")) })})
	s := assert.Of(c.Status(ctx)).OK(t)
	assert.True(t, s.Workspace == "@acme/ops" && s.State == Ready, "status", s)
	r := assert.Of(c.Event(ctx, EventRequest{Name: "turn-end", Vars: map[string]string{"k": "w\xff"}, Timeout: 5})).OK(t)
	assert.True(t, r.Parts == 1 && m.event.Vars["k"] == "w\xff", "event", r, "the mount was asked", m.event)
	u := assert.Of(c.Unmount(ctx, UnmountRequest{Force: true})).OK(t)
	assert.True(t, u.Unmounted, "unmount", u)
	d := assert.Of(c.Debug(ctx)).OK(t)
	assert.True(t, d.Goroutines != "", "debug", d)
	assert.Contains(t, string(assert.Of(c.Metrics(ctx)).OK(t)), "wsmount_ops_total", "metrics")
	for _, want := range []string{"call=/v1/event", "call=/v1/unmount", "uid=", "pid="} {
		assert.Contains(t, log.String(), want, "the log")
	}
}

func TestErrorsKeepCodeAndHint(t *testing.T) {
	_, c := serve(t, Options{})
	for _, at := range []string{"/nowhere", "/w\xff"} {
		_, err := c.Event(context.Background(), EventRequest{Name: "write", At: at})
		if e := exit.From(err); e == nil || e.Code != exit.Unresolvable || e.What != "no part at "+at || e.Advice == "" {
			t.Errorf("got %+v", e)
		}
	}
	_, err := c.Unmount(context.Background(), UnmountRequest{})
	if e := exit.From(err); e == nil || e.Code != exit.Failed || e.What != "no reason given" {
		t.Errorf("got %+v", e)
	}
}

// A fault of ours is told to the caller and to the log, and the next call has an
// answer.
func TestPanicIsTold(t *testing.T) {
	var log buffer
	_, c := serve(t, Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
	_, err := c.Event(t.Context(), EventRequest{Name: "write", At: "/broken"})
	e := exit.From(err)
	assert.True(t, e != nil && e.Code == exit.Failed && e.What == "/v1/event failed inside wsmount: a fault of ours" && e.Advice != "", "got", e)
	got := log.String()
	assert.True(t, strings.Contains(got, "level=ERROR") && strings.Contains(got, "control_test.go"), "the log says", got)
	assert.Is(t, assert.ErrOf(c.Status(t.Context())), nil)
}

func TestNobodyAnswers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	silent, err := net.Listen("unix", path) // accepts and never answers: a daemon that hangs
	assert.OK(t, err)
	defer silent.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	for _, socket := range []string{path + "x", path} { // one is gone, one hangs
		_, err := NewClient(socket).Status(ctx)
		e := exit.From(err)
		assert.True(t, e != nil && e.Code == exit.Unreachable && e.Advice != "", socket, e)
	}
}

// listenEnv names the socket at which a test of the same name is the process that is asked.
const listenEnv = "WSMOUNT_TEST_LISTEN"

// Of a process that is stopped no answer is waited for, also by who waits as long as it
// takes; one that goes on is asked as any other.
func TestStoppedDaemon(t *testing.T) {
	if path := os.Getenv(listenEnv); path != "" {
		serveAt(t, path, Options{})
		assert.OK(t, syscall.Kill(os.Getpid(), syscall.SIGSTOP))
		assert.OK(t, assert.ErrOf(io.Copy(io.Discard, os.Stdin)))
		return
	}
	path := filepath.Join(t.TempDir(), "s")
	daemon := exec.Command(os.Args[0], "-test.run=^TestStoppedDaemon$")
	daemon.Env = append(os.Environ(), listenEnv+"="+path)
	in := assert.Of(daemon.StdinPipe()).OK(t)
	assert.OK(t, daemon.Start())
	pid := daemon.Process.Pid
	defer func() { daemon.Process.Kill(); daemon.Wait() }()
	var how syscall.WaitStatus
	assert.OK(t, assert.ErrOf(syscall.Wait4(pid, &how, syscall.WUNTRACED, nil)))
	assert.True(t, how.Stopped(), "it has not stopped", how)
	c := NewClient(path)
	_, err := c.Event(context.Background(), EventRequest{Name: "turn-end"})
	e := exit.From(err)
	assert.True(t, e != nil && e.Code == exit.Unreachable && strings.Contains(e.What, fmt.Sprintf("(pid %d) is stopped", pid)), "stopped: got", e)
	assert.OK(t, syscall.Kill(pid, syscall.SIGCONT))
	assert.OK(t, assert.ErrOf(c.Status(t.Context())), "it goes on")
	in.Close()
}

func TestBadRequests(t *testing.T) {
	_, c := serve(t, Options{})
	tests := []struct {
		name, method, path, body string
		want                     int
		says                     string
	}{
		{"not JSON", "POST", "/v1/event", "{", 400, "the mount does not understand the request"},
		{"an unknown field", "POST", "/v1/event", `{"nmae":"x"}`, 400, "the mount does not understand the request"},
		{"what no name is written as", "POST", "/v1/event", `{"name":"write","at":"/w\u0000"}`, 400, "is no name"},
		{"too large", "POST", "/v1/event", `{"name":"` + strings.Repeat("x", maxBody) + `"}`, 400, "the mount does not understand the request"},
		{"the wrong verb", "GET", "/v1/unmount", "", 405, ""},
		{"no such call", "GET", "/v2/status", "", 404, ""},
		{"an unknown event to follow", "GET", "/v1/events?name=turn-strat", "", 400, "turn-strat"},
		{"no metrics here", "GET", "/metrics", "", 404, ""},
	}
	for _, tt := range tests {
		req := assert.Of(http.NewRequest(tt.method, "http://x"+tt.path, strings.NewReader(tt.body))).OK(t)
		resp := assert.Of(c.http.Do(req)).OK(t)
		text := assert.Of(io.ReadAll(resp.Body)).OK(t)
		resp.Body.Close()
		assert.Equal(t, resp.StatusCode, tt.want, tt.name)
		assert.Contains(t, string(text), tt.says, tt.name)
	}
	// A daemon of another version answers what this one does not understand.
	err := c.call(t.Context(), http.MethodGet, "/v2/status", nil, &struct{}{})
	assert.Contains(t, err.Error(), "the answer of the mount to /v2/status is not understood: 404")
	err = c.call(t.Context(), http.MethodGet, "/v1/status", nil, &[]int{})
	assert.True(t, strings.Contains(err.Error(), "the answer of the mount is not understood: ") && exit.From(err).Advice == otherVersion, err)
}

func TestOtherUsersAreNotHeard(t *testing.T) {
	for _, tt := range []struct {
		uid  uint32
		want bool
	}{{0, true}, {uint32(os.Geteuid()), true}, {uint32(os.Geteuid()) + 4711, false}} {
		assert.Equal(t, sameUser(Peer{UID: tt.uid}), tt.want, "uid", tt.uid)
	}
	var log buffer
	asked := make(chan Peer, 1)
	_, c := serve(t, Options{Log: slog.New(slog.NewTextHandler(&log, nil)),
		Allow: func(p Peer) bool { asked <- p; return false }})
	_, err := c.Status(context.Background())
	assert.True(t, exit.From(err).Code == exit.Unreachable, "a refused caller", err)
	p := <-asked
	assert.True(t, int(p.UID) == os.Geteuid() && int(p.PID) == os.Getpid(), "the kernel's word on the caller", p)
	assert.Contains(t, log.String(), "refused a caller", "not in the log")
}

func TestSocket(t *testing.T) {
	deep := filepath.Join(t.TempDir(), strings.Repeat("d", 100), strings.Repeat("e", 100))
	assert.OK(t, os.MkdirAll(deep, 0o700))
	path := filepath.Join(deep, "control.sock")
	assert.OK(t, os.WriteFile(path, nil, 0o600)) // what a killed daemon leaves
	_, c := serveAt(t, path, Options{})
	assert.Is(t, assert.ErrOf(c.Status(context.Background())), nil, "a socket deeper than sockaddr_un holds")
	assert.Equal(t, assert.Of(os.Stat(path)).OK(t).Mode().Perm(), 0o600, "want mode 0600")
}

// A stream ends with the mount, whole, with every event before the end, and without
// waiting; also one of another name than the end's.
func TestFollow(t *testing.T) {
	for name, want := range map[string][]string{"write": {"write a\nb", "write c"}, "*": {"write a\nb", "write c", "workspace-close "}} {
		path := filepath.Join(t.TempDir(), "s")
		m := &mount{bus: lifecycle.New(lifecycle.Options{}), followed: make(chan struct{})}
		s := assert.Of(Listen(path, m, Options{})).OK(t)
		var got []string
		end := make(chan error, 1)
		go func() {
			end <- NewClient(path).Follow(t.Context(), name, func(e lifecycle.Event) error {
				got = append(got, e.Name+" "+e.Payload["path"])
				return nil
			})
		}()
		<-m.followed
		for _, path := range []string{"a\nb", "c"} {
			m.bus.Emit(lifecycle.Event{Name: "write", Payload: map[string]string{"path": path}})
		}
		m.bus.Emit(lifecycle.Event{Name: "workspace-close"})
		m.bus.Close()
		ctx, cancel := context.WithTimeout(t.Context(), assert.Hangs)
		defer cancel()
		assert.Is(t, s.Close(ctx), nil, name)
		assert.Is(t, <-end, nil, name)
		assert.Slice(t, got, want, name)
	}
}

// A stream that does not end as HTTP says it must is told from the mount's end.
func TestFollowTellsOfACutStream(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	l := assert.Of(net.Listen("unix", path)).OK(t)
	defer l.Close()
	go func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		if _, err := http.ReadRequest(bufio.NewReader(conn)); err != nil {
			return
		}
		body := ": listening\n\n"
		fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n", len(body), body)
	}()
	assert.Is(t, NewClient(path).Follow(t.Context(), "*", func(lifecycle.Event) error { return nil }), io.ErrUnexpectedEOF)
}

// A mount is held by the process that asks, until it lets go or has hung up.
func TestHold(t *testing.T) {
	m, c := serve(t, Options{})
	release := assert.Of(c.Hold(t.Context())).OK(t)
	assert.Equal(t, m.holder(), os.Getpid(), "held by")
	assert.True(t, assert.ErrOf(c.Hold(t.Context())) != nil, "a mount that ends is not held")
	release()
	assert.Eventually(t, "it is not held", func() bool { return m.holder() == 0 })
}

// A call takes as long as the mount comes further, and not longer. No socket is in the
// way of a clock that goes by itself.
func TestPatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &Server{log: slog.New(slog.DiscardHandler), b: &mount{}, closing: make(chan struct{})}
		body := assert.Of(json.Marshal(EventRequest{Name: "turn-end", At: "/slow", Timeout: 0.5})).OK(t)
		begin := time.Now()
		answer := httptest.NewRecorder()
		s.routes(Options{}).ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/event", bytes.NewReader(body)))
		took := time.Since(begin)
		assert.True(t, took >= 2*time.Second && took <= 3*time.Second && strings.Contains(answer.Body.String(), "deadline"), "it ended after", took, "with", answer.Body)
	})
}

// What a mount does is told to whoever asks how far it has come.
func TestWork(t *testing.T) {
	m, c := serve(t, Options{})
	ctx, cancel := c.Patient(t.Context(), assert.Hangs)
	defer cancel()
	assert.Is(t, assert.ErrOf(c.Event(ctx, EventRequest{Name: "turn-end"})), nil)
	m.mu.Lock()
	m.beat = 7
	m.mu.Unlock()
	w, err := c.Work(t.Context())
	assert.True(t, err == nil && w.Beat == m.Work().Beat && w.What == "noting" && w.Total == 100, "work", w, err)
}

func TestPatient(t *testing.T) {
	beats := map[string]struct {
		beat func(n uint64) (uint64, bool)
		ends bool
	}{
		"moves":      {func(n uint64) (uint64, bool) { return n, true }, false},
		"hangs":      {func(uint64) (uint64, bool) { return 7, true }, true},
		"cannot say": {func(n uint64) (uint64, bool) { return n, false }, true},
	}
	for name, b := range beats {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				asked := uint64(0)
				again := make(chan struct{}, 1000)
				ctx, cancel := patient(t.Context(), time.Second, func(context.Context) (uint64, bool) {
					asked++
					again <- struct{}{}
					return b.beat(asked)
				})
				defer cancel()
				below, end := context.WithCancel(ctx) // as whoever is called makes one
				defer end()
				for n := 0; n < 20 && ctx.Err() == nil; n++ {
					select {
					case <-again:
					case <-ctx.Done():
					}
				}
				if b.ends != (ctx.Err() != nil) || b.ends && !errors.Is(ctx.Err(), context.DeadlineExceeded) {
					t.Errorf("it ended with %v", ctx.Err())
				}
				if !b.ends {
					return
				}
				<-below.Done()
				if below.Err() != context.DeadlineExceeded || context.Cause(below) != context.DeadlineExceeded {
					t.Errorf("what is below ended with %v, because of %v", below.Err(), context.Cause(below))
				}
			})
		})
	}
}

// Events are counted by their names and by the worst of what became of them; names without an
// end are counted together.
func TestOutcomes(t *testing.T) {
	var o Outcomes
	for range 2 {
		o.Add("per-turn", EventResult{}, nil)
	}
	o.Add("idle-300", EventResult{PutOff: []string{"busy"}}, nil)
	o.Add("idle-301", EventResult{PutOff: []string{"busy"}}, nil)
	o.Add("acme:deployed", EventResult{HeldBack: 1, PutOff: []string{"busy"}}, nil)
	o.Add(VerbPull, EventResult{Conflicts: 1, HeldBack: 1}, nil)
	o.Add(VerbPush, EventResult{Conflicts: 1}, errors.New("away"))
	assert.Slice(t, o.List(), []Outcome{{"idle", "put-off", 2}, {"of-host", "held-back", 1}, {VerbPull, "conflict", 1}, {VerbPush, "failed", 1}, {"turn-end", "done", 2}})
}
