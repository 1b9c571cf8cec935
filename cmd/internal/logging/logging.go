// Package logging opens the log of a mount: a file that is rotated, the terminal or
// systemd's journal.
//
//	log, file, closer, err := logging.Open(logging.Options{StateFile: name})
package logging

import (
	"cmp"
	"fmt"
	"io"
	"log/slog"
	"os"

	sdjournal "github.com/coreos/go-systemd/v22/journal"
	"golang.org/x/sys/unix"
	"gopkg.in/natefinch/lumberjack.v2"

	"github.com/wsmount/wsmount/cmd/internal/exit"
)

// Log files are rotated at this size; this many old ones are kept.
const (
	megabytes = 10
	kept      = 3
)

// Options say where the log goes, and its level and format.
type Options struct {
	File       string // a file, rotated; empty: the journal, the terminal or StateFile
	StateFile  string // where the log of a background mount goes otherwise
	Foreground bool
	Level      string // debug, info (also when empty), warn or error
	Format     string // text (also when empty) or json

	Fields map[string]string // of every record, where the journal has fields
}

// Open returns the log, the file it goes to (empty: the journal or the
// terminal), and a closer for it.
func Open(o Options) (*slog.Logger, string, io.Closer, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(cmp.Or(o.Level, "info"))); err != nil {
		return nil, "", nil, exit.New(exit.Usage, "unknown log level %q", o.Level).Hint("debug, info, warn or error")
	}
	if o.Format != "" && o.Format != "text" && o.Format != "json" {
		return nil, "", nil, exit.New(exit.Usage, "unknown log format %q", o.Format).Hint("text or json")
	}
	journal := underJournal()
	if o.File == "" && (o.Foreground || journal) {
		return slog.New(handler(os.Stderr, o, level, journal)), "", io.NopCloser(nil), nil
	}
	name := cmp.Or(o.File, o.StateFile)
	f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600) // lumberjack opens late and says nothing
	if err != nil {
		return nil, "", nil, exit.New(exit.Failed, "log file: %w", err).Hint("give --log-file a file that you may write")
	}
	f.Close()
	w := &lumberjack.Logger{Filename: name, MaxSize: megabytes, MaxBackups: kept}
	return slog.New(handler(w, o, level, false)), name, w, nil
}

// underJournal reports whether standard error is the journal's own socket
// (systemd.exec(5), JOURNAL_STREAM).
func underJournal() bool {
	var st unix.Stat_t
	if unix.Fstat(2, &st) != nil {
		return false
	}
	return os.Getenv("JOURNAL_STREAM") == fmt.Sprintf("%d:%d", st.Dev, st.Ino)
}

func handler(w io.Writer, o Options, level slog.Level, journal bool) slog.Handler {
	switch {
	case journal && sdjournal.Enabled():
		return newFielded(w, o, level, sdjournal.Send)
	case journal:
		return newJournal(w, o.Format, level)
	}
	return plainHandler(w, o.Format, &slog.HandlerOptions{Level: level})
}

func plainHandler(w io.Writer, format string, o *slog.HandlerOptions) slog.Handler {
	if format == "json" {
		return slog.NewJSONHandler(w, o)
	}
	return slog.NewTextHandler(w, o)
}
