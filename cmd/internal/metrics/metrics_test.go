package metrics

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/wsmount/wsmount/cache"
	"github.com/wsmount/wsmount/cmd/internal/control"
	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/integration/assert"
)

func noMount() (fs.Stats, bool) { return fs.Stats{}, false }

// scrape is what a collector gets.
func scrape(t *testing.T, m *Metrics) string {
	t.Helper()
	rec := httptest.NewRecorder()
	m.Handler().ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	assert.Equal(t, rec.Code, http.StatusOK, rec.Body.String())
	return rec.Body.String()
}

// busy is a mount of which there is something to say by every metric.
func busy(now time.Time) (control.Status, fs.Stats) {
	ago := func(seconds int) time.Time { return now.Add(-time.Duration(seconds) * time.Second) }
	away := control.Part{Name: "@acme/app", At: "/", StoreErrors: map[string]uint64{"unavailable": 3},
		Unsaved: control.Unsaved{Bytes: 100, Oldest: ago(60)}, Conflicts: 1, HeldBack: 2, Watch: control.Watch{State: "partial"},
		Events: []control.Outcome{{Event: "turn-end", Result: "conflict", Count: 4}},
		Copy: &control.Copy{UnpushedCommits: 5, UnpushedSince: ago(30), LastPull: ago(10), LastPush: ago(20),
			CredentialFailures: 6, CredentialsExpire: now.Add(time.Hour), Halted: []string{"pull: too much"},
			Content: cache.ContentUsage{Clean: 7, Unsaved: 8, History: 9}, Failing: []control.Failing{{Activity: "push", Since: ago(90)}},
			Requests: map[string]control.Requests{"GetObject": {Count: 1, Sent: 2, Received: 3}}}}
	local := control.Part{Name: "@acme/app", At: "/lib", Reachable: true}
	ops := []fs.OpStats{{Op: "read", Errnos: map[syscall.Errno]uint64{0: 1, syscall.EIO: 2}, Count: 3, Buckets: make([]uint64, len(fs.Buckets)+1)}}
	return control.Status{Taken: now, Hooks: []control.Hook{{Name: "command page", Delivered: 1}}, Parts: []control.Part{away, local}}, fs.Stats{Ops: ops}
}

// Every metric has a value where there is something to say, and the right one.
func TestValues(t *testing.T) {
	status, stats := busy(time.Unix(1_000_000, 0))
	got := scrape(t, New("@acme/app", func() control.Status { return status }, func() (fs.Stats, bool) { return stats, true }))
	for _, l := range list {
		assert.Contains(t, got, "# HELP wsmount_"+l.name+" "+l.help)
	}
	for name, want := range map[string]string{
		`ops_total{errno="EIO",op="read",workspace="@acme/app"}`:                           "2",
		`op_seconds_count{op="read",workspace="@acme/app"}`:                                "3",
		`hook_notices_total{hook="command page",result="delivered",workspace="@acme/app"}`: "1",
	} {
		assert.Contains(t, got, "\nwsmount_"+name+" "+want+"\n")
	}
	for name, want := range map[string]string{
		"store_reachable": "0", `backend_errors_total{kind="unavailable"`: "3", "credential_failures_total": "6", "credential_expiry_seconds": "3600",
		`background_failing_seconds{activity="push"`: "90", `backend_sent_bytes_total{request="GetObject"`: "2", `backend_received_bytes_total{request="GetObject"`: "3",
		"unsaved_bytes": "100", "oldest_unsaved_seconds": "60", "unpushed_commits": "5", "oldest_unpushed_seconds": "30",
		"last_pull_timestamp_seconds": "999990", "last_push_timestamp_seconds": "999980", "conflicts": "1", "held_back": "2", "halted": "1", "watch_late": "1",
		`cache_bytes{kind="clean"`: "7", `cache_bytes{kind="unsaved"`: "8", `cache_bytes{kind="history"`: "9",
		`events_total{event="turn-end"`: "4",
	} {
		name, label, _ := strings.Cut(name, "{")
		line := ""
		for l := range strings.Lines(got) {
			if strings.HasPrefix(l, "wsmount_"+name+"{") && strings.Contains(l, label) && strings.Contains(l, `part="@acme/app",`) {
				line = l
			}
		}
		assert.True(t, strings.HasSuffix(line, "} "+want+"\n"), name, label, "is", line, "want", want)
	}
	assert.Contains(t, got, `wsmount_store_reachable{part="@acme/app at /lib",workspace="@acme/app"} 1`)
}

// Before the mount is there, the process already tells of itself.
func TestWithoutAMount(t *testing.T) {
	got := scrape(t, New("@acme/app", nil, noMount))
	assert.Contains(t, got, "go_goroutines")
	assert.False(t, strings.Contains(got, "\nwsmount_"), "values of nothing:", got)
}

