package main

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
)

// What the bucket holds before anybody mounts it: small files in directories,
// and a large one. Each byte of both is known, so that what arrives elsewhere
// can be compared.
const (
	bucketDirs  = 20
	bucketFiles = 1000 // in all directories together
	smallSize   = 4096
	largeName   = "large"
)

// sizeVariable tells a worker how large the large file is, in MiB.
const sizeVariable = "BENCH_SIZE"

func largeBlocks() (n int, err error) {
	_, err = fmt.Sscan(os.Getenv(sizeVariable), &n)
	return n, err
}

// bucketName is the i-th small file, below the directory of all.
func bucketName(i int) string { return fmt.Sprintf("dir-%02d/%s", i%bucketDirs, smallName(i)) }

// A tree of many directories, to walk through.
const (
	manyDirs  = 1000
	manyFiles = 10 * manyDirs // in all directories together
)

// manyName is the i-th file of it, below the directory of all.
func manyName(i int) string { return fmt.Sprintf("dir-%03d/%s", i%manyDirs, smallName(i)) }

// manyContent is what is in each of them, which nobody reads.
var manyContent = []byte("one of many\n")

func smallContent(i int) []byte {
	data := make([]byte, smallSize)
	_, _ = rand.NewChaCha8(seed(i)).Read(data)
	return data
}

func seed(i int) (s [32]byte) {
	binary.LittleEndian.PutUint64(s[:], uint64(i))
	return s
}

var noise = sync.OnceValue(func() []byte {
	data := make([]byte, block)
	_, _ = rand.NewChaCha8(seed(-1)).Read(data)
	return data
})

// largeBlock fills buf with the i-th block of the large file.
func largeBlock(buf []byte, i int) {
	copy(buf, noise())
	binary.LittleEndian.PutUint64(buf, uint64(i))
}
