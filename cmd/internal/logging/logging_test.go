package logging

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	sdjournal "github.com/coreos/go-systemd/v22/journal"
	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/testrun"
)

func TestMain(m *testing.M) { os.Exit(testrun.Main(m)) }

func TestOpen(t *testing.T) {
	dir := t.TempDir()
	tests := []struct {
		name string
		o    Options
		file string // where the log goes; "" is standard error
		code exit.Code
	}{
		{"background", Options{StateFile: dir + "/state"}, dir + "/state", exit.Done},
		{"foreground", Options{StateFile: dir + "/state", Foreground: true}, "", exit.Done},
		{"a file wins", Options{StateFile: dir + "/state", Foreground: true, File: dir + "/own"}, dir + "/own", exit.Done},
		{"level", Options{StateFile: dir + "/state", Level: "loud"}, "", exit.Usage},
		{"format", Options{StateFile: dir + "/state", Format: "xml"}, "", exit.Usage},
		{"a file that cannot be", Options{File: dir + "/no/such"}, "", exit.Failed},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			log, file, closer, err := Open(tt.o)
			if tt.code != exit.Done {
				e := exit.From(err)
				assert.True(t, e != nil && e.Code == tt.code && e.Advice != "", e, tt.code)
				return
			}
			assert.Must(t, err == nil && file == tt.file, file, tt.file, err)
			defer closer.Close()
			if file == "" {
				return
			}
			log.Debug("below the level")
			log.Info("hello")
			b := assert.Of(os.ReadFile(file)).OK(t)
			assert.True(t, strings.Contains(string(b), "hello") && !strings.Contains(string(b), "below"), b)
			assert.Equal(t, assert.Of(os.Stat(file)).OK(t).Mode().Perm(), 0o600, "mode")
		})
	}
}

func TestLogRotates(t *testing.T) {
	dir := t.TempDir()
	log, name, closer, err := Open(Options{StateFile: dir + "/log"})
	assert.OK(t, err)
	defer closer.Close()
	line := strings.Repeat("x", 1<<20)
	for range megabytes + 2 {
		log.Info(line)
	}
	assert.Equal(t, len(assert.Of(filepath.Glob(dir+"/log*")).OK(t)), 2, "want the log and one old one")
	fi := assert.Of(os.Stat(name)).OK(t)
	assert.True(t, fi.Size() <= (megabytes+1)<<20, "the log is larger than its limit", fi.Size())
}

// The journal wants a priority before each line, and keeps time and level itself.
func TestJournal(t *testing.T) {
	var b bytes.Buffer
	log := slog.New(newJournal(&b, "text", slog.LevelDebug)).With("part", "a").WithGroup("g")
	log.Debug("d", "k", 1)
	log.Info("i")
	log.Warn("w")
	log.Error("e", "level", "kept")
	want := "<7>msg=d part=a g.k=1\n<6>msg=i part=a\n<4>msg=w part=a\n<3>msg=e part=a g.level=kept\n"
	assert.Equal(t, b.String(), want)
	assert.False(t, newJournal(&b, "json", slog.LevelInfo).Enabled(context.Background(), slog.LevelDebug), "debug is enabled at level info")
}

// Beside its line, each attribute is a field; what the journal does not take is a line at least.
func TestFields(t *testing.T) {
	var b bytes.Buffer
	var sent []string
	var fails error
	send := func(message string, p sdjournal.Priority, fields map[string]string) error {
		sent = append(sent, fmt.Sprint(p, " ", message, " ", fields))
		return fails
	}
	log := slog.New(newFielded(&b, Options{Fields: map[string]string{"mountpoint": "/mnt/ws", "workspace": "@acme/ws"}}, slog.LevelInfo, send)).With("workspace", "@acme/app")
	log.Debug("below the level")
	log.Info("mounted", "readOnly", true)
	log.WithGroup("g").Warn("w w", "k-1", 1, slog.Group("in", "n", 2))
	fails = errors.New("it is full")
	log.Error("e")
	assert.Slice(t, sent, []string{
		"6 msg=mounted workspace=@acme/app readOnly=true map[SYSLOG_IDENTIFIER:wsmount WSMOUNT_MOUNTPOINT:/mnt/ws WSMOUNT_READONLY:true WSMOUNT_WORKSPACE:@acme/app]",
		`4 msg="w w" workspace=@acme/app g.k-1=1 g.in.n=2 map[SYSLOG_IDENTIFIER:wsmount WSMOUNT_G_IN_N:2 WSMOUNT_G_K_1:1 WSMOUNT_MOUNTPOINT:/mnt/ws WSMOUNT_WORKSPACE:@acme/app]`,
		"3 msg=e workspace=@acme/app map[SYSLOG_IDENTIFIER:wsmount WSMOUNT_MOUNTPOINT:/mnt/ws WSMOUNT_WORKSPACE:@acme/app]"})
	assert.Equal(t, b.String(), "<3>msg=e workspace=@acme/app\n", "what was not taken")
}

// Concurrent records must not take each other's priority.
func TestJournalConcurrent(t *testing.T) {
	var b lines
	log := slog.New(newJournal(&b, "text", slog.LevelDebug))
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 100 {
				log.Info("info")
				log.Error("error")
			}
		})
	}
	wg.Wait()
	for _, l := range strings.Split(strings.TrimSpace(b.String()), "\n") {
		assert.Must(t, l == "<6>msg=info" || l == "<3>msg=error", "got", l)
	}
}

// lines is a file that several handlers write to, one write(2) at a time.
type lines struct {
	mu sync.Mutex // guards b
	b  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) String() string { return l.b.String() }

func TestUnderJournal(t *testing.T) {
	var st unix.Stat_t
	assert.OK(t, unix.Fstat(2, &st))
	for value, want := range map[string]bool{"": false, "1:2": false, fmt.Sprintf("%d:%d", st.Dev, st.Ino): true} {
		t.Setenv("JOURNAL_STREAM", value)
		assert.Equal(t, underJournal(), want, value)
	}
}
