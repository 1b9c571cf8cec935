package cache

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/wsmount/wsmount/cache/internal/content"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/providers"
)

// do makes the step: one request, framed by changes of the table. What is about
// to be tried is in the table before the request, what came of it after the
// answer; when there is no answer, the attempt stays, and is settled first.
func (e *engine) do(ctx context.Context, s *step) error {
	if err := e.v.bringOpened(ctx, s.link); err != nil {
		return err
	}
	switch s.verb {
	case verbWrite:
		return e.write(ctx, s)
	case verbMkdir:
		return e.mkdir(ctx, s)
	case verbDelete:
		return e.delete(ctx, s)
	case verbMove:
		return e.move(ctx, s)
	case verbCopy:
		return e.copy(ctx, s)
	case verbAttr:
		return e.setAttr(ctx, s)
	case verbSettle:
		return e.settleAttempt(ctx, s)
	case verbEmpty:
		return e.empty(ctx, s.ino)
	case verbPart:
		if err := e.reveal(ctx, s.ino); err != nil { // once it has left its place nobody can
			return err
		}
		return e.part(s.ino)
	case verbAdopt:
		return e.adopt(s)
	}
	return fmt.Errorf("no such step: %s", s)
}

// confirm says what the backend has under a name from now on; nil: nothing. Who
// had it may be forgotten then. mu is held, in an update.
func (e *engine) confirm(l table.Link, base *table.Base) {
	was, _ := e.v.table.Name(l.Dir, l.Name)
	if e.v.isNowhere(l.Dir) {
		base = nil // the directory came back as another one, where this is found
	}
	if above := e.v.table.Inode(l.Dir); was.Base == nil && base != nil && base.Kind == providers.KindDir && above != nil && !above.Loaded {
		if n := e.v.table.Edit(base.Ino); n != nil {
			n.Loaded, n.Listed = false, 0 // others may have made it before, with something in it
		}
	}
	e.v.setBase(l, base)
	if base == nil {
		e.v.implied(l.Dir)
	}
	if was.Base != nil && (base == nil || base.Ino != was.Base.Ino) {
		e.v.shed(was.Base.Ino)
	}
}

// implied doubts a directory at the backend that may have gone there with its last
// entry, because nobody had made it by itself: it is looked for, and made anew,
// or deleted if it is no more here by then. mu is held, in an update.
func (v *Volume) implied(dir table.Ino) {
	n := v.table.Inode(dir)
	if !v.caps.ImpliedDirs || dir == table.Root || n == nil || !n.Loaded || len(n.Homes) == 0 {
		return
	}
	home := n.Homes[0]
	rec, _ := v.table.Name(home.Dir, home.Name)
	if rec.Ino != dir || rec.Attempt != nil || rec.Base == nil || v.hasBase(dir) {
		return
	}
	doubt := table.Attempt{Gen: rec.Base.Gen, AttrGen: rec.Base.AttrGen, Kind: attemptMkdir, Other: formatSent(dir, "")}
	v.setBase(home, nil)
	v.engine.setAttempt(home, &doubt)
}

// hasBase reports whether the backend is known to have something in a directory.
// mu is held.
func (v *Volume) hasBase(dir table.Ino) (found bool) {
	v.table.Names(dir, "", func(_ string, rec table.Name) bool {
		found = rec.Base != nil
		return !found
	})
	return found
}

// setAttempt records an attempt, or with nil that there is none. mu is held, in
// an update.
func (e *engine) setAttempt(l table.Link, a *table.Attempt) {
	rec, ok := e.v.table.Name(l.Dir, l.Name)
	if !ok && a == nil {
		return
	}
	rec.Attempt = a
	if a != nil {
		rec.Held = nil
		e.v.recordSent(rec.Ino, a)
	}
	e.v.table.SetName(l.Dir, l.Name, rec)
	e.v.mark(l)
	e.v.vacated(l)
}

// answered clears an attempt that is known to have come to nothing, and hands
// the error on. While it may have happened, the attempt stays.
func (e *engine) answered(err error, names ...table.Link) error {
	if maybe(err) {
		return err
	}
	return errors.Join(err, e.update(func() error {
		for _, l := range names {
			e.setAttempt(l, nil)
		}
		return nil
	}))
}

