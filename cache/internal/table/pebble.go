package table

import (
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"

	_ "github.com/wsmount/wsmount/cache/internal/gopath" // before Pebble is initialized
)

// memTables is the number of memtables at which Pebble makes writers wait. See backlog.
const memTables = 5

// pebbleOptions are sized for a daemon that is one of many on a machine:
// little memory when idle, few descriptors, one compaction at a time.
func (t *Table) pebbleOptions() *pebble.Options {
	tidying := tidying{t.disk, t.log}
	o := &pebble.Options{
		FS:        t.disk,
		CacheSize: t.options.BlockCache,
		// The next format puts into each record of the log how far it was
		// synced, as far as Pebble knows, and takes a hole before that point
		// for damage. Our log is not synced when Pebble thinks it is.
		FormatMajorVersion: pebble.FormatColumnarBlocks,
		// Memory starts at 256 KiB and doubles up to this size.
		MemTableSize:                t.options.memTable,
		MemTableStopWritesThreshold: memTables,
		L0CompactionThreshold:       2,
		// However many files there are to be merged, writers do not wait.
		L0StopWritesThreshold: 1 << 20,
		LBaseMaxBytes:         32 << 20,
		MaxOpenFiles:          256,
		WALBytesPerSync:       512 << 10,
		DisableTableStats:     true,
		Logger:                pebbleLog{&t.failure},
		EventListener: &pebble.EventListener{
			BackgroundError: tidying.untidy,
			DataCorruption:  func(i pebble.DataCorruptionInfo) { t.fail(damagedBy(i.Details)) },
			FlushBegin:      func(pebble.FlushInfo) { tidying.flushBegins() },
			FlushEnd:        func(i pebble.FlushInfo) { tidying.flushEnds(i.Err) },
			CompactionEnd:   func(i pebble.CompactionInfo) { tidying.tidy(i.Err) },
		},
	}
	o.CompactionConcurrencyRange = func() (int, int) { return 1, 1 }
	for i := range o.Levels[:len(o.Levels)-1] {
		o.Levels[i].FilterPolicy = bloom.FilterPolicy(10)
	}
	o.Levels[len(o.Levels)-1].FilterPolicy = pebble.NoFilterPolicy
	return o
}

// damage makes errors of the database that speak of damage an ErrDamaged.
func damage(err error) error {
	if err == nil || errors.Is(err, ErrDamaged) || !pebble.IsCorruptionError(err) {
		return err
	}
	return damagedBy(err)
}

// damagedBy is an ErrDamaged because of an error of the database or the disk, and is
// nothing else: a missing file of the database must not look like [io/fs.ErrNotExist] to a
// caller that asks for that.
func damagedBy(cause error) error {
	return fmt.Errorf("%w: %s", ErrDamaged, cause.Error())
}

// pebbleLog takes Pebble's messages.
type pebbleLog struct{ *failure }

func (l pebbleLog) Infof(string, ...any) {}

func (l pebbleLog) Errorf(format string, args ...any) {
	l.log.Warn("pebble: " + fmt.Sprintf(format, args...))
}

// Fatalf must not return. It is called for failed writes, which disk keeps from Pebble, for
// a file that vanished, and for a bug. Committed changes are in the log.
func (l pebbleLog) Fatalf(format string, args ...any) {
	err := errors.New("pebble: " + fmt.Sprintf(format, args...))
	l.fail(err)
	panic(err)
}
