package logging

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"maps"
	"strings"
	"sync"

	sdjournal "github.com/coreos/go-systemd/v22/journal"
)

// fielded writes records for systemd's journal by its own protocol: beside the line, which is
// that of a journal without the priority, each attribute is a field, so that `journalctl
// WSMOUNT_WORKSPACE=@acme/app` finds the records of a workspace. A record that the journal does
// not take goes to its standard error as a line.
type fielded struct {
	*entry
	line   slog.Handler // into entry.text
	lines  slog.Handler // for records that the journal refuses
	fields map[string]string
	group  string
}

// An entry is the record being written, one at a time.
type entry struct {
	send func(message string, p sdjournal.Priority, fields map[string]string) error

	mu   sync.Mutex // guards text
	text bytes.Buffer
}

// newFielded writes to the journal, which has w for lines.
func newFielded(w io.Writer, o Options, level slog.Level, send func(string, sdjournal.Priority, map[string]string) error) slog.Handler {
	e, fields := &entry{send: send}, map[string]string{"SYSLOG_IDENTIFIER": "wsmount"}
	for key, value := range o.Fields {
		fields[fieldName(key)] = value
	}
	return fielded{e, plainHandler(&e.text, o.Format, withoutTime(level)), newJournal(w, o.Format, level), fields, ""}
}

func (f fielded) Enabled(ctx context.Context, l slog.Level) bool { return f.line.Enabled(ctx, l) }

func (f fielded) Handle(ctx context.Context, r slog.Record) error {
	fields := maps.Clone(f.fields)
	r.Attrs(func(a slog.Attr) bool {
		addField(fields, f.group, a)
		return true
	})
	text, err := f.textOf(ctx, r)
	if err != nil {
		return err
	}
	if f.send(text, priority(r.Level), fields) != nil {
		return f.lines.Handle(ctx, r)
	}
	return nil
}

func priority(l slog.Level) sdjournal.Priority {
	switch {
	case l < slog.LevelInfo:
		return sdjournal.PriDebug
	case l < slog.LevelWarn:
		return sdjournal.PriInfo
	case l < slog.LevelError:
		return sdjournal.PriWarning
	}
	return sdjournal.PriErr
}

func (f fielded) textOf(ctx context.Context, r slog.Record) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.text.Reset()
	err := f.line.Handle(ctx, r)
	return strings.TrimSuffix(f.text.String(), "\n"), err
}

func (f fielded) WithAttrs(attrs []slog.Attr) slog.Handler {
	f.line, f.lines, f.fields = f.line.WithAttrs(attrs), f.lines.WithAttrs(attrs), maps.Clone(f.fields)
	for _, a := range attrs {
		addField(f.fields, f.group, a)
	}
	return f
}

func (f fielded) WithGroup(name string) slog.Handler {
	f.line, f.lines, f.group = f.line.WithGroup(name), f.lines.WithGroup(name), f.group+name+"."
	return f
}

// addField adds an attribute, or each of a group.
func addField(fields map[string]string, group string, a slog.Attr) {
	v := a.Value.Resolve()
	if v.Kind() == slog.KindGroup {
		if a.Key != "" {
			group += a.Key + "."
		}
		for _, in := range v.Group() {
			addField(fields, group, in)
		}
		return
	}
	fields[fieldName(group+a.Key)] = v.String()
}

// fieldName makes a name that the journal accepts: capitals, digits and underscores, at most 64.
func fieldName(key string) string {
	name := strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, "WSMOUNT_"+strings.ToUpper(key))
	return name[:min(len(name), 64)]
}
