package model

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// A handle is a file that stays open for writing while both sides go on.
type handle struct {
	f       *os.File
	at      int // in which mount
	path    string
	also    []string // what another mount renamed path to
	last    []byte   // what it had when it was looked at last
	writes  bool     // it is open for writing
	written bool
	removed bool // its name was removed here: what is written to it may go
}

// named reports whether a handle may be of what has a path in a mount.
func (h *handle) named(at int, path string) bool {
	return h != nil && h.at == at && (h.path == path || slices.Contains(h.also, path))
}

// look opens what is at path, to know afterwards whether that very file lost
// its name. Half of the time it is not open for that.
func (r *sharing) look(path string) (content []byte, lostName func() bool, ok bool) {
	f, err := os.Open(r.path(path))
	if !r.must("open "+path, err) {
		return nil, nil, false
	}
	content, err = io.ReadAll(f)
	if !r.must("read "+path, err, unix.EISDIR) {
		f.Close()
		return nil, nil, false
	}
	r.check(path, content)
	if r.rand.IntN(2) == 0 {
		fd, err := unix.Open(fmt.Sprintf("/proc/self/fd/%d", f.Fd()), unix.O_PATH|unix.O_CLOEXEC, 0)
		if err == nil {
			f.Close()
			f = os.NewFile(uintptr(fd), path)
		}
	}
	return content, func() bool {
		defer f.Close()
		var st unix.Stat_t
		err := unix.Fstat(int(f.Fd()), &st)
		return errors.Is(err, unix.ESTALE) || err == nil && st.Nlink == 0
	}, true
}

// check fails on content that no writer wrote, such as half of one.
func (r *sharing) check(path string, content []byte) {
	r.t.Helper()
	if !r.ledger.has(Digest(content)) {
		r.fail([]string{path}, "%s has content that nobody wrote: %d bytes, of %s", path, len(content), makers(content))
	}
}

// makers says of which contents there are lines, from where on in each case.
func makers(content []byte) string {
	var all []string
	var last string
	at := 0
	for line := range strings.Lines(string(content)) {
		if line != last {
			all = append(all, fmt.Sprintf("%d: %q", at, line[:min(len(line), 80)]))
		}
		at, last = at+len(line), line
	}
	return strings.Join(all[:min(len(all), 12)], ", ")
}

// take gives what is at a path a name that nobody else uses, and reads it there.
func (r *sharing) take(path string) (content []byte, aside string, ok bool) {
	r.asides++
	aside = fmt.Sprintf("%s.aside%d", path, r.asides)
	if !r.must("rename "+path+" "+aside, unix.Renameat2(unix.AT_FDCWD, r.path(path), unix.AT_FDCWD, r.path(aside), unix.RENAME_NOREPLACE)) {
		return nil, "", false
	}
	r.note("aside %s %s", path, aside)
	r.moved(path, aside)
	content, err := os.ReadFile(r.path(aside))
	if !r.must("read "+aside, err, unix.EISDIR) {
		return nil, "", false
	}
	r.check(path, content)
	return content, aside, true
}

// discard renames a file, looks at it and removes it. What another changes at the
// old name follows the rename, and may come between the look and the deed.
func (r *sharing) discard(path string) {
	old, aside, ok := r.take(path)
	if ok && r.must("unlink "+aside, unix.Unlink(r.path(aside))) {
		r.note("discard %s: had %s", path, Digest(old))
		r.ledger.replaced(old)
		r.ledger.doubt(aside)
		r.nameless(aside)
	}
}

// gone: the name of a file was taken away here, by somebody who had seen content.
// What another put there since both sides were last the same may
// have come between the look and the deed, as on any disk.
func (r *sharing) gone(path string, content []byte, lostName func() bool) {
	r.ledger.replaced(content)
	if !lostName() || r.surprising(path) {
		r.note("%s may have been another file when it went", path)
		r.ledger.doubt(path)
	}
	r.nameless(path)
}

// nameless: the name of what is open here at a path was taken away here.
func (r *sharing) nameless(path string) {
	for _, h := range r.open {
		if h.named(r.at, path) {
			h.removed = true
		}
	}
}

func (r *sharing) size() int {
	return []int{10, 1000, 5000, 70_000, 300_000}[r.rand.IntN(5)]
}

// change replaces what an open file has, in one of the ways that programs do.
func (r *sharing) change(f *os.File, path string, old []byte) (content []byte, err error) {
	fresh := r.ledger.make("the mount", path, r.size())
	switch r.rand.IntN(3) {
	case 0: // anew
		content = fresh
		r.ledger.expect(path, nil)
		r.ledger.expect(path, content)
		if err := f.Truncate(0); err != nil {
			return nil, err
		}
		_, err = f.WriteAt(content, 0)
	case 1: // at the end
		content = append(old[:len(old):len(old)], fresh[:min(len(fresh), 2000)]...)
		r.ledger.expect(path, content)
		_, err = f.WriteAt(content[len(old):], int64(len(old)))
	case 2: // in the middle
		at := len(old) / 2
		part := fresh[:min(len(fresh), 6000)]
		content = append(append(old[:at:at], part...), old[min(len(old), at+len(part)):]...)
		r.ledger.expect(path, content)
		_, err = f.WriteAt(part, int64(at))
	}
	return content, err
}

