package cache

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/upload"
	"github.com/wsmount/wsmount/providers"
)

// executor makes operations.
type executor struct {
	v     *Volume
	slots chan struct{} // one for each part on its way
	beat  atomic.Int64  // when it last told who waits that bytes move
}

// do makes the operation: one request, framed by changes of the table. What is about
// to be tried is in the table before the request, what came of it after the
// answer; when there is no answer, the attempt stays, and is settled first.
func (e *executor) do(ctx context.Context, s *operation) error {
	if err := e.v.hydrateBeforeDelete(ctx, s.Link); err != nil {
		return err
	}
	switch s.Verb {
	case upload.VerbWrite:
		return e.write(ctx, s)
	case upload.VerbMkdir:
		return e.mkdir(ctx, s)
	case upload.VerbDelete:
		return e.delete(ctx, s)
	case upload.VerbMove:
		return e.move(ctx, s)
	case upload.VerbCopy:
		return e.copy(ctx, s)
	case upload.VerbAttr:
		return e.setAttr(ctx, s)
	case upload.VerbResolve:
		return e.resolveAttempt(ctx, s)
	case upload.VerbEmpty:
		return e.empty(ctx, s.Ino)
	case upload.VerbPart:
		if err := e.fetchAttrs(ctx, s.Ino); err != nil { // once it has left its place nobody can
			return err
		}
		return e.part(s.Ino)
	case upload.VerbAdopt:
		return e.adopt(s)
	}
	return fmt.Errorf("no such step: %s", s)
}

// confirm says what the backend has under a name from now on; nil: nothing. Who had it
// may be forgotten then.
func confirm(v *Tx, l table.Link, base *table.Remote) {
	was, _ := v.table.Name(l.Dir, l.Name)
	if v.IsNowhere(l.Dir) {
		base = nil // the directory came back as another one, where this is found
	}
	if above := v.table.Inode(l.Dir); was.Remote == nil && base != nil && base.Kind == providers.KindDir && above != nil && !above.Loaded {
		if n := v.table.Edit(base.Ino); n != nil {
			n.Loaded, n.Listed = false, 0 // others may have made it before, with something in it
		}
	}
	v.SetRemote(l, base)
	if base == nil {
		v.implied(l.Dir)
	}
	if was.Remote != nil && (base == nil || base.Ino != was.Remote.Ino) {
		v.Shed(was.Remote.Ino)
	}
}

// implied doubts a directory at the backend that may have gone there with its last
// entry, because nobody had made it by itself: it is looked for, and made anew, or
// deleted if it is no more here by then.
func (v *Tx) implied(dir table.Ino) {
	n := v.table.Inode(dir)
	if !v.caps.ImpliedDirs || dir == table.Root || n == nil || !n.Loaded || len(n.RemoteLinks) == 0 {
		return
	}
	home := n.RemoteLinks[0]
	rec, _ := v.table.Name(home.Dir, home.Name)
	if rec.Ino != dir || rec.Attempt != nil || rec.Remote == nil || v.HasRemoteNames(dir) {
		return
	}
	doubt := table.Attempt{ContentVersion: rec.Remote.ContentVersion, AttrGen: rec.Remote.AttrGen, Kind: upload.AttemptMkdir, Other: upload.FormatSent(dir, "")}
	v.SetRemote(home, nil)
	v.setAttempt(home, &doubt)
}

