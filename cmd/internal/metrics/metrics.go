// Package metrics shows a mount to Prometheus: its status, and the requests that the kernel has
// sent it. The rules and the dashboard in integration/example/monitoring stand on it.
//
// It promises that a request of the kernel never touches it: values are made when they are
// asked for; and that every metric of its list has a value wherever one is known.
//
//	m := metrics.New("@acme/ops", d.Status, server.Stats)
//	stop, err := m.Listen(ctx, "127.0.0.1:9464", log)
package metrics

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/cmd/internal/control"
	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/fs"
)

// list is every metric: its name without the prefix wsmount_, its help, and its labels
// beside the workspace.
var list = []struct {
	name, help string
	labels     []string
}{
	{"ops_total", "Requests of the kernel, by operation and errno.", []string{"op", "errno"}},
	{"op_seconds", "Time that requests of the kernel took.", []string{"op"}},
	{"read_bytes_total", "Bytes read through the daemon; passthrough is not seen.", nil},
	{"written_bytes_total", "Bytes written through the daemon; passthrough is not seen.", nil},
	{"panics_total", "Requests that ended in a contained panic.", nil},
	{"notifications_total", "Changes that the kernel was told of.", nil},
	{"fetching_bytes", "Bytes that are being fetched from the stores of all parts.", nil},
	{"fetching_limit_bytes", "Bytes that may be fetched at once.", nil},
	{"hook_notices_total", "Notices for a hook of the host, by result: delivered or lost.", []string{"hook", "result"}},
	{"open_files", "Files that programs hold open.", part},
	{"inodes", "Inodes that the kernel knows.", part},
	{"read_only_refused_total", "Changes refused because a part is read-only.", part},
	{"watched_directories", "Directories watched for changes by others.", part},
	{"watch_late", "1 while changes by others may show late, since directories are without a watch or events were lost.", part},

	{"store_reachable", "1 if the store answered when it was last asked, 0 if it could not be reached.", part},
	{"backend_errors_total", "Failed requests to the store, by kind.", []string{"part", "kind"}},
	{"backend_requests_total", "Requests to the store's service, by its own name of them.", []string{"part", "request"}},
	{"backend_sent_bytes_total", "Bytes of bodies sent to the store's service.", []string{"part", "request"}},
	{"backend_received_bytes_total", "Bytes of bodies received from the store's service.", []string{"part", "request"}},
	{"credential_failures_total", "Credentials that could not be obtained, or that the store refused.", part},
	{"credential_expiry_seconds", "Time until the credentials expire; nothing if they do not.", part},
	{"background_failing_seconds", "Time for which work in the background has failed, or the store has refused requests; nothing while it does not.", []string{"part", "activity"}},

	{"unsaved_bytes", "Bytes that the store does not have yet.", part},
	{"oldest_unsaved_seconds", "Age of the oldest unsaved change.", part},
	{"unpushed_commits", "Commits that the remote does not have.", part},
	{"oldest_unpushed_seconds", "Age of the oldest commit that the remote does not have.", part},
	{"last_pull_timestamp_seconds", "When the store last gave what it has; nothing if it has not since the mount began.", part},
	{"last_push_timestamp_seconds", "When the store last took a change; nothing if it has not since the mount began.", part},
	{"conflicts", "Unresolved conflicts.", part},
	{"held_back", "Changes that are held back, conflicts among them.", part},
	{"halted", "Pulls and commits that wait for --confirm, since they would delete much.", part},
	{"cache_bytes", "Content of the working copy on the local disk: clean (the store has it), unsaved, history.", []string{"part", "kind"}},
	{"events_total", "Events, commits, pulls and pushes that were followed, by result: done, put-off, held-back, conflict or failed.", []string{"part", "event", "result"}},
}

var part = []string{"part"}

// Metrics are those of one mount.
type Metrics struct {
	status   func() control.Status
	stats    func() (fs.Stats, bool) // false: there is no mount yet
	descs    map[string]*prometheus.Desc
	registry *prometheus.Registry
}

