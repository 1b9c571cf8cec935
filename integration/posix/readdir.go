package posix

import (
	"encoding/binary"
	"fmt"
	"os"
	"slices"
	"sort"

	"golang.org/x/sys/unix"
)

// A dirent is one entry of getdents64(2).
type dirent struct {
	ino  uint64
	off  int64
	kind byte
	name string
}

// getdents reads one buffer of an open directory; no entry means the end.
func (t *T) getdents(fd, size int) []dirent {
	buf := make([]byte, size)
	n, err := unix.Getdents(fd, buf)
	t.ok("getdents", err)
	var list []dirent
	for buf = buf[:n]; len(buf) > 0; {
		reclen := binary.NativeEndian.Uint16(buf[16:])
		name := buf[19:reclen]
		list = append(list, dirent{
			ino:  binary.NativeEndian.Uint64(buf),
			off:  int64(binary.NativeEndian.Uint64(buf[8:])),
			kind: buf[18],
			name: unix.ByteSliceToString(name),
		})
		buf = buf[reclen:]
	}
	return list
}

// rest reads an open directory from where it stands to the end.
func (t *T) rest(fd, size int) []dirent {
	var all []dirent
	for {
		part := t.getdents(fd, size)
		if len(part) == 0 {
			return all
		}
		all = append(all, part...)
	}
}

