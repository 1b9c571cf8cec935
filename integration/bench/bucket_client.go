package main

import (
	"context"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
)

// A bucketClient is an SDK without anything of wsmount: what can be reached at
// most, another who writes, and the witness of what has arrived.
type bucketClient interface {
	put(ctx context.Context, key string, data []byte) error
	// open begins to read an object.
	open(ctx context.Context, key string) (io.ReadCloser, error)
	isMissing(err error) bool
	// getRange reads len(buf) bytes at off.
	getRange(ctx context.Context, key string, off int64, buf []byte) error
	// list counts the keys below prefix, page by page.
	list(ctx context.Context, prefix string) (keys int, err error)
	// putLarge writes an object of so many blocks as fast as the SDK can.
	putLarge(ctx context.Context, key string, blocks int) error
	close()
}

func plainTransport() *http.Transport {
	return &http.Transport{MaxIdleConns: 256, MaxIdleConnsPerHost: 128, DisableCompression: true}
}

// get reads a whole object.
func get(ctx context.Context, c bucketClient, key string) ([]byte, error) {
	body, err := c.open(ctx, key)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	return io.ReadAll(body)
}

func largeParts(blocks int) int { return (blocks + partBlocks - 1) / partBlocks }

// eachLargePart makes the parts of the large object, and has some sent at once.
func eachLargePart(blocks int, send func(i int, part []byte) error) error {
	buffers := sync.Pool{New: func() any { return new([partBlocks * block]byte) }}
	return inParallel(largeParts(blocks), largeWays, func(i int) error {
		part := buffers.Get().(*[partBlocks * block]byte)
		defer buffers.Put(part)
		n := min(partBlocks, blocks-i*partBlocks)
		for b := range n {
			largeBlock(part[b*block:(b+1)*block], i*partBlocks+b)
		}
		return send(i, part[:n*block])
	})
}

// How the large object goes to and fro.
const (
	partBlocks = 8
	largeWays  = 16
)

// inParallel does n things, so many at once, until one fails.
func inParallel(n, ways int, do func(i int) error) error {
	var next atomic.Int64
	var failed atomic.Bool
	errs := make(chan error, ways)
	for range ways {
		go func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= n || failed.Load() {
					errs <- nil
					return
				}
				if err := do(i); err != nil {
					failed.Store(true)
					errs <- err
					return
				}
			}
		}()
	}
	var first error
	for range ways {
		if err := <-errs; first == nil {
			first = err
		}
	}
	return first
}