// maybe reports whether a change that failed may have happened all the same.
func maybe(err error) bool {
	return errors.Is(err, providers.ErrUnavailable) || errors.Is(err, context.Canceled) ||
		errors.Is(err, context.DeadlineExceeded)
}

// opFor finds the operation id for an attempt: that of one just like it which was
// found not to have happened, else a new one. mu is held.
func (e *engine) opFor(s *step, kind uint8, gen, attrGen uint64) string {
	if old := s.task.op; old.Op != "" && old.Kind == kind && old.Gen == gen && old.AttrGen == attrGen {
		return old.Op
	}
	return e.operation()
}

// parcel is content on its way.
type parcel struct {
	kind   providers.Kind
	gen    uint64
	target string            // of a symbolic link
	oi     *openInode        // else
	snap   *content.Snapshot // of it
	digest string            // when it may have to be recognised
	base   *table.Base       // the state of the same content that the name has at the backend; nil: none
	failed error             // of reading it
	kept   bool              // it is Volume.kept's
}

var errSuspect = errors.New("a loss of power may have cost it bytes: see wsmount recover")

// pack takes a consistent state of an inode's content.
func (e *engine) pack(ctx context.Context, s *step) (*parcel, error) {
	v := e.v
	p := &parcel{kind: providers.KindFile}
	err := v.view(func() error {
		n := v.table.Inode(s.ino)
		switch {
		case n == nil:
			return errMoot
		case n.Suspect:
			return errSuspect
		case isSymlink(n):
			p.kind, p.target = providers.KindSymlink, n.Target
		}
		p.gen = n.Gen // the content that is read is this, or newer
		return nil
	})
	if err != nil {
		return nil, err
	}
	if p.kind == providers.KindSymlink && p.target == "" {
		if err := v.fetchTarget(nil, s.ino); err != nil {
			return nil, err
		}
		return nil, errAgain
	}
	if p.kind == providers.KindFile {
		if p.oi, err = v.acquire(s.ino); err != nil {
			if errors.Is(err, fs.ErrStale) && v.gone(s.ino) {
				err = errMoot // it was removed just now
			}
			return nil, err
		}
		if p.snap, err = p.oi.f.Snapshot(ctx); err != nil {
			p.close(v)
			return nil, err
		}
	}
	if !v.caps.OperationIDs {
		if p.digest, err = p.hash(ctx); err != nil {
			p.close(v)
			return nil, err
		}
	}
	return p, nil
}

// gone reports whether nothing leads to an inode here any more: then its content
// may be gone too.
func (v *Volume) gone(ino table.Ino) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	n := v.table.Inode(ino)
	return (n == nil || len(n.Links) == 0) && v.table.Err() == nil
}

// close lets go of the content, if it is not kept for more.
func (p *parcel) close(v *Volume) {
	if p.kept {
		return
	}
	if p.snap != nil {
		p.snap.Close()
	}
	if p.oi != nil {
		v.release(p.oi)
	}
}

func (p *parcel) hash(ctx context.Context) (string, error) {
	if p.snap != nil {
		return p.snap.Digest(ctx)
	}
	return digestOf(p.target), nil
}

// body is the content as a provider takes it. sent is told how much of it has
// been read.
func (p *parcel) body(sent func(n int)) providers.Body {
	if p.snap == nil {
		return providers.String(p.target)
	}
	return providers.Body{Reader: &counted{r: p.snap.Reader(), p: p, sent: sent}, Size: p.snap.Size()}
}

// counted is a reader that tells of progress and keeps the error. It can be read
// again, by who hashes content before it goes out.
type counted struct {
	r    io.ReadSeeker
	p    *parcel
	sent func(n int)
	read int
}

// Seek implements io.Seeker.
func (c *counted) Seek(off int64, whence int) (int64, error) {
	if off != 0 || whence != io.SeekCurrent {
		c.sent(-c.read)
		c.read = 0
	}
	return c.r.Seek(off, whence)
}

func (c *counted) Read(b []byte) (int, error) {
	n, err := c.r.Read(b)
	c.sent(n)
	c.read += n
	if err != nil && err != io.EOF {
		c.p.failed = err
	}
	return n, err
}