// names lists a directory, sorted, without the dots; nil when empty.
func (t *T) names(dir string) []string {
	fd := t.open(dir, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	return named(t.rest(fd, 4096))
}

func named(list []dirent) []string {
	var names []string
	for _, e := range list {
		if e.name != "." && e.name != ".." {
			names = append(names, e.name)
		}
	}
	sort.Strings(names)
	return names
}

// entry is the number that a listing from the beginning gives a name.
func (t *T) entry(fd int, name string) uint64 {
	_, err := unix.Seek(fd, 0, unix.SEEK_SET)
	t.ok("rewind", err)
	for _, e := range t.rest(fd, 4096) {
		if e.name == name {
			return e.ino
		}
	}
	t.errorf("%s is not in the listing", name)
	return 0
}

// fill makes n empty files and returns their names in order. A request of the
// kernel with a buffer of 4 KiB has some two dozen, so 150 are several requests.
func (t *T) fill(dir string, n int) []string {
	var names []string
	for i := range n {
		name := fmt.Sprintf("file-%05d", i)
		t.ok("create", os.WriteFile(dir+"/"+name, nil, 0o644))
		names = append(names, name)
	}
	return names
}

var readdirCases = []Case{
	{"readdir/lists what is there, dots included", anyone, func(t *T) {
		t.file("f", "x")
		t.dir("d")
		t.ok("symlink", unix.Symlink("f", t.p("l")))
		t.ok("mkfifo", unix.Mkfifo(t.p("p"), 0o644))
		fd := t.open(t.Dir, unix.O_RDONLY|unix.O_DIRECTORY, 0)
		kinds := map[string]byte{}
		for _, e := range t.rest(fd, 4096) {
			kinds[e.name] = e.kind
			if e.name != ".." {
				t.eq("number of "+e.name, e.ino, t.stat(t.p(e.name)).Ino)
			}
		}
		t.eq("kinds", kinds, map[string]byte{".": unix.DT_DIR, "..": unix.DT_DIR, "f": unix.DT_REG,
			"d": unix.DT_DIR, "l": unix.DT_LNK, "p": unix.DT_FIFO})
	}},
	{"readdir/small buffers give the same", anyone, func(t *T) {
		want := t.fill(t.Dir, 150)
		for _, size := range []int{64, 100, 1000, 1 << 16} {
			fd := t.open(t.Dir, unix.O_RDONLY|unix.O_DIRECTORY, 0)
			t.eq(fmt.Sprint("buffer of ", size), named(t.rest(fd, size)), want)
		}
		fd := t.open(t.Dir, unix.O_RDONLY|unix.O_DIRECTORY, 0)
		_, err := unix.Getdents(fd, make([]byte, 10))
		t.is("buffer of 10", err, unix.EINVAL)
	}},
	{"readdir/seek to any position goes on there", anyone, func(t *T) {
		t.fill(t.Dir, 150)
		fd := t.open(t.Dir, unix.O_RDONLY|unix.O_DIRECTORY, 0)
		all := t.rest(fd, 4096)
		t.eq("entries", len(all), 152)
		for _, i := range []int{0, 1, 2, 57, 100, 150, 3} {
			_, err := unix.Seek(fd, all[i].off, unix.SEEK_SET)
			t.ok("seek", err)
			t.eq(fmt.Sprint("after entry ", i), t.rest(fd, 1000), all[i+1:])
		}
	}},
	{"readdir/rewind shows what is new", anyone, func(t *T) {
		fd := t.open(t.Dir, unix.O_RDONLY|unix.O_DIRECTORY, 0)
		t.eq("empty", named(t.rest(fd, 4096)), []string(nil))
		t.file("f", "")
		_, err := unix.Seek(fd, 0, unix.SEEK_SET)
		t.ok("rewind", err)
		t.eq("rewound", named(t.rest(fd, 4096)), []string{"f"})
		t.ok("unlink", unix.Unlink(t.p("f")))
		_, err = unix.Seek(fd, 0, unix.SEEK_SET)
		t.ok("rewind", err)
		t.eq("rewound again", named(t.rest(fd, 4096)), []string(nil))
	}},
	{"readdir/removing while reading skips nobody", anyone, func(t *T) {
		want := t.fill(t.Dir, 150)
		fd := t.open(t.Dir, unix.O_RDONLY|unix.O_DIRECTORY, 0)
		var got []string
		for {
			part := t.getdents(fd, 512)
			if len(part) == 0 {
				break
			}
			for _, name := range named(part) {
				got = append(got, name)
				t.ok("unlink", unix.Unlink(t.p(name)))
			}
		}
		slices.Sort(got)
		t.eq("removed", got, want)
		t.eq("left", t.names(t.Dir), []string(nil))
	}},
	{"readdir/who stays is seen exactly once while others come and go", anyone, func(t *T) {
		want := t.fill(t.Dir, 150)
		fd := t.open(t.Dir, unix.O_RDONLY|unix.O_DIRECTORY, 0)
		seen := map[string]int{}
		for round := 0; ; round++ {
			part := t.getdents(fd, 700)
			if len(part) == 0 {
				break
			}
			for _, e := range part {
				seen[e.name]++
			}
			for i := range 10 {
				t.file(fmt.Sprintf("new-%d-%d", round%3, i), "")
			}
			for i := range 10 {
				t.ok("unlink", unix.Unlink(t.p(fmt.Sprintf("new-%d-%d", round%3, i))))
			}
		}
		for _, name := range want {
			if seen[name] != 1 {
				t.errorf("%s: seen %d times, want once", name, seen[name])
			}
		}
	}},
	{"readdir/a renamed file is not lost to a later listing", anyone, func(t *T) {
		t.fill(t.Dir, 50)
		for i := range 50 {
			t.ok("rename", unix.Rename(t.p(fmt.Sprintf("file-%05d", i)), t.p(fmt.Sprintf("moved-%05d", i))))
			t.eq("entries", len(t.names(t.Dir)), 50)
		}
	}},
	{"readdir/two streams do not disturb each other", anyone, func(t *T) {
		t.fill(t.Dir, 100)
		a := t.open(t.Dir, unix.O_RDONLY|unix.O_DIRECTORY, 0)
		b := t.open(t.Dir, unix.O_RDONLY|unix.O_DIRECTORY, 0)
		var left, right []dirent
		for {
			l, r := t.getdents(a, 300), t.getdents(b, 500)
			left, right = append(left, l...), append(right, r...)
			if len(l) == 0 && len(r) == 0 {
				break
			}
		}
		t.eq("both", left, right)
		t.eq("entries", len(left), 102)
	}},
	{"readdir/at once by many while files come and go", anyone, func(t *T) {
		want := t.fill(t.Dir, 150)
		stop, done := make(chan struct{}), make(chan error, 1)
		go func() { done <- churn(t.Dir, stop) }()
		for range 20 {
			got := slices.DeleteFunc(t.names(t.Dir), func(s string) bool { return s[0] == 'c' })
			t.eq("names", got, want)
		}
		close(stop)
		t.ok("churn", <-done)
	}},
}

// churn makes, renames and removes files until it is stopped.
func churn(dir string, stop <-chan struct{}) error {
	for i := 0; ; i++ {
		select {
		case <-stop:
			return nil
		default:
		}
		a, b := fmt.Sprintf("%s/c%d", dir, i%7), fmt.Sprintf("%s/churned-%d", dir, i%5)
		if err := os.WriteFile(a, nil, 0o644); err != nil {
			return err
		}
		if err := unix.Rename(a, b); err != nil {
			return err
		}
		if err := unix.Unlink(b); err != nil {
			return err
		}
	}
}
