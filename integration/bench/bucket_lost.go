package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// A loss says of how many files that a program had closed the bucket does not
// have every byte, and names one of them.
type loss struct {
	lost, of int
	key      string
}

// A witness looks into the bucket, not through a mount, for what a workload has
// written below prefix.
type witness func(ctx context.Context, b *bucketBench, prefix string) (loss, error)

// samples of the small files are looked at.
const samples = 100

// written is a file as it must be: blocks of the length of buf.
type written struct {
	key    string
	blocks int
	length int
	fill   func(buf []byte, i int)
}

func wroteSmall(ctx context.Context, b *bucketBench, prefix string) (loss, error) {
	var all []written
	for _, i := range rand.Perm(bucketFiles)[:samples] {
		all = append(all, bytesAt(prefix+"out/"+smallName(i), smallContent(i)))
	}
	return b.lost(ctx, all)
}

func wroteLarge(ctx context.Context, b *bucketBench, prefix string) (loss, error) {
	return b.lost(ctx, []written{{prefix + "out/" + largeName, b.o.size, block, largeBlock}})
}

func wroteClone(ctx context.Context, b *bucketBench, prefix string) (loss, error) {
	var all []written
	for c := range cloneCommits {
		for i := range cloneFiles {
			name := gitName(c, i, cloneFiles)
			all = append(all, bytesAt(prefix+"git/clone/"+name, []byte(gitText(c, i))))
		}
	}
	return b.lost(ctx, all)
}

// wroteSqlite counts the rows of the database.
func wroteSqlite(ctx context.Context, b *bucketBench, prefix string) (loss, error) {
	key := prefix + "out/" + sqliteName
	data, err := get(ctx, b.near, key)
	if b.near.isMissing(err) {
		return loss{1, 1, key}, nil
	} else if err != nil {
		return loss{}, err
	}
	file := filepath.Join(b.dir, "witness.db")
	if err := os.WriteFile(file, data, 0o600); err != nil {
		return loss{}, err
	}
	defer os.Remove(file)
	// A damaged file is an answer, and no failure of this program.
	out, _ := exec.CommandContext(ctx, "sqlite3", "-batch", file, "pragma integrity_check; select count(*) from t;").CombinedOutput()
	if strings.Join(strings.Fields(string(out)), " ") != fmt.Sprint("ok ", sqliteCommits) {
		return loss{1, 1, key}, nil
	}
	return loss{of: 1}, nil
}

func bytesAt(key string, content []byte) written {
	return written{key, 1, len(content), func(buf []byte, _ int) { copy(buf, content) }}
}

func (b *bucketBench) lost(ctx context.Context, all []written) (loss, error) {
	there := make([]bool, len(all))
	err := inParallel(len(all), bucketThreads, func(i int) error {
		var err error
		there[i], err = same(ctx, b.near, all[i])
		return err
	})
	l := loss{of: len(all)}
	for i, ok := range there {
		if !ok {
			l.lost++
			l.key = all[i].key
		}
	}
	return l, err
}

// same says whether the object is there and has these bytes and no others.
func same(ctx context.Context, c bucketClient, f written) (bool, error) {
	body, err := c.open(ctx, f.key)
	if c.isMissing(err) {
		return false, nil
	} else if err != nil {
		return false, err
	}
	defer body.Close()
	got, want := make([]byte, f.length), make([]byte, f.length)
	for i := range f.blocks {
		_, err := io.ReadFull(body, got)
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return false, nil
		} else if err != nil {
			return false, err
		}
		if f.fill(want, i); !bytes.Equal(got, want) {
			return false, nil
		}
	}
	n, err := io.Copy(io.Discard, body)
	return n == 0, err
}
