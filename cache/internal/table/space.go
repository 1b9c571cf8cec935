package table

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"syscall"
)

// ErrFull: there is no room on the disk to record the changes. It comes with
// ENOSPC or EDQUOT.
var ErrFull = errors.New("no room for changes of the table")

// backlog tells how much of the log is not in other files yet, and so in memory. Pebble
// lets a commit wait for these files, for as long as it takes; our commits do not wait for
// a file that cannot be written.
type backlog struct {
	written atomic.Int64 // bytes, to all logs

	mu      sync.Mutex // guards the rest
	changed *sync.Cond
	begun   extent // the logs that were begun, and the bytes in those before the last
	taken   extent // the part that the flush under way takes
	flushed extent
	failing bool
	frozen  bool
}

// extent is a number of logs, and of bytes in them.
type extent struct{ logs, bytes int64 }

// high says that a commit has to wait: before Pebble lets it wait, which is at memTables,
// and not before Pebble has a reason to flush, which it has at half a memtable. (The first
// memtables are small, and many of them are no reason.)
func (b *backlog) high(memTable uint64) bool {
	return b.begun.logs-b.flushed.logs >= memTables-2 && b.begun.bytes-b.flushed.bytes >= int64(memTable/2)
}

func newBacklog() *backlog {
	b := &backlog{}
	b.changed = sync.NewCond(&b.mu)
	return b
}

// change makes a change that others may wait for.
func (b *backlog) change(do func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	do()
	b.changed.Broadcast()
}

// begin notes a new log.
func (b *backlog) begin() {
	b.change(func() { b.begun = extent{b.begun.logs + 1, b.written.Load()} })
}

// isFailing reports whether Pebble's work in the background fails.
func (b *backlog) isFailing() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.failing
}

// wait returns when there is memory for a commit, or false when there is none and none will
// be soon.
func (b *backlog) wait(size, memTable uint64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.high(memTable) && !b.failing && !b.frozen {
		b.changed.Wait()
	}
	// A large commit is a memtable of its own.
	return b.frozen || !b.failing || !b.high(memTable) && size < memTable/2
}

// full looks for room before a commit: for the changes in memory, and in the
// log, this one and the next, since a log that cannot be written is the end of the
// table.
func (t *Table) full() error {
	size := t.batch.Len()
	if !t.disk.backlog.wait(uint64(size), t.options.memTable) {
		return fmt.Errorf("%w: %w", ErrFull, syscall.ENOSPC)
	}
	need := int64(size+size/1024) + logOverhead
	err := t.disk.reserveNext(need)
	if log := t.disk.current(); err == nil && log != nil {
		err = log.reserve(need)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrFull, err)
	}
	return nil
}

// logOverhead is more than a commit and the end of a log add to its changes, beside 11
// bytes for each 32 KiB.
const logOverhead = 64 << 10

// tidying is told of Pebble's work in the background.
type tidying struct {
	disk *disk
	log  *slog.Logger
}

func (t tidying) flushBegins() {
	b := t.disk.backlog
	b.change(func() { b.taken = b.begun })
}

func (t tidying) flushEnds(err error) {
	b := t.disk.backlog
	if err == nil {
		b.change(func() { b.flushed = b.taken })
	}
	t.tidy(err)
}

// untidy notes that Pebble's work in the background fails. Pebble will try again.
func (t tidying) untidy(err error) {
	if !t.disk.backlog.isFailing() {
		t.log.Warn("the table of the working copy cannot be tidied", slog.Any("error", err))
	}
	t.disk.backlog.change(func() { t.disk.backlog.failing = true })
}

// tidy notes that some of it succeeded.
func (t tidying) tidy(err error) {
	if err == nil && t.disk.backlog.isFailing() {
		t.disk.pauses.Store(0)
		t.log.Info("the table of the working copy is tidied again")
		t.disk.backlog.change(func() { t.disk.backlog.failing = false })
	}
}
