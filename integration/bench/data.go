package main

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

const (
	mib       = 1 << 20
	largeSize = 256 * mib
	block     = mib // a program's read or write
)

func dataWorkloads() []workload {
	read := func(threads int) func(place) (float64, error) {
		return func(p place) (float64, error) { return p.readCached(threads) }
	}
	return []workload{
		{name: "read, page cache, 1 thread", unit: "MiB/s", bar: bar{disk: 0.85}, copyBar: &bar{disk: 0.85}, probe: "0",
			setup: place.writeLarge, run: read(1)},
		{name: "read, page cache, 4 threads", unit: "MiB/s", bar: bar{disk: 0.85}, copyBar: &bar{disk: 0.85}, probe: "0",
			setup: place.writeLarge, run: read(4)},
		{name: "read, disk", unit: "MiB/s", bar: bar{disk: 0.85, rootOnly: true}, probe: "0", between: cold,
			setup: place.writeLarge, run: func(p place) (float64, error) { return p.readFiles(1) }},
		{name: "write and fsync", unit: "MiB/s", bar: bar{disk: 0.85, rootOnly: true}, probe: "0", probeWrites: true,
			setup: place.writeSmallProbe, run: place.writeDisk},
		{name: "random 4 KiB read, page cache", unit: "reads/s", bar: bar{disk: 0.75}, copyBar: &bar{disk: 0.75}, probe: "0",
			setup: place.writeLarge, run: place.readRandomCached},
		{name: "random 4 KiB read, disk", unit: "reads/s", bar: bar{disk: 0.75}, probe: "0", between: cold,
			setup: place.writeLarge, run: func(p place) (float64, error) { return p.readRandom(3_000) }},
	}
}

// writeLarge makes four files that hold largeSize together, unless they exist.
func (p place) writeLarge() error {
	if st, err := os.Stat(p.file("3")); err == nil && st.Size() == largeSize/4 {
		return nil
	}
	if err := p.fresh(); err != nil {
		return err
	}
	for i := range 4 {
		if err := writeFile(p.file(fmt.Sprint(i)), largeSize/4); err != nil {
			return err
		}
	}
	return nil
}

// writeSmallProbe makes the file whose io mode is looked at; the run replaces it.
func (p place) writeSmallProbe() error {
	if err := p.fresh(); err != nil {
		return err
	}
	return os.WriteFile(p.file("0"), []byte("probe"), 0o644)
}

func writeFile(path string, size int) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	data := bytes.Repeat([]byte("0123456789abcdef"), block/16)
	for range size / block {
		if _, err := f.Write(data); err != nil {
			return err
		}
	}
	return f.Sync()
}

func (p place) writeDisk() (float64, error) {
	if err := os.Remove(p.file("0")); err != nil {
		return 0, err
	}
	unix.Sync() // what others wrote before must not be waited for here
	watch := startWatch()
	err := writeFile(p.file("0"), largeSize)
	return watch.rate(largeSize / mib), err
}

// readCached reads everything once untimed, and then eight times.
func (p place) readCached(threads int) (float64, error) {
	if _, err := p.readFiles(threads); err != nil {
		return 0, err
	}
	const times = 8
	watch := startWatch()
	for range times {
		if _, err := p.readFiles(threads); err != nil {
			return 0, err
		}
	}
	return watch.rate(times * largeSize / mib), nil
}

// readFiles reads the four files, each by one of so many threads.
func (p place) readFiles(threads int) (float64, error) {
	watch := startWatch()
	var wg sync.WaitGroup
	errs := make([]error, threads)
	for t := range threads {
		wg.Go(func() {
			buf := make([]byte, block)
			for i := t; i < 4 && errs[t] == nil; i += threads {
				errs[t] = readFile(p.file(fmt.Sprint(i)), buf)
			}
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return 0, err
		}
	}
	return watch.rate(largeSize / mib), nil
}

func readFile(path string, buf []byte) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	for {
		// Not io.Copy, which would read as it likes.
		if _, err := f.Read(buf); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
	}
}

func (p place) readRandomCached() (float64, error) {
	if err := readFile(p.file("0"), make([]byte, block)); err != nil {
		return 0, err
	}
	return p.readRandom(400_000)
}

// readRandom reads so many blocks at random places of the first file.
func (p place) readRandom(reads int) (float64, error) {
	f, err := os.Open(p.file("0"))
	if err != nil {
		return 0, err
	}
	defer f.Close()
	random := rand.New(rand.NewPCG(1, 2))
	buf := make([]byte, 4096)
	watch := startWatch()
	for range reads {
		if _, err := f.ReadAt(buf, random.Int64N(largeSize/4/4096)*4096); err != nil {
			return 0, err
		}
	}
	return watch.rate(reads), nil
}