func TestMetricsStayOnThisMachine(t *testing.T) {
	m := New("@acme/a", nil, noMount)
	for _, addr := range []string{"0.0.0.0:0", ":0", "[::]:0", "example.test:0", "10.0.0.1:0", "127.0.0.1"} {
		stop, err := m.Listen(t.Context(), addr, slog.New(slog.DiscardHandler))
		if err == nil {
			stop()
		}
		e := exit.From(err)
		assert.True(t, e != nil && e.Code == exit.Usage && e.Advice != "", addr, e)
	}
	for _, addr := range []string{"127.0.0.1:0", "[::1]:0"} {
		stop, err := m.Listen(t.Context(), addr, slog.New(slog.DiscardHandler))
		if err != nil {
			if strings.Contains(err.Error(), "cannot assign") {
				continue // no IPv6 here
			}
			t.Errorf("%s: %v", addr, err)
			continue
		}
		assert.Is(t, stop(), nil, addr, "stop")
	}
}

func TestCumulative(t *testing.T) {
	buckets := make([]uint64, len(fs.Buckets)+1)
	buckets[0], buckets[2], buckets[len(buckets)-1] = 3, 4, 5
	got := cumulative(buckets)
	if got[fs.Buckets[0].Seconds()] != 3 || got[fs.Buckets[1].Seconds()] != 3 || got[fs.Buckets[2].Seconds()] != 7 ||
		got[fs.Buckets[len(fs.Buckets)-1].Seconds()] != 7 {
		t.Errorf("got %v", got)
	}
	assert.Equal(t, errnoName(syscall.EROFS)+", "+errnoName(9999), "EROFS, errno 9999")
}

// monitoring has what is packaged for those who collect the metrics.
const monitoring = "../../../integration/example/monitoring/"

var named = regexp.MustCompile(`\bwsmount_[a-z_]+`)

// What an expression asks for is exported.
func TestExpressions(t *testing.T) {
	exported := map[string]bool{}
	for _, l := range list {
		exported["wsmount_"+l.name] = true
		if l.name == "op_seconds" { // the only histogram
			for _, of := range []string{"_bucket", "_count", "_sum"} {
				exported["wsmount_"+l.name+of] = true
			}
		}
	}
	used := map[string]bool{}
	check := func(where, expr string) {
		t.Helper()
		names := named.FindAllString(expr, -1)
		assert.True(t, len(names) > 0 || strings.Contains(expr, "up{"), where, "asks for no metric:", expr)
		for _, name := range names {
			assert.True(t, exported[name], where, "asks for", name, "which is not exported")
			used[name] = true
		}
		assert.Equal(t, strings.Count(expr, "("), strings.Count(expr, ")"), where, expr)
	}
	rules := assert.Of(os.ReadFile(filepath.Join(monitoring, "wsmount.rules.yaml"))).OK(t)
	alerts := regexp.MustCompile(`(?m)^ +- alert: (\S+)\n +expr: (.+)\n(?: +for: \w+\n)? +labels: .+\n +annotations:\n +summary: (.+)\n +description: (.+)\n`).FindAllStringSubmatch(string(rules), -1)
	assert.Equal(t, len(alerts), strings.Count(string(rules), "alert:"), "alerts of the wanted form")
	for _, a := range alerts {
		check(a[1], a[2])
	}
	// What an operator is to be woken for has an alert.
	for _, name := range []string{"store_reachable", "credential_failures_total", "credential_expiry_seconds", "oldest_unpushed_seconds", "oldest_unsaved_seconds",
		"last_pull_timestamp_seconds", "conflicts", "held_back", "halted", "background_failing_seconds", "events_total", "panics_total"} {
		assert.True(t, used["wsmount_"+name], name, "has no alert")
	}
	var board struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
		Templating struct{ List []struct{ Query string } }
	}
	data := assert.Of(os.ReadFile(filepath.Join(monitoring, "wsmount.dashboard.json"))).OK(t)
	assert.OK(t, json.Unmarshal(data, &board))
	assert.True(t, len(board.Panels) > 0 && len(board.Templating.List) > 0, "a dashboard without panels or variables")
	for _, p := range board.Panels {
		for _, target := range p.Targets {
			check(p.Title, target.Expr)
		}
	}
	for _, v := range board.Templating.List {
		if named.MatchString(v.Query) {
			check("a variable", v.Query)
		}
	}
	for name := range exported {
		if !strings.HasPrefix(name, "wsmount_op_seconds") {
			assert.True(t, used[name], name, "is shown nowhere")
		}
	}
}