// write sends content to a name.
func (e *engine) write(ctx context.Context, s *step) error {
	err := e.reveal(ctx, s.ino)
	if err == nil {
		err = e.revealInherited(ctx, s)
	}
	if err != nil {
		return err
	}
	p, err := e.pack(ctx, s)
	if err == errMoot || err == nil && p == nil { // never wrapped
		return errAgain
	}
	if err != nil {
		return e.tear(ctx, s.link, err)
	}
	defer p.close(e.v)
	opts := providers.WriteOptions{If: s.cond, Kind: p.kind}
	var attrGen uint64
	err = e.update(func() error {
		n, rec := e.v.table.Inode(s.ino), e.record(s.link)
		if n == nil || rec.Ino != s.ino && s.from == (table.Link{}) || rec.Attempt != nil {
			return errAgain
		}
		opts.Attr, opts.Metadata, attrGen = e.v.attrOf(n), e.metadataFor(s, n), n.AttrGen
		opts.Op, opts.Looked = e.opFor(s, attemptWrite, p.gen, n.AttrGen), e.v.looked(s.link, rec)
		if rec.Base != nil && rec.Base.Ino == s.ino {
			p.base = rec.Base
		}
		e.setAttempt(s.link, &table.Attempt{Op: opts.Op, Gen: p.gen, AttrGen: attrGen, Kind: attemptWrite,
			Other: formatSent(s.ino, p.digest)})
		return nil
	})
	if err != nil {
		return err
	}
	info, err := e.send(ctx, s, p, opts)
	if err != nil {
		if err = e.answered(err, s.link); p.failed != nil && errors.Is(err, providers.ErrBody) {
			err = p.failed // which says whether it passes
		}
		return err
	}
	e.sent(p, info.Version)
	return e.update(func() error {
		e.wrote(s, info, p.kind, p.gen, attrGen)
		return nil
	})
}

// looked reports whether a listing has shown what the backend has under a name:
// nothing, or a file. mu is held.
func (v *Volume) looked(l table.Link, rec table.Name) bool {
	dir := v.table.Inode(l.Dir)
	return dir != nil && dir.Loaded && (rec.Base == nil || rec.Base.Kind != providers.KindDir)
}

// progress follows content on its way; n is less than nothing for what has to go
// again.
func (e *engine) progress(s *step, n int) {
	if s.task.sent.by(n) {
		s.moved()
		e.moving()
	}
}

// moving tells who waits that bytes are moving, once in a while: nobody gives
// up for want of patience then.
func (e *engine) moving() {
	now, last := time.Now().UnixNano(), e.beat.Load()
	if now-last < int64(min(time.Second, e.v.o.Patience/8)) || !e.beat.CompareAndSwap(last, now) {
		return
	}
	e.alive()
	e.v.mu.Lock()
	defer e.v.mu.Unlock()
	e.advanced()
}

func (e *engine) record(l table.Link) table.Name {
	rec, _ := e.v.table.Name(l.Dir, l.Name)
	return rec
}

// wrote notes which state of an inode the backend has under a name. mu is held,
// in an update.
func (e *engine) wrote(s *step, info providers.Info, kind providers.Kind, gen, attrGen uint64) {
	base := &table.Base{Ino: s.ino, Kind: kind, Version: info.Version, Digest: info.Digest, Gen: gen, AttrGen: attrGen}
	n := e.v.table.Edit(s.ino)
	if n == nil {
		base.Ino = 0
	} else if n.Gen == gen || n.State == table.Whole {
		n.Origin = table.Origin{Version: info.Version, Digest: info.Digest, Gen: gen}
	}
	e.v.takeMetadata(s.ino, gen, info.Metadata)
	e.confirm(s.link, base)
}

