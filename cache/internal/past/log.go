package past

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/wsmount/wsmount/cache/internal/history"
	"github.com/wsmount/wsmount/cache/internal/tree"
)

// LogFilter selects the versions that Log gives. Zero fields do not select.
type LogFilter struct {
	// Path is a file or a directory: versions of it and below, by the present paths of the files
	// or their paths then.
	Path                      string
	Since, Until              time.Time // both included
	Event, Turn, Conversation string
	Commit                    string // that they went into: its name, or enough of it
	Limit                     int    // the newest so many
}

// logStep is how many records are read under one lock.
const logStep = 256

// Log gives versions, the newest first.
func (h *Past) Log(ctx context.Context, f LogFilter) ([]Version, error) {
	f.Path = strings.Trim(f.Path, "/")
	if f.Commit != "" {
		found, err := h.findCommit(ctx, f.Commit)
		if err != nil {
			return nil, fmt.Errorf("log: %w", err)
		}
		f.Commit = string(found.Revision)
	}
	var list []Version
	err := h.eachRecord(ctx, func(v *tree.View, id uint64, r *history.Record) {
		if !f.matches(r) {
			return
		}
		ver := versionOf(v, id, r)
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

// matches applies all fields but the path.
func (f *LogFilter) matches(r *history.Record) bool {
	at := time.Unix(0, r.Time)
	return (f.Since.IsZero() || !at.Before(f.Since)) && (f.Until.IsZero() || !at.After(f.Until)) &&
		(f.Event == "" || f.Event == r.Event) && (f.Turn == "" || f.Turn == r.Turn) &&
		(f.Conversation == "" || f.Conversation == r.Conversation) && (f.Commit == "" || f.Commit == r.Commit)
}

// eachRecord visits the records, the oldest first, in steps that
// hold the lock; visit runs under it.
func (h *Past) eachRecord(ctx context.Context, visit func(v *tree.View, id uint64, r *history.Record)) error {
	after := ""
	for more := true; more; {
		if err := ctx.Err(); err != nil {
			return err
		}
		step := 0
		err := h.o.Tree.View(func(v *tree.View) error {
			v.Scan(history.Prefix, after, func(key string, value []byte) bool {
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