func (r *sharing) write() {
	path := r.name()
	f, err := os.OpenFile(r.path(path), os.O_RDWR|os.O_CREATE, 0o644)
	if !r.must("open "+path, err, unix.EISDIR) {
		return
	}
	old, err := io.ReadAll(f)
	if !r.must("read "+path, err) {
		f.Close()
		return
	}
	r.check(path, old)
	content, err := r.change(f, path, old)
	if err = errors.Join(err, f.Close()); !r.must("write "+path, err) {
		return
	}
	r.ledger.replaced(old)
	r.others(r.at, path)
	r.note("write %s: %s after %s", path, r.ledger.wrote(path, content), Digest(old))
	r.aliased(old, content)
}

// aliased: an open handle may be of the file that was just written.
func (r *sharing) aliased(old, content []byte) {
	for _, h := range r.open {
		if h != nil && Digest(h.last) == Digest(old) {
			h.last = nil // look again before it is compared
		}
	}
}

// save writes a file as editors do: under another name, then over the old.
func (r *sharing) save() {
	path := r.name()
	tmp := fmt.Sprintf("%s.tmp%d", path, r.at) // on no shared disk do two writers have one such name
	content := r.ledger.make("the mount", path, r.size())
	r.ledger.expect(path, content)
	if !r.must("save "+tmp, os.WriteFile(r.path(tmp), content, 0o644), unix.EISDIR) {
		return
	}
	old, lostName, there := r.look(path)
	flags := uint(0)
	switch {
	case !there:
		flags = unix.RENAME_NOREPLACE // what came meanwhile nobody here has seen
	case r.surprising(path) && r.rand.IntN(2) == 0:
		flags = unix.RENAME_EXCHANGE
	}
	err := unix.Renameat2(unix.AT_FDCWD, r.path(tmp), unix.AT_FDCWD, r.path(path), flags)
	if !r.must("rename "+tmp+" "+path, err, unix.EISDIR, unix.EEXIST) {
		if there {
			lostName()
		}
		os.Remove(r.path(tmp))
		return
	}
	if flags == unix.RENAME_EXCHANGE {
		r.moved(path, tmp)
	}
	r.others(r.at, path)
	r.note("save %s: %s after %s", path, r.ledger.wrote(path, content), Digest(old))
	switch {
	case flags == unix.RENAME_EXCHANGE:
		lostName()
		r.discard(tmp)
	case there:
		r.gone(path, old, lostName)
	}
}

func (r *sharing) unlink() {
	path := r.name()
	if r.surprising(path) && r.rand.IntN(2) == 0 {
		r.discard(path)
		return
	}
	old, lostName, there := r.look(path)
	if !there {
		return
	}
	if !r.must("unlink "+path, unix.Unlink(r.path(path)), unix.EISDIR) {
		lostName()
		return
	}
	r.note("unlink %s: had %s", path, Digest(old))
	r.gone(path, old, lostName)
}

func (r *sharing) rename() {
	from, to := r.name(), r.name()
	if from == to {
		return
	}
	old, lostName, there := r.look(to)
	flags := uint(0)
	if !there {
		flags = unix.RENAME_NOREPLACE
	}
	err := unix.Renameat2(unix.AT_FDCWD, r.path(from), unix.AT_FDCWD, r.path(to), flags)
	if !r.must("rename "+from+" "+to, err, unix.EISDIR, unix.ENOTEMPTY, unix.EEXIST, unix.EINVAL) {
		if there {
			lostName()
		}
		return
	}
	r.note("rename %s %s: had %s", from, to, Digest(old))
	if there {
		r.gone(to, old, lostName)
	}
	r.moved(from, to)
}

// moved: what is open has another path now.
func (r *sharing) moved(from, to string) {
	r.ledger.moved(from, to)
	for path := range r.unseen[r.at] {
		if after, ok := below(path, from, to); ok {
			delete(r.unseen[r.at], path)
			r.unseen[r.at][after] = true
		}
	}
	r.others(r.at, to)
	for _, h := range r.open {
		if h == nil {
			continue
		}
		after, ok := below(h.path, from, to)
		switch {
		case ok && h.at == r.at:
			h.path = after
		case ok:
			h.also = append(h.also, after)
		}
	}
}

// below is what a path is when from was renamed to to, if that moved it.
func below(path, from, to string) (string, bool) {
	rest, ok := strings.CutPrefix(path, from)
	return to + rest, ok && (rest == "" || rest[0] == '/')
}

func (r *sharing) mkdir() {
	dir := strings.TrimSuffix(r.dirName(), "/")
	if r.must("mkdir "+dir, os.Mkdir(r.path(dir), 0o755), unix.EEXIST) {
		r.note("mkdir %s", dir)
	}
}

