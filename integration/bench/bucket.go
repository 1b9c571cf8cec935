package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/wsmount/wsmount/integration/internal/slowlink"
)

// A bucketBench is a run over a bucket of a server of its own.
type bucketBench struct {
	*bench
	service *bucketService
	link    *slowlink.Link // nil: there is no latency
	url     string         // where mounts find the server
	far     bucketClient   // over the link, as mounts are
	near    bucketClient   // for what is not measured
	mounts  int            // so far: each that writes has a prefix of its own
}

// compareBuckets measures everything for every user and prints the tables.
func compareBuckets(ctx context.Context, o options) error {
	plain, err := newBench(o)
	if err != nil {
		return err
	}
	defer plain.close()
	b, err := newBucketBench(ctx, plain)
	if err != nil {
		return err
	}
	defer b.close()
	if err := b.fill(ctx); err != nil {
		return err
	}
	return o.eachUser(func(name string) (missed, failed []string, err error) {
		s, err := b.bucketSession(name)
		if err != nil {
			return nil, nil, err
		}
		rows, err := s.measure(ctx)
		s.close()
		if err != nil {
			return nil, nil, fmt.Errorf("as %s: %w", name, err)
		}
		printBuckets(os.Stdout, s, rows)
		for _, r := range rows {
			missed = append(missed, r.missed(s.session)...)
			failed = append(failed, r.problems...)
		}
		return missed, failed, nil
	})
}

func newBucketBench(ctx context.Context, plain *bench) (*bucketBench, error) {
	b := &bucketBench{bench: plain}
	var err error
	if b.service, err = startService(ctx, b.o, b.dir); err != nil {
		return nil, err
	}
	b.url = b.service.endpoint
	if b.o.latency > 0 {
		if b.link, err = slowlink.Listen(ctx, strings.TrimPrefix(b.url, "http://"), b.o.latency); err != nil {
			b.service.stop()
			return nil, err
		}
		b.url = "http://" + b.link.Addr
	}
	if b.service.found != nil {
		b.service.found(b.url)
	}
	if b.far, err = b.service.client(b.url); err == nil {
		b.near, err = b.service.client(b.service.endpoint)
	}
	if err != nil {
		b.service.stop()
	}
	return b, err
}

// close ends the server; the directory is removed with the bench.
func (b *bucketBench) close() {
	b.far.close()
	b.near.close()
	if b.link != nil {
		b.link.Close()
	}
	b.service.stop()
}

// fill has another tool write what the bucket holds before anybody mounts it.
func (b *bucketBench) fill(ctx context.Context) error {
	err := inParallel(bucketFiles, bucketThreads, func(i int) error { return b.near.put(ctx, foreignKey(i), smallContent(i)) })
	if err == nil {
		err = inParallel(manyFiles, bucketThreads, func(i int) error { return b.near.put(ctx, foreign+treeDir+"/"+manyName(i), manyContent) })
	}
	if err != nil {
		return fmt.Errorf("filling the bucket: %w", err)
	}
	return b.near.putLarge(ctx, foreign+largeDir+"/"+largeName, b.o.size)
}

// fillDisk puts the same on a disk.
func (b *bucketBench) fillDisk(dir string) error {
	for i := range bucketFiles {
		path := filepath.Join(dir, smallDir, bucketName(i))
		err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, smallContent(i), 0o644))
		if err != nil {
			return err
		}
	}
	for i := range manyFiles {
		path := filepath.Join(dir, treeDir, manyName(i))
		err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, manyContent, 0o644))
		if err != nil {
			return err
		}
	}
	if err := os.MkdirAll(filepath.Join(dir, largeDir), 0o755); err != nil {
		return err
	}
	f, err := os.Create(filepath.Join(dir, largeDir, largeName))
	if err != nil {
		return err
	}
	defer f.Close()
	buf := make([]byte, block)
	for i := range b.o.size {
		largeBlock(buf, i)
		if _, err := f.Write(buf); err != nil {
			return err
		}
	}
	return f.Sync()
}
