package logging

import (
	"context"
	"io"
	"log/slog"
)

// journal writes records for systemd's journal: each line begins with its
// syslog priority (sd-daemon(3)) and leaves out the time and level, which the
// journal keeps itself. It holds one handler per priority, so that concurrent
// records cannot take each other's.
type journal [4]slog.Handler

// priorities belong to the handlers of a journal: debug, info, warning, error.
var priorities = [4]string{"<7>", "<6>", "<4>", "<3>"}

func newJournal(w io.Writer, format string, level slog.Level) slog.Handler {
	var j journal
	for i, p := range priorities {
		j[i] = plainHandler(&prefixed{w, p}, format, withoutTime(level))
	}
	return j
}

// withoutTime leaves out the attributes that the journal keeps itself.
func withoutTime(level slog.Level) *slog.HandlerOptions {
	return &slog.HandlerOptions{Level: level, ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
		if len(groups) == 0 && (a.Key == slog.TimeKey || a.Key == slog.LevelKey) {
			return slog.Attr{}
		}
		return a
	}}
}

func (j journal) pick(l slog.Level) slog.Handler {
	switch {
	case l < slog.LevelInfo:
		return j[0]
	case l < slog.LevelWarn:
		return j[1]
	case l < slog.LevelError:
		return j[2]
	}
	return j[3]
}

func (j journal) Enabled(ctx context.Context, l slog.Level) bool { return j[0].Enabled(ctx, l) }

func (j journal) Handle(ctx context.Context, r slog.Record) error {
	return j.pick(r.Level).Handle(ctx, r)
}

func (j journal) WithAttrs(attrs []slog.Attr) slog.Handler {
	for i := range j {
		j[i] = j[i].WithAttrs(attrs)
	}
	return j
}

func (j journal) WithGroup(name string) slog.Handler {
	for i := range j {
		j[i] = j[i].WithGroup(name)
	}
	return j
}

// prefixed puts a prefix before each line; a handler writes one line at a time.
type prefixed struct {
	w      io.Writer
	prefix string
}

func (p *prefixed) Write(b []byte) (int, error) {
	if _, err := io.WriteString(p.w, p.prefix+string(b)); err != nil {
		return 0, err
	}
	return len(b), nil
}
