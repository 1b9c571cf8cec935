package posix

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/integration/tier"
)

// exerciseCases change one file in every way at random and compare it with
// memory after each step, as fsx does: calls and mappings must always agree.
// POSIX_SUITE_OPS chooses how many steps.
var exerciseCases = []Case{
	{"exercise/calls and mappings of one file agree", anyone, func(t *T) { t.exercise(false) }},
	{"exercise/also when every step opens the file anew", anyone, func(t *T) { t.exercise(true) }},
}

// maxSize bounds the file that is exercised.
const maxSize = 256 << 10

// An exerciser is the file and what it must hold.
type exerciser struct {
	t    *T
	r    *rand.Rand
	path string
	fd   int
	want []byte
	log  []string // the last steps
}

func (t *T) exercise(reopen bool) {
	seed := tier.NewSeed()
	e := &exerciser{t: t, r: rand.New(rand.NewPCG(seed, 0)), path: t.file("f", "")}
	steps := tier.Pick(200, 10_000)
	if n, err := strconv.Atoi(os.Getenv("POSIX_SUITE_OPS")); err == nil {
		steps = n
	}
	for i := range steps {
		if reopen || i == 0 {
			e.open()
		}
		e.step()
		if len(t.failures) > 0 {
			t.fatalf("WSMOUNT_SEED=%d, step %d, after %q", seed, i, e.log)
		}
	}
	unix.Close(e.fd)
	t.content(e.path, string(e.want))
}

func (e *exerciser) open() {
	if e.fd != 0 {
		e.t.ok("close", unix.Close(e.fd))
	}
	fd, err := unix.Open(e.path, unix.O_RDWR|unix.O_CLOEXEC, 0)
	e.t.ok("open", err)
	e.fd = fd
}

// step does one change or look.
func (e *exerciser) step() {
	off, n := e.r.IntN(maxSize), 1+e.r.IntN(20_000)
	if e.r.IntN(3) == 0 {
		off, n = off&^4095, n&^4095+4096
	}
	n = min(n, maxSize-off)
	steps := []struct {
		name string
		do   func(off, n int)
	}{
		{"read", e.read}, {"write", e.write}, {"map read", e.mapRead}, {"map write", e.mapWrite}, {"truncate", e.truncate},
		{"punch", e.punch}, {"zero", e.zero}, {"allocate", e.allocate}, {"copy", e.copy}, {"stat", e.stat}, {"sync", e.sync}, {"write", e.write},
	}
	s := steps[e.r.IntN(len(steps))]
	e.log = append(e.log, fmt.Sprint(s.name, " ", off, " ", n))
	e.log = e.log[max(0, len(e.log)-10):]
	s.do(off, n)
}

// same compares a part of the file, however it was read.
func (e *exerciser) same(how string, got []byte, off int) {
	want := e.want[min(off, len(e.want)):min(off+len(got), len(e.want))]
	if bytes.Equal(got, want) {
		return
	}
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			e.t.errorf("%s: byte %d is %#x, want %#x", how, off+i, got[i], want[i])
			return
		}
	}
	e.t.errorf("%s at %d: got %d bytes, want %d", how, off, len(got), len(want))
}

// grow makes what the file must hold at least n bytes long.
func (e *exerciser) grow(n int) {
	if n > len(e.want) {
		e.want = append(e.want, make([]byte, n-len(e.want))...)
	}
}

func (e *exerciser) read(off, n int) {
	buf := make([]byte, n)
	got, err := unix.Pread(e.fd, buf, int64(off))
	e.t.ok("pread", err)
	if got < min(n, max(0, len(e.want)-off)) {
		e.t.errorf("read at %d: got %d bytes of %d", off, got, n)
	}
	e.same("read", buf[:got], off)
}

func (e *exerciser) random(n int) []byte {
	buf := make([]byte, n)
	for i := range buf {
		buf[i] = byte(1 + e.r.IntN(255))
	}
	return buf
}

func (e *exerciser) write(off, n int) {
	data := e.random(n)
	got, err := unix.Pwrite(e.fd, data, int64(off))
	e.t.ok("pwrite", err)
	e.t.eq("bytes written", got, n)
	e.grow(off + n)
	copy(e.want[off:], data)
}

// mapping maps the whole file while f runs.
func (e *exerciser) mapping(prot int, f func(m []byte)) {
	if len(e.want) == 0 {
		return
	}
	m, err := unix.Mmap(e.fd, 0, len(e.want), prot, unix.MAP_SHARED)
	e.t.ok("mmap", err)
	f(m)
	e.t.ok("munmap", unix.Munmap(m))
}

func (e *exerciser) mapRead(off, n int) {
	e.mapping(unix.PROT_READ, func(m []byte) {
		off = min(off, len(m)-1)
		e.same("mapping", m[off:min(off+n, len(m))], off)
	})
}

func (e *exerciser) mapWrite(off, n int) {
	e.mapping(rdwr, func(m []byte) {
		off = min(off, len(m)-1)
		data := e.random(min(n, len(m)-off))
		copy(m[off:], data)
		copy(e.want[off:], data)
	})
}

func (e *exerciser) truncate(off, _ int) {
	e.t.ok("ftruncate", unix.Ftruncate(e.fd, int64(off)))
	e.grow(off)
	e.want = e.want[:off:off]
}

func (e *exerciser) punch(off, n int) {
	e.t.ok("punch", unix.Fallocate(e.fd, punchHole, int64(off), int64(n)))
	if off < len(e.want) {
		clear(e.want[off:min(off+n, len(e.want))])
	}
}

func (e *exerciser) zero(off, n int) {
	e.t.ok("zero", unix.Fallocate(e.fd, unix.FALLOC_FL_ZERO_RANGE, int64(off), int64(n)))
	e.grow(off + n)
	clear(e.want[off : off+n])
}

func (e *exerciser) allocate(off, n int) {
	e.t.ok("fallocate", unix.Fallocate(e.fd, 0, int64(off), int64(n)))
	e.grow(off + n)
}

// copy copies a part to where it does not overlap.
func (e *exerciser) copy(off, n int) {
	from := e.r.IntN(maxSize)
	if from+n > off && off+n > from || from >= len(e.want) {
		return
	}
	n = min(n, len(e.want)-from)
	in, out := int64(from), int64(off)
	for left := n; left > 0; {
		got, err := unix.CopyFileRange(e.fd, &in, e.fd, &out, left, 0)
		e.t.ok("copy_file_range", err)
		if left -= got; got == 0 {
			e.t.errorf("copy_file_range stopped with %d of %d left", left, n)
			return
		}
	}
	e.grow(off + n)
	copy(e.want[off:off+n], e.want[from:from+n])
}

func (e *exerciser) stat(_, _ int) {
	e.t.eq("size", e.t.fstat(e.fd).Size, int64(len(e.want)))
	e.t.eq("size by path", e.t.stat(e.path).Size, int64(len(e.want)))
}

func (e *exerciser) sync(_, _ int) { e.t.ok("fsync", unix.Fsync(e.fd)) }
