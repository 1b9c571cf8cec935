package daemon

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

// metrics makes Prometheus metrics from the mount's own counters when they are
// asked for; a request of the kernel never touches it.
type metrics struct {
	d        *Daemon
	registry *prometheus.Registry

	ops, seconds, readBytes, writtenBytes, openFiles, refused,
	unsaved, oldest, conflicts, backendErrors, requests, sent, received,
	failing, fetching, fetchLimit, expiry, panics, notified, watched, watchLate, inodes *prometheus.Desc
}

func newMetrics(d *Daemon) *metrics {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("wsmount_"+name, help, labels, prometheus.Labels{"workspace": d.tree.Name})
	}
	m := &metrics{d: d, registry: prometheus.NewRegistry(),
		ops:           desc("ops_total", "Requests of the kernel, by operation and errno.", "op", "errno"),
		seconds:       desc("op_seconds", "Time that requests of the kernel took.", "op"),
		readBytes:     desc("read_bytes_total", "Bytes read through the daemon; passthrough is not seen."),
		writtenBytes:  desc("written_bytes_total", "Bytes written through the daemon; passthrough is not seen."),
		openFiles:     desc("open_files", "Files that programs hold open.", "part"),
		refused:       desc("read_only_refused_total", "Changes refused because a part is read-only.", "part"),
		unsaved:       desc("unsaved_bytes", "Bytes that the store does not have yet.", "part"),
		oldest:        desc("oldest_unsaved_seconds", "Age of the oldest unsaved change.", "part"),
		conflicts:     desc("conflicts", "Unresolved conflicts.", "part"),
		backendErrors: desc("backend_errors_total", "Failed requests to the store, by kind.", "part", "kind"),
		requests:      desc("backend_requests_total", "Requests to the store's service, by its own name of them.", "part", "request"),
		sent:          desc("backend_sent_bytes_total", "Bytes of bodies sent to the store's service.", "part", "request"),
		received:      desc("backend_received_bytes_total", "Bytes of bodies received from the store's service.", "part", "request"),
		failing:       desc("background_failing_seconds", "Time for which work in the background has failed; nothing while it does not.", "part", "activity"),
		fetching:      desc("fetching_bytes", "Bytes that are on their way here from the stores of all parts."),
		fetchLimit:    desc("fetching_limit_bytes", "Bytes that may be on their way here at once."),
		expiry:        desc("credential_expiry_seconds", "Time until a credential expires.", "part"),
		panics:        desc("panics_total", "Requests that ended in a contained panic."),
		notified:      desc("notifications_total", "Changes that the kernel was told of."),
		watched:       desc("watched_directories", "Directories watched for changes by others.", "part"),
		watchLate:     desc("watch_late", "1 while changes by others may show late, since directories are without a watch or events were lost.", "part"),
		inodes:        desc("inodes", "Inodes that the kernel knows.", "part"),
	}
	m.registry.MustRegister(m, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

var _ prometheus.Collector = (*metrics)(nil)

// Describe lists every metric, also those that have no value at the moment.
func (m *metrics) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{m.ops, m.seconds, m.readBytes, m.writtenBytes, m.openFiles, m.refused, m.unsaved,
		m.oldest, m.conflicts, m.backendErrors, m.requests, m.sent, m.received, m.failing, m.fetching, m.fetchLimit, m.expiry, m.panics, m.notified, m.watched, m.watchLate, m.inodes} {
		out <- d
	}
}

// Collect reads the counters.
func (m *metrics) Collect(out chan<- prometheus.Metric) {
	if m.d.server == nil {
		return
	}
	stats := m.d.server.Stats()
	counter := func(d *prometheus.Desc, v uint64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v), labels...)
	}
	for _, op := range stats.Ops {
		for errno, n := range op.Errnos {
			counter(m.ops, n, op.Op, errnoName(errno))
		}
		out <- prometheus.MustNewConstHistogram(m.seconds, op.Count, op.Seconds, cumulative(op.Buckets), op.Op)
	}
	counter(m.readBytes, stats.ReadBytes)
	counter(m.writtenBytes, stats.WrittenBytes)
	counter(m.panics, stats.Panics)
	counter(m.notified, stats.Notified)
	m.collectParts(out, counter)
}

// lateness is 1 while changes by others may show late.
func lateness(w control.Watch) float64 {
	if w.State == "exhausted" || w.State == "partial" {
		return 1
	}
	return 0
}

func (m *metrics) collectParts(out chan<- prometheus.Metric, counter func(*prometheus.Desc, uint64, ...string)) {
	status := m.d.Status()
	out <- prometheus.MustNewConstMetric(m.fetching, prometheus.GaugeValue, float64(status.Fetching.Used))
	out <- prometheus.MustNewConstMetric(m.fetchLimit, prometheus.GaugeValue, float64(status.Fetching.Limit))
	for i, p := range status.Parts {
		name := m.d.parts[i].name
		gauge := func(d *prometheus.Desc, v float64) {
			out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, name)
		}
		gauge(m.openFiles, float64(p.OpenFiles))
		gauge(m.unsaved, float64(p.Unsaved.Bytes))
		gauge(m.conflicts, float64(p.Conflicts))
		gauge(m.watched, float64(p.Watch.Directories))
		gauge(m.watchLate, lateness(p.Watch))
		gauge(m.inodes, float64(p.Inodes))
		age := 0.0
		if !p.Unsaved.Oldest.IsZero() {
			age = status.Taken.Sub(p.Unsaved.Oldest).Seconds()
		}
		gauge(m.oldest, age)
		counter(m.refused, p.Refused, name)
		for kind, n := range m.d.parts[i].failureKinds() {
			counter(m.backendErrors, n, name, kind)
		}
		if p.Copy == nil {
			continue
		}
		for _, f := range p.Copy.Failing {
			out <- prometheus.MustNewConstMetric(m.failing, prometheus.GaugeValue, status.Taken.Sub(f.Since).Seconds(), name, f.Activity)
		}
		for request, n := range p.Copy.Requests {
			counter(m.requests, uint64(n.Count), name, request)
			counter(m.sent, uint64(n.Sent), name, request)
			counter(m.received, uint64(n.Received), name, request)
		}
	}
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

func (m *metrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}

// listen serves the metrics on a TCP address, which must be a loopback one:
// they name workspaces and need no password.
func (m *metrics) listen(ctx context.Context, addr string, log *slog.Logger) (stop func() error, err error) {
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
	mux.Handle("GET /metrics", m.handler())
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
