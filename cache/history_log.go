package cache

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/wsmount/wsmount/cache/internal/history"
)

// LogFilter says which versions Log gives. Zero fields do not choose.
type LogFilter struct {
	// Path is a file or a directory: versions of it and below, by where the
	// files are now or where they were.
	Path                      string
	Since, Until              time.Time // both included
	Event, Turn, Conversation string
	Commit                    string // that has what they tell of: its name, or enough of it
	Limit                     int    // the newest so many
}

// logStep is how many records are read under one lock.
const logStep = 256

// Log gives versions, the newest first.
func (v *Volume) Log(ctx context.Context, f LogFilter) ([]Version, error) {
	f.Path = strings.Trim(f.Path, "/")
	if f.Commit != "" {
		found, err := v.findCommit(ctx, f.Commit)
		if err != nil {
			return nil, fmt.Errorf("log: %w", err)
		}
		f.Commit = string(found.Revision)
	}
	var list []Version
	err := v.eachRecord(ctx, 0, func(v *View, id uint64, r *history.Record) {
		if !f.matches(r) {
			return
		}
		ver := v.version(id, r)
		if f.Path != "" && !history.Below(ver.Path, f.Path) && !history.Below(r.Path, f.Path) && !history.Below(ver.From, f.Path) {
			return
		}
		list = append(list, ver)
		if f.Limit > 0 && len(list) >= 2*f.Limit {
			list = append(list[:0], list[len(list)-f.Limit:]...)
		}
	})
	if f.Limit > 0 && len(list) > f.Limit {
		list = list[len(list)-f.Limit:]
	}
	slices.Reverse(list)
	return list, err
}

// matches looks at all but the path.
func (f *LogFilter) matches(r *history.Record) bool {
	at := timeOf(r.Time)
	return (f.Since.IsZero() || !at.Before(f.Since)) && (f.Until.IsZero() || !at.After(f.Until)) &&
		(f.Event == "" || f.Event == r.Event) && (f.Turn == "" || f.Turn == r.Turn) &&
		(f.Conversation == "" || f.Conversation == r.Conversation) && (f.Commit == "" || f.Commit == r.Commit)
}

// eachRecord visits the records from one on, the oldest first, in steps that
// hold the lock; visit runs under it.
func (v *Volume) eachRecord(ctx context.Context, from uint64, visit func(v *View, id uint64, r *history.Record)) error {
	after := ""
	if from > 0 {
		after = history.Key(from - 1)
	}
	for more := true; more; {
		if err := ctx.Err(); err != nil {
			return err
		}
		step := 0
		err := v.view(func(v *View) error {
			v.table.Scan(history.Prefix, after, func(key string, value []byte) bool {
				after = key
				if r := history.Decode(value); r != nil {
					visit(v, history.IDOf(key), r)
				}
				step++
				return step < logStep
			})
			return nil
		})
		if err != nil {
			return err
		}
		more = step == logStep
	}
	return nil
}

// version is what is told of a record.
func (v *View) version(id uint64, r *history.Record) Version {
	ver := Version{ID: idText(id), Number: r.Number, New: r.New, Change: r.Change, Why: r.Why,
		Time: timeOf(r.Time), Actor: r.Actor, UID: r.UID, PID: r.PID, Command: r.Cmd,
		Mode: r.Mode, Size: r.Size, SHA256: r.SHA, Base: r.Base, Commit: r.Commit}
	ver.Path = r.Where(v)
	if ver.Path != r.Path {
		ver.Was = r.Path
	}
	if r.From != nil {
		ver.From = r.From.Path
	}
	if of := history.Get(v, r.Of); of != nil && ver.SHA256 == "" {
		ver.SHA256 = of.SHA
	}
	src := v.contentOf(id, r)
	ver.Kept = src.kind != contentGone && (src.kind != contentPast || src.revision != "")
	ver.Current = r.IsCurrent(v)
	return ver
}

const (
	contentGone  contentKind = iota
	contentKept              // in the store's history
	contentHere              // the working copy has it still
	contentAway              // so has the backend, from where it is fetched
	contentEmpty             // there is nothing in it
	contentPast              // a revision of the store has it, or the store may keep it as a version
)
