package main

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// A limit is what the SDK alone reaches in the unit of a workload.
type limit func(ctx context.Context, b *bucketBench) (float64, error)

const (
	foreign = "foreign/" // what was there before, below small/ and large/
	rawWays = 32
)

func foreignKey(i int) string { return foreign + smallDir + "/" + bucketName(i) }

// rawList lists what `ls -lR` shows, in seconds.
func rawList(ctx context.Context, b *bucketBench) (float64, error) {
	return b.rawKeys(ctx, foreign+smallDir+"/", bucketFiles)
}

// rawWalk lists what a walk finds, page by page, in seconds.
func rawWalk(ctx context.Context, b *bucketBench) (float64, error) {
	return b.rawKeys(ctx, foreign+treeDir+"/", manyFiles)
}

// rawKeys lists all below a prefix, in which so many objects are.
func (b *bucketBench) rawKeys(ctx context.Context, prefix string, want int) (float64, error) {
	start := time.Now()
	n, err := b.far.list(ctx, prefix)
	if err == nil && n != want {
		err = fmt.Errorf("%d keys listed, want %d", n, want)
	}
	return time.Since(start).Seconds(), err
}

func rawSmall(ctx context.Context, b *bucketBench) (float64, error) {
	start := time.Now()
	err := inParallel(bucketFiles, rawWays, func(i int) error {
		return b.far.getRange(ctx, foreignKey(i), 0, make([]byte, smallSize))
	})
	return bucketFiles / time.Since(start).Seconds(), err
}

func rawLarge(ctx context.Context, b *bucketBench) (float64, error) {
	const part = partBlocks * block
	buffers := sync.Pool{New: func() any { return new([part]byte) }}
	size := int64(b.o.size) * block
	start := time.Now()
	err := inParallel(int((size+part-1)/part), largeWays, func(i int) error {
		buf := buffers.Get().(*[part]byte)
		defer buffers.Put(buf)
		off := int64(i) * part
		return b.far.getRange(ctx, foreign+largeDir+"/"+largeName, off, buf[:min(part, size-off)])
	})
	return float64(b.o.size) / time.Since(start).Seconds(), err
}

func rawWrite(ctx context.Context, b *bucketBench) (float64, error) {
	start := time.Now()
	err := b.far.putLarge(ctx, "raw/"+largeName, b.o.size)
	return float64(b.o.size) / time.Since(start).Seconds(), err
}

// rawCreate is what as many threads as the workload has can put: each waits for
// the latency and for the service.
func rawCreate(ctx context.Context, b *bucketBench) (float64, error) {
	data := smallContent(0)
	start := time.Now()
	err := inParallel(bucketFiles, bucketThreads, func(i int) error {
		return b.far.put(ctx, "raw/"+smallName(i), data)
	})
	return bucketFiles / time.Since(start).Seconds(), err
}
