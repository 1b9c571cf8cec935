package cache

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/providers"
)

// commit returns when the backend has the content that an inode has now, and
// every change of names before. At most one upload of an inode is under way;
// who comes meanwhile waits, and finds his bytes sent or sends them.
func (v *Volume) commit(op *fs.Op, ino fs.Ino) error {
	w := v.wait(op, v.o.Patience)
	defer w.close()
	err := v.retry(w, func(ctx context.Context) error { return v.commitOnce(ctx, ino) })
	if err = w.cause(err); err != nil {
		err = fmt.Errorf("commit: %w", err)
		v.unsent(ino, err)
		v.problem(ino, "commit", err)
	}
	return translate(err)
}

func (v *Volume) commitOnce(ctx context.Context, ino fs.Ino) error {
	t, err := v.begin(ctx, ino, true)
	if err != nil {
		return err
	}
	defer t.end()
	return v.sendAll(ctx, ino, t.paths, t.named)
}

// unsent keeps why an inode's content is not at the backend. What may succeed
// later is tried on in the background.
func (v *Volume) unsent(ino fs.Ino, err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	n := v.table.node(ino)
	if n == nil || !n.dirty() {
		return
	}
	n.conflict = errors.Is(err, providers.ErrConflict)
	n.extra().reason = err.Error()
	v.table.save(ino, n)
	temporary := again(err) || errors.Is(err, fs.ErrUnavailable) || errors.Is(err, syscall.EINTR)
	if temporary && !n.resent && !v.closed {
		n.resent = true
		v.work.Add(1)
		go v.resend(ino)
	}
}

// resend tries on in the background what a program has given up. It is no job,
// so that one file that does not get through holds nothing else up.
func (v *Volume) resend(ino fs.Ino) {
	defer v.work.Done()
	err := v.retry(v.ctx, func(ctx context.Context) error { return v.commitOnce(ctx, ino) })
	v.mu.Lock()
	if n := v.table.node(ino); n != nil {
		n.resent = false
		v.table.save(ino, n)
	}
	v.mu.Unlock()
	if err != nil && v.ctx.Err() == nil {
		v.unsent(ino, err)
		v.problem(ino, "send", err)
	}
}

// sendAll puts the content of an inode under all of paths, which were its names
// when it had got named of them. The caller holds a transfer of them, or is
// the worker.
func (v *Volume) sendAll(ctx context.Context, ino fs.Ino, paths []providers.Locator, named uint32) error {
	for _, l := range paths {
		if err := v.send(ctx, ino, l); err != nil {
			return err
		}
	}
	v.sent(ino, paths, named)
	return nil
}

// sent finds out which state of an inode the backend has under every name. Its
// names may have changed here since they were paths there; that changes
// nothing, unless it got another one.
func (v *Volume) sent(ino fs.Ino, paths []providers.Locator, named uint32) {
	v.mu.Lock()
	defer v.mu.Unlock()
	n := v.table.node(ino)
	if n == nil || n.isDir() || n.named != named {
		return
	}
	sent := n.gen
	for _, l := range paths {
		if k := v.base.get(l); k != nil && k.ino == ino {
			sent = min(sent, k.gen)
		} else {
			sent = 0
		}
	}
	n.sent = sent
	if !n.dirty() {
		n.conflict = false
		if n.more != nil {
			n.more.reason = ""
		}
	}
	v.mark(ino, n)
	v.table.save(ino, n)
}

// attempt is a write whose outcome nobody knows yet. It is tried again under
// the same operation id, so that it does not lose against itself.
type attempt struct {
	id  string
	ino fs.Ino
	gen uint64
}

// parcel is what one write sends.
type parcel struct {
	attempt
	at     providers.Locator
	opts   providers.WriteOptions
	stale  bool     // the attempt was begun with another state
	target string   // of a symbolic link
	f      *os.File // else
	size   int64
}

// send puts the content of an inode at l, if it is not there yet.
func (v *Volume) send(ctx context.Context, ino fs.Ino, l providers.Locator) error {
	for {
		s, err := v.pack(ino, l)
		if s == nil || err != nil {
			return err
		}
		done, err := v.write(ctx, s)
		if s.f != nil {
			s.f.Close()
		}
		if done || err != nil {
			return err
		}
	}
}

