package odb

import (
	"bufio"
	"bytes"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"golang.org/x/sys/unix"
)

// Receive takes a pack as a server sends it. When it returns, the objects are local, also after a
// loss of power. A pack without objects is none.
func (s *Store) Receive(r io.Reader) error { return s.receive(r, false) }

// ReceivePromised is Receive of a pack that may lack objects that it names.
func (s *Store) ReceivePromised(r io.Reader) error { return s.receive(r, true) }

func (s *Store) receive(r io.Reader, promised bool) error {
	f, err := s.temp("in-")
	if err != nil {
		return err
	}
	m := &making{s: s, f: f, promised: promised}
	defer m.abandon()
	t := &tail{w: bufio.NewWriterSize(s.space.Writer(f), 256<<10), sum: sha1.New()}
	in := bufio.NewReaderSize(io.TeeReader(r, t), 64<<10)
	x, err := walkPack(in, func() int64 { return t.n }, s.told)
	if err != nil {
		return err
	}
	end := t.n - int64(in.Buffered())
	if _, err := io.Copy(io.Discard, in); err != nil {
		return err
	}
	if t.n != end+int64(idSize) || !bytes.Equal(t.last, t.sum.Sum(nil)) {
		return fmt.Errorf("the pack that came is not whole: %w", ErrCorrupt)
	}
	if err := t.w.Flush(); err != nil || len(x.objects) == 0 {
		return err
	}
	data, err := unix.Mmap(int(f.Fd()), 0, int(t.n), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return fmt.Errorf("mmap of a pack: %w", err)
	}
	objects, err := x.finish(data)
	if err = errors.Join(err, unix.Munmap(data)); err != nil {
		return err
	}
	return m.finish(objects, t.last)
}

// tail hashes all but the last 20 bytes, which are to be the hash.
type tail struct {
	w    *bufio.Writer
	sum  hash.Hash
	last []byte
	n    int64 // of all
}

func (t *tail) Write(b []byte) (int, error) {
	n, err := t.w.Write(b)
	t.n += int64(n)
	t.last = append(t.last, b[:n]...)
	if more := len(t.last) - idSize; more > 0 {
		t.sum.Write(t.last[:more])
		t.last = append(t.last[:0], t.last[more:]...)
	}
	return n, err
}

// making is a pack that readers do not see yet.
type making struct {
	s    *Store
	f    *os.File
	also []func() error
	done bool

	promised bool
}

// abandon removes an unfinished pack.
func (m *making) abandon() {
	if !m.done {
		m.f.Close()
		os.Remove(m.f.Name())
	}
}

// finish shows the objects to readers: pack and index are on the disk before they get
// their names, and the names before it returns.
func (m *making) finish(objects []indexed, sum []byte) error {
	s := m.s
	idx, sizes := encodeIndex(objects, sum)
	base := filepath.Join(s.dir, "pack-"+hex.EncodeToString(sum))
	s.mu.Lock()
	defer s.mu.Unlock()
	if slices.ContainsFunc(*s.packs.Load(), func(p *pack) bool { return p.name == filepath.Base(base) }) {
		return Together(m.also...) // the same pack has come before
	}
	idxTmp := m.f.Name() + ".idx"
	work := append([]func() error{m.f.Sync, func() error { return s.space.While(func() error { return writeSynced(idxTmp, idx) }) }}, m.also...)
	if err := Together(work...); err != nil {
		os.Remove(idxTmp)
		return err
	}
	if m.promised { // first: else objects that the pack names count as lost
		err := s.space.While(func() error { return os.WriteFile(base+promisedEnding, nil, 0o400) })
		if err != nil {
			os.Remove(idxTmp)
			return err
		}
	}
	m.done = true
	rename := func(from, to string) error { return s.space.While(func() error { return os.Rename(from, to) }) }
	err := errors.Join(os.Chmod(m.f.Name(), 0o400), rename(m.f.Name(), base+".pack"), rename(idxTmp, base+".idx"), m.f.Close())
	if err == nil {
		err = Sync(s.dir)
	}
	if err != nil {
		return err
	}
	s.saveSizes(&pack{name: filepath.Base(base), sizes: sizes})
	p, err := s.openPack(base)
	if err == nil {
		s.add(p)
	}
	return err
}

// Together runs functions at the same time: the disk then needs one turn for all.
func Together(work ...func() error) error {
	errs := make([]error, len(work))
	var wg sync.WaitGroup
	for i, f := range work {
		wg.Go(func() { errs[i] = f() })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// writeSynced makes a file; after an error it removes the rest.
func writeSynced(name string, b []byte) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o400)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		os.Remove(name)
	}
	return err
}

// Sync brings a file to the disk, or makes the names in a directory last.
func Sync(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