// write sends content to a name.
func (e *executor) write(ctx context.Context, s *operation) error {
	err := e.fetchAttrs(ctx, s.Ino)
	if err == nil {
		err = e.fetchInheritedAttrs(ctx, s)
	}
	if err != nil {
		return err
	}
	p, err := e.pack(ctx, s)
	if err == errMoot || err == nil && p == nil { // never wrapped
		return errAgain
	}
	if err != nil {
		return e.resolvePartial(ctx, s.Link, err)
	}
	defer p.close(e.v)
	opts := providers.WriteOptions{If: s.Cond, Kind: p.kind}
	var attrGen uint64
	err = e.v.updateOwn(func(v *Tx) error {
		n, rec := v.table.Inode(s.Ino), v.Record(s.Link)
		if n == nil || rec.Ino != s.Ino && s.From == (table.Link{}) || rec.Attempt != nil {
			return errAgain
		}
		opts.Attr, opts.Metadata, attrGen = v.attrOf(n), e.metadataFor(v.View, s, n), n.AttrGen
		opts.Op, opts.Looked = e.opFor(v.View, s, upload.AttemptWrite, p.gen, n.AttrGen), v.looked(s.Link, rec)
		if rec.Remote != nil && rec.Remote.Ino == s.Ino {
			p.base = rec.Remote
		}
		v.setAttempt(s.Link, &table.Attempt{Op: opts.Op, ContentVersion: p.gen, AttrGen: attrGen, Kind: upload.AttemptWrite,
			Other: upload.FormatSent(s.Ino, p.digest)})
		return nil
	})
	if err != nil {
		return err
	}
	info, err := e.send(ctx, s, p, opts)
	if err != nil {
		if err = e.answered(err, s.Link); p.failed != nil && errors.Is(err, providers.ErrBody) {
			err = p.failed // which says whether it passes
		}
		return err
	}
	e.sent(p, info.Version)
	return e.v.updateOwn(func(v *Tx) error {
		e.wrote(v, s, info, p.kind, p.gen, attrGen)
		return nil
	})
}

// looked reports whether a listing has shown what the backend has under a name: nothing,
// or a file.
func (v *View) looked(l table.Link, rec table.Name) bool {
	dir := v.table.Inode(l.Dir)
	return dir != nil && dir.Loaded && (rec.Remote == nil || rec.Remote.Kind != providers.KindDir)
}

// progress follows content on its way; n is less than nothing for what has to go
// again.
func (e *executor) progress(s *operation, n int) {
	if s.job.sent.by(n) {
		s.moved()
		e.moving()
	}
}

// moving tells who waits that bytes are moving, once in a while: nobody gives
// up for want of patience then.
func (e *executor) moving() {
	now, last := time.Now().UnixNano(), e.beat.Load()
	if now-last < int64(min(time.Second, e.v.o.Patience/8)) || !e.beat.CompareAndSwap(last, now) {
		return
	}
	e.v.doing.alive()
	locked := e.v.lock()
	defer locked.unlock()
	e.v.doing.advanced(e.v.pending)
}

// wrote notes which state of an inode the backend has under a name.
func (e *executor) wrote(v *Tx, s *operation, info providers.Info, kind providers.Kind, gen, attrGen uint64) {
	base := &table.Remote{Ino: s.Ino, Kind: kind, Version: info.Version, Digest: info.Digest, ContentVersion: gen, AttrGen: attrGen}
	n := v.table.Edit(s.Ino)
	if n == nil {
		base.Ino = 0
	} else if n.ContentVersion == gen || n.State == table.Whole {
		n.Origin = table.Origin{Version: info.Version, Digest: info.Digest, ContentVersion: gen}
	}
	v.takeMetadata(s.Ino, gen, info.Metadata)
	confirm(v, s.Link, base)
}

// mkdir makes a directory. One that others have made is as good.
func (e *executor) mkdir(ctx context.Context, s *operation) error {
	if err := e.fetchAttrs(ctx, s.Ino); err != nil {
		return err
	}
	opts := providers.MkdirOptions{}
	var gen, attrGen uint64
	err := e.v.updateOwn(func(v *Tx) error {
		n, rec := v.table.Inode(s.Ino), v.Record(s.Link)
		if n == nil || rec.Ino != s.Ino || rec.Attempt != nil {
			return errAgain
		}
		opts.Attr, opts.Metadata, gen, attrGen = v.attrOf(n), n.Metadata, n.ContentVersion, n.AttrGen
		if v.caps.EmptyDirs {
			v.setAttempt(s.Link, &table.Attempt{ContentVersion: gen, AttrGen: attrGen, Kind: upload.AttemptMkdir, Other: upload.FormatSent(s.Ino, "")})
			return nil
		}
		// It is there as soon as something is in it.
		confirm(v, s.Link, &table.Remote{Ino: s.Ino, Kind: providers.KindDir, ContentVersion: gen, AttrGen: attrGen})
		return nil
	})
	if err != nil || !e.v.caps.EmptyDirs {
		return err
	}
	if _, err := e.v.p.Mkdir(ctx, s.At, opts); err != nil {
		return e.answered(err, s.Link)
	}
	return e.v.updateOwn(func(v *Tx) error {
		e.copied(v, s, providers.Info{}, providers.KindDir, gen, attrGen)
		return nil
	})
}