// settle finishes an attempt whose outcome is open, so that the base says what
// is at l.
func (v *Volume) settle(ctx context.Context, l providers.Locator) error {
	v.mu.Lock()
	a, open := v.attempts[l]
	v.mu.Unlock()
	if !open {
		return nil
	}
	err := v.send(ctx, a.ino, l)
	if errors.Is(err, providers.ErrConflict) {
		return nil // it did not happen, or another has overwritten it
	}
	return err
}

// pack collects what is to be written; nil when nothing is.
func (v *Volume) pack(ino fs.Ino, l providers.Locator) (*parcel, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	n, k := v.table.node(ino), v.base.get(l)
	if n == nil || !v.sendable(n) || n.isDir() || k != nil && k.ino == ino && k.gen == n.gen {
		return nil, nil
	}
	s := &parcel{at: l, attempt: attempt{ino: ino, gen: n.gen}, opts: providers.WriteOptions{
		If: providers.IfAbsent(), Kind: providers.KindFile, Attr: v.attrOf(n), Metadata: n.rare().metadata}}
	if k != nil {
		s.opts.If = providers.IfVersion(k.version)
	}
	if before, ok := v.attempts[l]; ok && before.ino == ino {
		s.attempt, s.stale = before, before.gen != n.gen
	} else {
		v.writes++
		s.id = fmt.Sprintf("%s-%d", v.id, v.writes)
	}
	s.opts.Op = s.id
	if err := s.load(v.store, n); err != nil {
		return nil, err
	}
	v.attempts[l] = s.attempt
	return s, nil
}

// load adds the content.
func (s *parcel) load(from *store, n *node) (err error) {
	if n.isSymlink() {
		s.opts.Kind, s.target = providers.KindSymlink, n.rare().target
		return nil
	}
	if s.f, err = from.open(s.ino); err == nil {
		s.size = n.size
		from.name(s.f, s.at.String())
	}
	return err
}

// write makes one attempt. done says that the backend has the state that the
// parcel was packed with; without an error and done, it has another of ours,
// and the next parcel goes on from there.
func (v *Volume) write(ctx context.Context, s *parcel) (done bool, err error) {
	body := s.body()
	body.Reader = &progress{ctx, body.Reader}
	info, err := v.p.Write(ctx, s.at, body, s.opts)
	if err != nil && maybe(err) {
		return false, err
	}
	if errors.Is(err, providers.ErrConflict) || errors.Is(err, providers.ErrExist) {
		info, err = v.compare(ctx, s, err)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.attempts, s.at)
	if err != nil {
		return false, err
	}
	now := s.gen
	if s.stale {
		now = 0 // what is there may be from either attempt
	}
	v.base.put(s.at, known{kind: s.opts.Kind, version: info.Version, ino: s.ino, gen: now})
	if v.notify != nil && s.f != nil {
		v.notify.Wrote(s.at.String())
	}
	return now == s.gen, nil
}

// body is the content as it is now, under a program's writing hands perhaps:
// then it is dirty again and goes once more.
func (s *parcel) body() providers.Body {
	if s.f == nil {
		return providers.String(s.target)
	}
	return providers.Body{Reader: io.NewSectionReader(s.f, 0, s.size), Size: s.size}
}

// maybe reports whether a change that failed may have happened all the same.
func maybe(err error) bool {
	return errors.Is(err, providers.ErrUnavailable) || errors.Is(err, context.Canceled) ||
		errors.Is(err, context.DeadlineExceeded)
}

// compare decides whether a lost precondition is a conflict. It is not when
// the backend has exactly our bytes, be it that an answer of ours was lost or
// that another made the same change.
func (v *Volume) compare(ctx context.Context, s *parcel, lost error) (providers.Info, error) {
	conflict := fmt.Errorf("%w: %w", providers.ErrConflict, lost)
	info, err := v.p.Stat(ctx, s.at)
	switch {
	case errors.Is(err, providers.ErrNotExist):
		return info, conflict
	case err != nil:
		return info, err
	case info.Kind != s.opts.Kind || info.Size != s.body().Size:
		return info, conflict
	}
	c, err := v.p.Read(ctx, s.at, providers.ReadOptions{Version: info.Version})
	if err != nil {
		return info, err
	}
	defer c.Body.Close()
	same, err := sameBytes(c.Body, s.body().Reader)
	if err == nil && !same {
		err = conflict
	}
	return info, err
}