// New makes the metrics of a mount from its status and its server's counters.
func New(workspace string, status func() control.Status, stats func() (fs.Stats, bool)) *Metrics {
	m := &Metrics{status: status, stats: stats, descs: map[string]*prometheus.Desc{}, registry: prometheus.NewRegistry()}
	for _, l := range list {
		m.descs[l.name] = prometheus.NewDesc("wsmount_"+l.name, l.help, l.labels, prometheus.Labels{"workspace": workspace})
	}
	m.registry.MustRegister(m, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

var _ prometheus.Collector = (*Metrics)(nil)

// Describe lists every metric, also those that have no value at the moment.
func (m *Metrics) Describe(out chan<- *prometheus.Desc) {
	for _, d := range m.descs {
		out <- d
	}
}

// Collect reads the values.
func (m *Metrics) Collect(out chan<- prometheus.Metric) {
	stats, mounted := m.stats()
	if !mounted {
		return
	}
	c := collection{m.descs, out}
	for _, op := range stats.Ops {
		for errno, n := range op.Errnos {
			c.counter("ops_total", n, op.Op, errnoName(errno))
		}
		out <- prometheus.MustNewConstHistogram(m.descs["op_seconds"], op.Count, op.Seconds, cumulative(op.Buckets), op.Op)
	}
	c.counter("read_bytes_total", stats.ReadBytes)
	c.counter("written_bytes_total", stats.WrittenBytes)
	c.counter("panics_total", stats.Panics)
	c.counter("notifications_total", stats.Notified)
	s := m.status()
	c.gauge("fetching_bytes", float64(s.Fetching.Used))
	c.gauge("fetching_limit_bytes", float64(s.Fetching.Limit))
	for _, h := range s.Hooks {
		c.counter("hook_notices_total", h.Delivered, h.Name, "delivered")
		c.counter("hook_notices_total", h.Lost, h.Name, "lost")
	}
	seen := map[string]bool{}
	for _, p := range s.Parts {
		name := p.Name
		if seen[name] { // another of the same workspace
			name += " at " + p.At
		}
		seen[name] = true
		c.part(name, p, s.Taken)
	}
}

// A collection is one answer.
type collection struct {
	descs map[string]*prometheus.Desc
	out   chan<- prometheus.Metric
}

func (c collection) counter(name string, v uint64, labels ...string) {
	c.out <- prometheus.MustNewConstMetric(c.descs[name], prometheus.CounterValue, float64(v), labels...)
}

func (c collection) gauge(name string, v float64, labels ...string) {
	c.out <- prometheus.MustNewConstMetric(c.descs[name], prometheus.GaugeValue, v, labels...)
}

func (c collection) part(name string, p control.Part, now time.Time) {
	age := func(since time.Time) float64 {
		if since.IsZero() {
			return 0
		}
		return now.Sub(since).Seconds()
	}
	c.gauge("open_files", float64(p.OpenFiles), name)
	c.gauge("inodes", float64(p.Inodes), name)
	c.counter("read_only_refused_total", p.Refused, name)
	c.gauge("watched_directories", float64(p.Watch.Directories), name)
	c.gauge("watch_late", truth(p.Watch.State == "exhausted" || p.Watch.State == "partial"), name)
	c.gauge("store_reachable", truth(p.Reachable), name)
	for kind, n := range p.StoreErrors {
		c.counter("backend_errors_total", n, name, kind)
	}
	c.gauge("unsaved_bytes", float64(p.Unsaved.Bytes), name)
	c.gauge("oldest_unsaved_seconds", age(p.Unsaved.Oldest), name)
	c.gauge("conflicts", float64(p.Conflicts), name)
	c.gauge("held_back", float64(p.HeldBack), name)
	for _, e := range p.Events {
		c.counter("events_total", e.Count, name, e.Event, e.Result)
	}
	if w := p.Copy; w != nil {
		c.workingCopy(name, w, now)
		c.gauge("unpushed_commits", float64(w.UnpushedCommits), name)
		c.gauge("oldest_unpushed_seconds", age(w.UnpushedSince), name)
	}
}

func (c collection) workingCopy(part string, w *control.Copy, now time.Time) {
	for _, f := range w.Failing {
		c.gauge("background_failing_seconds", now.Sub(f.Since).Seconds(), part, f.Activity)
	}
	for request, n := range w.Requests {
		c.counter("backend_requests_total", uint64(n.Count), part, request)
		c.counter("backend_sent_bytes_total", uint64(n.Sent), part, request)
		c.counter("backend_received_bytes_total", uint64(n.Received), part, request)
	}
	c.counter("credential_failures_total", w.CredentialFailures, part)
	if !w.CredentialsExpire.IsZero() {
		c.gauge("credential_expiry_seconds", w.CredentialsExpire.Sub(now).Seconds(), part)
	}
	for name, at := range map[string]time.Time{"last_pull_timestamp_seconds": w.LastPull, "last_push_timestamp_seconds": w.LastPush} {
		if !at.IsZero() {
			c.gauge(name, float64(at.UnixMilli())/1000, part)
		}
	}
	c.gauge("halted", float64(len(w.Halted)), part)
	for kind, n := range map[string]int64{"clean": w.Content.Clean, "unsaved": w.Content.Unsaved, "history": w.Content.History} {
		c.gauge("cache_bytes", float64(n), part, kind)
	}
}

func truth(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

// errnoName is EIO and the like; success is "0".
func errnoName(e syscall.Errno) string {
	if e == 0 {
		return "0"
	}
	if name := unix.ErrnoName(e); name != "" {
		return name
	}
	return e.Error()
}

// cumulative turns the counts of buckets into Prometheus' sums up to each bound.
func cumulative(buckets []uint64) map[float64]uint64 {
	out, sum := map[float64]uint64{}, uint64(0)
	for i, bound := range fs.Buckets {
		if i < len(buckets) {
			sum += buckets[i]
		}
		out[bound.Seconds()] = sum
	}
	return out
}

// Handler serves them.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}

// Listen serves the metrics on a TCP address, which must be a loopback one:
// they name workspaces and need no password.
func (m *Metrics) Listen(ctx context.Context, addr string, log *slog.Logger) (stop func() error, err error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, exit.New(exit.Usage, "metrics address: %w", err).Hint("for example --metrics-addr 127.0.0.1:9464")
	}
	if ip := net.ParseIP(host); ip == nil || !ip.IsLoopback() {
		return nil, exit.New(exit.Usage, "metrics address %s is not a loopback address", addr).
			Hint("for example --metrics-addr 127.0.0.1:9464; let a collector on this machine forward it")
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, exit.New(exit.Failed, "metrics: %w", err).Hint("choose a free port")
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", m.Handler())
	srv := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug)}
	go srv.Serve(l)
	log.Info("metrics", "address", l.Addr().String())
	return func() error {
		if err := srv.Close(); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	}, nil
}