func (r *sharing) rmdir() {
	dir := strings.TrimSuffix(r.dirName(), "/")
	if dir != "" && r.must("rmdir "+dir, unix.Rmdir(r.path(dir)), unix.ENOTEMPTY) {
		r.note("rmdir %s", dir)
	}
}

// renameDir moves a directory with all in it, where there is nothing.
func (r *sharing) renameDir() {
	from, to := strings.TrimSuffix(r.dirName(), "/"), strings.TrimSuffix(r.dirName(), "/")
	if from == "" || to == "" || from == to {
		return
	}
	err := unix.Renameat2(unix.AT_FDCWD, r.path(from), unix.AT_FDCWD, r.path(to), unix.RENAME_NOREPLACE)
	if r.must("rename "+from+" "+to, err, unix.EEXIST, unix.EINVAL, unix.ENOTEMPTY) {
		r.note("rename %s/ %s/", from, to)
		r.moved(from, to)
	}
}

func (r *sharing) read() {
	path := r.name()
	content, err := os.ReadFile(r.path(path))
	if r.must("read "+path, err, unix.EISDIR) {
		r.check(path, content)
	}
}

func (r *sharing) list() {
	dir := strings.TrimSuffix(r.dirName(), "/")
	_, err := os.ReadDir(r.path(dir))
	r.must("list "+dir, err)
}

// hold opens a file and keeps it open.
func (r *sharing) hold() {
	i := r.rand.IntN(slots)
	r.close(i)
	path := r.name()
	flags := []int{os.O_RDWR, os.O_RDONLY}[r.rand.IntN(2)]
	f, err := os.OpenFile(r.path(path), flags, 0)
	if !r.must("hold "+path, err, unix.EISDIR) {
		return
	}
	r.note("hold %s, flags %d", path, flags)
	r.open[i] = &handle{f: f, at: r.at, path: path, writes: flags == os.O_RDWR}
}

// writeHeld changes a file that has been open for a while, or looks whether it
// still has what it had: an open file keeps the version that it was opened for.
func (r *sharing) writeHeld() {
	h := r.open[r.rand.IntN(slots)]
	if h == nil {
		return
	}
	now, err := io.ReadAll(io.NewSectionReader(h.f, 0, 1<<40))
	if !r.must("read "+h.path, err, unix.EISDIR) {
		return
	}
	r.check(h.path, now)
	if h.last != nil && Digest(now) != Digest(h.last) {
		r.fail([]string{h.path}, "an open file changed from %s to %s, and nobody here wrote it", Digest(h.last), Digest(now))
	}
	h.last = now
	if !h.writes || r.rand.IntN(2) == 0 {
		return
	}
	content, err := r.change(h.f, h.path, now)
	if !r.must("write held "+h.path, err) {
		return
	}
	r.aliased(now, content)
	r.ledger.replaced(now)
	r.note("write held %s: %s after %s, removed %v", h.path, Digest(content), Digest(now), h.removed)
	h.last, h.written = content, true
}

func (r *sharing) letGo() { r.close(r.rand.IntN(slots)) }

func (r *sharing) close(i int) {
	h := r.open[i]
	if h == nil {
		return
	}
	r.open[i] = nil
	var st unix.Stat_t
	named := unix.Fstat(int(h.f.Fd()), &st)
	err := h.f.Close()
	if !h.written {
		return
	}
	if !r.must("close "+h.path, err) {
		return
	}
	// Of a file that has no name it can be said only that it was removed here,
	// or lost its name to the other side, which keeps it.
	if !h.removed && h.last != nil {
		r.ledger.wrote(h.path, h.last)
	}
	r.others(h.at, h.path)
	r.note("close %s: %s, links %d %v, removed %v", h.path, Digest(h.last), st.Nlink, named, h.removed)
}

// closeHere closes what is open in the mount that is worked in.
func (r *sharing) closeHere() {
	for i, h := range r.open {
		if h != nil && h.at == r.at {
			r.close(i)
		}
	}
}

func (r *sharing) closeAll() {
	for i := range r.open {
		r.close(i)
	}
}

// closeWriters lets only what is open for reading live through a comparison:
// what is open for writing counts as unsaved.
func (r *sharing) closeWriters() {
	for i, h := range r.open {
		if h != nil && h.writes {
			r.close(i)
		}
	}
}

func (r *sharing) otherPut() {
	path := r.name()
	content := r.ledger.make("another", path, r.size())
	r.ledger.expect(path, content)
	old, done, err := r.s.Other.Put(path, content)
	if err != nil {
		r.fail([]string{path}, "the other writer, putting %s: %v", path, err)
	}
	if !done {
		return
	}
	r.ledger.replaced(old)
	r.others(-1, path)
	r.note("other put %s: %s after %s", path, r.ledger.wrote(path, content), Digest(old))
}

func (r *sharing) otherRemove() {
	path := r.name()
	old, done, err := r.s.Other.Remove(path)
	if err != nil {
		r.fail([]string{path}, "the other writer, removing %s: %v", path, err)
	}
	if done {
		r.ledger.replaced(old)
		r.note("other remove %s: had %s", path, Digest(old))
	}
}