// delete removes what is known to be there. What is gone is what we want.
func (e *executor) delete(ctx context.Context, s *operation) error {
	err := e.v.updateOwn(func(v *Tx) error {
		rec := v.Record(s.Link)
		if rec.Remote == nil || rec.Remote.Ino != s.Ino || rec.Attempt != nil {
			return errAgain
		}
		v.setAttempt(s.Link, &table.Attempt{Kind: upload.AttemptDelete, Other: upload.FormatSent(s.Ino, "")})
		return nil
	})
	if err != nil {
		return err
	}
	err = e.v.p.Delete(ctx, s.At, providers.DeleteOptions{If: s.Cond})
	if err != nil && !errors.Is(err, providers.ErrNotExist) {
		return e.answered(err, s.Link)
	}
	return e.v.updateOwn(func(v *Tx) error {
		confirm(v, s.Link, nil)
		return nil
	})
}

// setAttr sends attributes. Where the backend takes them with content only, it
// has them with the next content.
func (e *executor) setAttr(ctx context.Context, s *operation) error {
	setter, can := providers.As[providers.AttrSetter](e.v.p)
	opts := providers.SetAttrOptions{If: s.Cond}
	var attrGen uint64
	err := e.v.updateOwn(func(v *Tx) error {
		n, rec := v.table.Inode(s.Ino), v.Record(s.Link)
		if n == nil || rec.Remote == nil || rec.Remote.Ino != s.Ino {
			return errAgain
		}
		opts.Attr, attrGen = v.attrOf(n), n.AttrGen
		can = can && (!s.Dir || e.tellsDirAttrs())
		if !can || opts.Attr.Valid == 0 {
			base := *rec.Remote
			base.AttrGen = attrGen
			confirm(v, s.Link, &base)
			return nil
		}
		opts.Op = e.opFor(v.View, s, upload.AttemptAttr, attrGen, attrGen)
		v.setAttempt(s.Link, &table.Attempt{Op: opts.Op, ContentVersion: attrGen, AttrGen: attrGen, Kind: upload.AttemptAttr})
		return nil
	})
	if err != nil || !can || opts.Attr.Valid == 0 {
		return err
	}
	info, err := setter.SetAttr(ctx, s.At, opts)
	if err != nil {
		return e.answered(err, s.Link)
	}
	return e.v.updateOwn(func(v *Tx) error { return e.attrsSet(v, s, info, attrGen) })
}

// tellsDirAttrs reports whether the backend can be told attributes of a directory
// that it has. Where there are none without entries they are a part of names,
// and a set can only make one with its attributes.
func (e *executor) tellsDirAttrs() bool {
	_, can := providers.As[providers.AttrSetter](e.v.p)
	return can && e.v.caps.EmptyDirs && e.v.sets == nil
}

// attrsSet notes that the backend has attributes of ours. Content that is only partly
// here comes from the version that they made.
func (e *executor) attrsSet(v *Tx, s *operation, info providers.Info, attrGen uint64) error {
	rec := v.Record(s.Link)
	if rec.Remote == nil {
		v.setAttempt(s.Link, nil)
		return nil
	}
	base := *rec.Remote
	if base.Kind != providers.KindDir {
		e.renewed(v, base.Ino, base.Version, info.Version)
		base.Version = info.Version
	}
	base.AttrGen = attrGen
	confirm(v, s.Link, &base)
	return nil
}

// renewed says that a version of content has another name at the backend now: what is to
// be fetched is found under that.
func (e *executor) renewed(v *Tx, ino table.Ino, was, now providers.Version) {
	n := v.table.Inode(ino)
	if n != nil && n.Origin.Version.Matches(was) {
		v.table.Edit(ino).Origin.Version = now
	}
}
