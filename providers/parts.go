package providers

import (
	"context"
	"time"
)

// Multiparter takes large content in parts, several at a time.
type Multiparter interface {
	// StartParts begins an upload to l. Nothing is visible before Complete.
	// opts are Write's; the condition is checked by Complete at the latest.
	StartParts(ctx context.Context, l Locator, opts WriteOptions) (Upload, error)
	// AbortParts aborts uploads that began before then and were never completed, for instance
	// because the program was killed, and returns how many.
	AbortParts(ctx context.Context, before time.Time) (int, error)
}

// Upload is content that arrives in parts. Parts are numbered from 1, may be sent in any order
// and concurrently, and replace one of the same number. Sizes are bounded by
// Capabilities.Parts.
type Upload interface {
	// Part sends part n.
	Part(ctx context.Context, n int, body Body) error
	// CopyPart takes part n from a range of an entry that the backend has
	// already; the version is required.
	CopyPart(ctx context.Context, n int, from Locator, opts ReadOptions) error
	// Complete makes the parts the content, in one step; errors as in Write.
	Complete(ctx context.Context) (Info, error)
	// Abort frees the parts. After Complete it does nothing.
	Abort(ctx context.Context) error
}
