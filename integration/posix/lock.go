package posix

import (
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

var lockCases = []Case{
	{"flock/excludes another open, not itself", anyone, func(t *T) {
		f := t.file("f", "x")
		a, b := t.open(f, unix.O_RDWR, 0), t.open(f, unix.O_RDONLY, 0)
		t.ok("lock", unix.Flock(a, unix.LOCK_EX|unix.LOCK_NB))
		t.is("other", unix.Flock(b, unix.LOCK_SH|unix.LOCK_NB), unix.EWOULDBLOCK)
		t.is("again", unix.Flock(a, unix.LOCK_EX|unix.LOCK_NB), 0)
		t.ok("to shared", unix.Flock(a, unix.LOCK_SH))
		t.is("shared by both", unix.Flock(b, unix.LOCK_SH|unix.LOCK_NB), 0)
		t.is("back to exclusive", unix.Flock(a, unix.LOCK_EX|unix.LOCK_NB), unix.EWOULDBLOCK)
		t.ok("unlock", unix.Flock(b, unix.LOCK_UN))
		t.is("now", unix.Flock(a, unix.LOCK_EX|unix.LOCK_NB), 0)
	}},
	{"flock/ends with the last close", anyone, func(t *T) {
		f := t.file("f", "x")
		a, err := unix.Open(f, unix.O_RDWR|unix.O_CLOEXEC, 0)
		t.ok("open", err)
		d, err := unix.Dup(a)
		t.ok("dup", err)
		t.ok("lock", unix.Flock(a, unix.LOCK_EX))
		b := t.open(f, unix.O_RDWR, 0)
		t.ok("close", unix.Close(a))
		t.is("a duplicate holds it", unix.Flock(b, unix.LOCK_EX|unix.LOCK_NB), unix.EWOULDBLOCK)
		t.ok("close", unix.Close(d))
		t.is("free", unix.Flock(b, unix.LOCK_EX|unix.LOCK_NB), 0)
	}},
	{"fcntl/open file description locks are by range", anyone, func(t *T) {
		f := t.file("f", "0123456789")
		a, b := t.open(f, unix.O_RDWR, 0), t.open(f, unix.O_RDWR, 0)
		t.ok("a: 0-5", ofd(a, unix.F_WRLCK, 0, 5))
		t.is("b: 0-1", ofd(b, unix.F_RDLCK, 0, 1), unix.EAGAIN)
		t.is("b: 5-10", ofd(b, unix.F_WRLCK, 5, 5), 0)
		t.is("a: 4-6", ofd(a, unix.F_WRLCK, 4, 2), unix.EAGAIN)
		t.ok("a: unlock 0-2", ofd(a, unix.F_UNLCK, 0, 2))
		t.is("b: 0-1", ofd(b, unix.F_RDLCK, 0, 1), 0)
		q := unix.Flock_t{Type: unix.F_WRLCK, Start: 3, Len: 1}
		t.ok("F_OFD_GETLK", unix.FcntlFlock(uintptr(b), unix.F_OFD_GETLK, &q))
		t.eq("holder", [2]int64{q.Start, q.Len}, [2]int64{2, 3})
	}},
	{"fcntl/rights follow the descriptor", anyone, func(t *T) {
		f := t.file("f", "0123456789")
		t.is("write lock", ofd(t.open(f, unix.O_RDONLY, 0), unix.F_WRLCK, 0, 1), unix.EBADF)
		t.is("read lock", ofd(t.open(f, unix.O_WRONLY, 0), unix.F_RDLCK, 0, 1), unix.EBADF)
	}},
	{"fcntl/a blocked lock is granted when it is free", anyone, func(t *T) {
		f := t.file("f", "0123456789")
		a, b := t.open(f, unix.O_RDWR, 0), t.open(f, unix.O_RDWR, 0)
		t.ok("lock", ofd(a, unix.F_WRLCK, 0, 0))
		var mu sync.Mutex
		released := false
		got := make(chan bool, 1)
		go func() {
			lk := unix.Flock_t{Type: unix.F_WRLCK}
			if unix.FcntlFlock(uintptr(b), unix.F_OFD_SETLKW, &lk) != nil {
				got <- false
				return
			}
			mu.Lock()
			defer mu.Unlock()
			got <- released
		}()
		mu.Lock()
		released = true
		mu.Unlock()
		t.ok("unlock", ofd(a, unix.F_UNLCK, 0, 0))
		t.eq("granted after the release", <-got, true)
	}},
	{"lock/lockfile by link works", anyone, func(t *T) {
		won := make(chan bool)
		for i := range 8 {
			own := t.file("own"+string(rune('a'+i)), "x")
			go func() { won <- os.Link(own, t.p("lock")) == nil }()
		}
		n := 0
		for range 8 {
			if <-won {
				n++
			}
		}
		t.eq("winners", n, 1)
		t.eq("links", t.stat(t.p("lock")).Nlink, uint64(2))
	}},
}

// ofd sets an open file description lock without waiting.
func ofd(fd int, kind int16, start, n int64) error {
	return unix.FcntlFlock(uintptr(fd), unix.F_OFD_SETLK, &unix.Flock_t{Type: kind, Start: start, Len: n})
}