// mkdir makes a directory. One that others have made is as good.
func (e *engine) mkdir(ctx context.Context, s *step) error {
	if err := e.reveal(ctx, s.ino); err != nil {
		return err
	}
	opts := providers.MkdirOptions{}
	var gen, attrGen uint64
	err := e.update(func() error {
		n, rec := e.v.table.Inode(s.ino), e.record(s.link)
		if n == nil || rec.Ino != s.ino || rec.Attempt != nil {
			return errAgain
		}
		opts.Attr, opts.Metadata, gen, attrGen = e.v.attrOf(n), n.Metadata, n.Gen, n.AttrGen
		if e.v.caps.EmptyDirs {
			e.setAttempt(s.link, &table.Attempt{Gen: gen, AttrGen: attrGen, Kind: attemptMkdir, Other: formatSent(s.ino, "")})
			return nil
		}
		// It is there as soon as something is in it.
		e.confirm(s.link, &table.Base{Ino: s.ino, Kind: providers.KindDir, Gen: gen, AttrGen: attrGen})
		return nil
	})
	if err != nil || !e.v.caps.EmptyDirs {
		return err
	}
	if _, err := e.v.p.Mkdir(ctx, s.at, opts); err != nil {
		return e.answered(err, s.link)
	}
	return e.update(func() error {
		e.copied(s, providers.Info{}, providers.KindDir, gen, attrGen)
		return nil
	})
}

// delete removes what is known to be there. What is gone is what we want.
func (e *engine) delete(ctx context.Context, s *step) error {
	err := e.update(func() error {
		rec := e.record(s.link)
		if rec.Base == nil || rec.Base.Ino != s.ino || rec.Attempt != nil {
			return errAgain
		}
		e.setAttempt(s.link, &table.Attempt{Kind: attemptDelete, Other: formatSent(s.ino, "")})
		return nil
	})
	if err != nil {
		return err
	}
	err = e.v.p.Delete(ctx, s.at, providers.DeleteOptions{If: s.cond})
	if err != nil && !errors.Is(err, providers.ErrNotExist) {
		return e.answered(err, s.link)
	}
	return e.update(func() error {
		e.confirm(s.link, nil)
		return nil
	})
}

// setAttr sends attributes. Where the backend takes them with content only, it
// has them with the next content.
func (e *engine) setAttr(ctx context.Context, s *step) error {
	setter, can := providers.As[providers.AttrSetter](e.v.p)
	opts := providers.SetAttrOptions{If: s.cond}
	var attrGen uint64
	err := e.update(func() error {
		n, rec := e.v.table.Inode(s.ino), e.record(s.link)
		if n == nil || rec.Base == nil || rec.Base.Ino != s.ino {
			return errAgain
		}
		opts.Attr, attrGen = e.v.attrOf(n), n.AttrGen
		can = can && (!s.dir || e.tellsDirAttrs())
		if !can || opts.Attr.Valid == 0 {
			base := *rec.Base
			base.AttrGen = attrGen
			e.confirm(s.link, &base)
			return nil
		}
		opts.Op = e.opFor(s, attemptAttr, attrGen, attrGen)
		e.setAttempt(s.link, &table.Attempt{Op: opts.Op, Gen: attrGen, AttrGen: attrGen, Kind: attemptAttr})
		return nil
	})
	if err != nil || !can || opts.Attr.Valid == 0 {
		return err
	}
	info, err := setter.SetAttr(ctx, s.at, opts)
	if err != nil {
		return e.answered(err, s.link)
	}
	return e.update(func() error { return e.attrsSet(s, info, attrGen) })
}

// tellsDirAttrs reports whether the backend can be told attributes of a directory
// that it has. Where there are none without entries they are a part of names,
// and a set can only make one with its attributes.
func (e *engine) tellsDirAttrs() bool {
	_, can := providers.As[providers.AttrSetter](e.v.p)
	return can && e.v.caps.EmptyDirs && e.sets == nil
}

// attrsSet notes that the backend has attributes of ours. Content that is only
// partly here comes from the version that they made. mu is held, in an update.
func (e *engine) attrsSet(s *step, info providers.Info, attrGen uint64) error {
	rec := e.record(s.link)
	if rec.Base == nil {
		e.setAttempt(s.link, nil)
		return nil
	}
	base := *rec.Base
	if base.Kind != providers.KindDir {
		e.renewed(base.Ino, base.Version, info.Version)
		base.Version = info.Version
	}
	base.AttrGen = attrGen
	e.confirm(s.link, &base)
	return nil
}

// renewed says that a version of content has another name at the backend now:
// what is to be fetched is found under that. mu is held, in an update.
func (e *engine) renewed(ino table.Ino, was, now providers.Version) {
	n := e.v.table.Inode(ino)
	if n != nil && n.Origin.Version.Matches(was) {
		e.v.table.Edit(ino).Origin.Version = now
	}
}
