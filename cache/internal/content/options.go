package content

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"golang.org/x/sys/unix"
)

// Errors of this package. Errors of a [Source] or the disk pass through.
var (
	// ErrCorrupt says that bytes are wrong: a digest that does not match, or a source that
	// delivered more than it was asked for.
	ErrCorrupt = errors.New("content is corrupt")

	// ErrDamaged says that the map of present blocks of a file cannot be read. Bytes that
	// programs wrote may still be in the file.
	ErrDamaged = errors.New("record of present blocks is damaged")

	// ErrChanged says that a snapshot lost its state to a change that was too
	// large to be kept aside. Take another.
	ErrChanged = errors.New("content changed while it was being read")

	// ErrNoSource says that a block is missing and the file has no source.
	ErrNoSource = errors.New("content is not here, and its source is not known")

	// ErrPartial says that an operation needs content that is wholly local.
	ErrPartial = errors.New("content is not wholly here")

	// ErrClosed says that the store, or the file, is not in use any more.
	ErrClosed = errors.New("content store is closed")
)

// Options of a [Store]. The zero value works.
type Options struct {
	// Limit is how many bytes of clean content are kept; 0 means as many as the disk has
	// room for.
	Limit int64

	// Mine is asked how many of so many bytes of clean content may stay, beside those of
	// other stores; nil: all. It must not call the store.
	Mine func(clean int64) int64

	// Floor is how many free bytes of the disk content may not use. 0 means
	// 256 MiB, or 2 percent of the disk if that is less; negative none.
	Floor int64

	// Ballast is the size of a file that is given up on a full disk, so that
	// deletes and the database go on working, and made again when there is
	// room. It comes on top of the floor. 0 means 64 MiB, or a 320th of the disk if
	// that is less, but at least 8 MiB, or a 12th of the disk if that is less: the
	// database flushes 4 MiB at once. Negative: none.
	Ballast int64

	// BallastFile is the ballast, which the stores of one disk may share: each sees
	// when another gave it up; "": the store has one of its own.
	BallastFile string

	// Block is the unit of presence, a power of two. 0 means 128 KiB, as much as
	// the kernel asks for at first, but a file of up to 1 MiB is one block. Large
	// files have larger ones, so that none has more than 65536.
	Block int64

	// Budget bounds the bytes that fetches have under way; nil: there is no bound.
	Budget Budget

	// Log takes failures that no caller gets as an error; nil is silent.
	Log *slog.Logger

	// Now tells the time; nil is time.Now.
	Now func() time.Time

	// Statfs describes the disk; nil asks the kernel.
	Statfs func(dir string, st *unix.Statfs_t) error

	// Fsync brings a file, or the names in a directory, to the disk; nil asks the kernel.
	Fsync func(fd int) error

	// For tests.
	boot  string // names the boot
	least int64  // a file that is no larger is one block
	piece int64  // of a piece that a snapshot puts aside
	most  int64  // bytes that a writer puts aside at once
	write func(fd int, p []byte, off int64) (int, error)
	read  func(fd int, p []byte, off int64) (int, error) // of a snapshot
}

// Budget bounds the bytes that fetches have under way. Release gives them back.
type Budget interface {
	// Take waits until there is room for n bytes.
	Take(ctx context.Context, n int64) (release func(), err error)

	// TryTake does not wait: it is for bytes that a reader may need later.
	TryTake(reader any, n int64) (release func(), ok bool)
}

const (
	defaultBlock   = 128 << 10
	oneBlock       = 1 << 20 // a file of that size is one, unless Options.Block says otherwise
	defaultFloor   = 256 << 20
	defaultBallast = 64 << 20
	leastBallast   = 8 << 20

	maxBlocks = 1 << 16 // of one file
	maxFetch  = 8 << 20 // bytes of one call of a source, unless a block is larger
	parallel  = 4       // calls of a source at once for one caller
)

func (o Options) withDefaults() Options {
	if o.Block <= 0 {
		o.Block, o.least = defaultBlock, oneBlock
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Statfs == nil {
		o.Statfs = func(dir string, st *unix.Statfs_t) error {
			return retry(func() error { return unix.Statfs(dir, st) })
		}
	}
	if o.boot == "" {
		o.boot = bootID()
	}
	if o.piece == 0 {
		o.piece, o.most = pieceSize, mostAtOnce
	}
	if o.Fsync == nil {
		o.Fsync = unix.Fsync
	}
	if o.write == nil {
		o.write = pwrite
	}
	if o.read == nil {
		o.read = pread
	}
	return o
}

// blockOf is the block size of a file.
func (o *Options) blockOf(size int64) int64 {
	block := o.Block
	if size <= o.least {
		return o.least
	}
	for (size+block-1)/block > maxBlocks {
		block *= 2
	}
	return block
}
