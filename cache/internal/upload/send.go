package upload

import (
	"context"
	"errors"

	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
	"github.com/wsmount/wsmount/providers"
)

// write sends content to a name.
func (x *Executor) write(ctx context.Context, s *Try) error {
	err := x.o.Names.FetchAttrs(ctx, s.Ino)
	if err == nil {
		err = x.fetchInheritedAttrs(ctx, s)
	}
	if err != nil {
		return err
	}
	p, err := x.Pack(ctx, s.Ino)
	if err == ErrMoot { // never wrapped
		return ErrAgain
	}
	if err != nil {
		return x.o.Content.Unsendable(ctx, s.Link, err)
	}
	defer p.Close()
	opts := providers.WriteOptions{If: s.Cond, Kind: p.Kind}
	var attrGen uint64
	err = x.o.Volume.Update(func(tx Tx) error {
		n, rec := tx.Inode(s.Ino), tx.Record(s.Link)
		if n == nil || rec.Ino != s.Ino && s.From == (table.Link{}) || rec.Attempt != nil {
			return ErrAgain
		}
		opts.Attr, opts.Metadata, attrGen = x.o.Attributes.Of(n), x.metadataFor(tx.View, s, n), n.AttrGen
		opts.Op, opts.Looked = x.opFor(tx.View, s, AttemptWrite, p.Version, n.AttrGen), isLooked(tx.View, s.Link, rec)
		if rec.Remote != nil && rec.Remote.Ino == s.Ino {
			p.base = rec.Remote
		}
		tx.SetAttempt(s.Link, &table.Attempt{Op: opts.Op, ContentVersion: p.Version, AttrGen: attrGen, Kind: AttemptWrite,
			Other: FormatSent(s.Ino, p.digest)})
		return nil
	})
	if err != nil {
		return err
	}
	info, err := x.send(ctx, s, p, opts)
	if err != nil {
		if err = x.answered(err, s.Link); p.Failed != nil && errors.Is(err, providers.ErrBody) {
			err = p.Failed // its kind tells whether it passes
		}
		return err
	}
	x.sent(p, info.Version)
	return x.o.Volume.Update(func(tx Tx) error {
		x.wrote(tx, s, info, p.Kind, p.Version, attrGen)
		return nil
	})
}

// isLooked reports whether a listing has shown the remote's entry under a name: none, or a file.
func isLooked(v *tree.View, l table.Link, rec table.Name) bool {
	dir := v.Inode(l.Dir)
	return dir != nil && dir.Loaded && (rec.Remote == nil || rec.Remote.Kind != providers.KindDir)
}

// wrote notes which state of an inode the remote has under a name.
func (x *Executor) wrote(tx Tx, s *Try, info providers.Info, kind providers.Kind, gen, attrGen uint64) {
	base := &table.Remote{Ino: s.Ino, Kind: kind, Version: info.Version, Digest: info.Digest, ContentVersion: gen, AttrGen: attrGen}
	n := tx.Edit(s.Ino)
	if n == nil {
		base.Ino = 0
	} else if n.ContentVersion == gen || n.State == table.Whole {
		n.Origin = table.Origin{Version: info.Version, Digest: info.Digest, ContentVersion: gen}
	}
	x.TakeMetadata(tx.Tx, s.Ino, gen, info.Metadata)
	x.Confirm(tx, s.Link, base)
}

// mkdir makes a directory. One that others have made is as good.
func (x *Executor) mkdir(ctx context.Context, s *Try) error {
	if err := x.o.Names.FetchAttrs(ctx, s.Ino); err != nil {
		return err
	}
	opts := providers.MkdirOptions{}
	var gen, attrGen uint64
	err := x.o.Volume.Update(func(tx Tx) error {
		n, rec := tx.Inode(s.Ino), tx.Record(s.Link)
		if n == nil || rec.Ino != s.Ino || rec.Attempt != nil {
			return ErrAgain
		}
		opts.Attr, opts.Metadata, gen, attrGen = x.o.Attributes.Of(n), n.Metadata, n.ContentVersion, n.AttrGen
		if x.caps.EmptyDirs {
			tx.SetAttempt(s.Link, &table.Attempt{ContentVersion: gen, AttrGen: attrGen, Kind: AttemptMkdir, Other: FormatSent(s.Ino, "")})
			return nil
		}
		// It exists as soon as it has an entry.
		x.Confirm(tx, s.Link, &table.Remote{Ino: s.Ino, Kind: providers.KindDir, ContentVersion: gen, AttrGen: attrGen})
		return nil
	})
	if err != nil || !x.caps.EmptyDirs {
		return err
	}
	if _, err := x.o.Provider.Mkdir(ctx, s.At, opts); err != nil {
		return x.answered(err, s.Link)
	}
	return x.o.Volume.Update(func(tx Tx) error {
		x.copied(tx, s, providers.Info{}, providers.KindDir, gen, attrGen)
		return nil
	})
}

// delete removes the known entry. An entry that is already gone is a success.
func (x *Executor) delete(ctx context.Context, s *Try) error {
	err := x.o.Volume.Update(func(tx Tx) error {
		rec := tx.Record(s.Link)
		if rec.Remote == nil || rec.Remote.Ino != s.Ino || rec.Attempt != nil {
			return ErrAgain
		}
		tx.SetAttempt(s.Link, &table.Attempt{Kind: AttemptDelete, Other: FormatSent(s.Ino, "")})
		return nil
	})
	if err != nil {
		return err
	}
	err = x.o.Provider.Delete(ctx, s.At, providers.DeleteOptions{If: s.Cond})
	if err != nil && !errors.Is(err, providers.ErrNotExist) {
		return x.answered(err, s.Link)
	}
	return x.o.Volume.Update(func(tx Tx) error {
		x.Confirm(tx, s.Link, nil)
		return nil
	})
}

// setAttr sends attributes. Where the remote takes them with content only, it
// has them with the next content.
func (x *Executor) setAttr(ctx context.Context, s *Try) error {
	setter, can := providers.As[providers.AttrSetter](x.o.Provider)
	opts := providers.SetAttrOptions{If: s.Cond}
	var attrGen uint64
	err := x.o.Volume.Update(func(tx Tx) error {
		n, rec := tx.Inode(s.Ino), tx.Record(s.Link)
		if n == nil || rec.Remote == nil || rec.Remote.Ino != s.Ino {
			return ErrAgain
		}
		opts.Attr, attrGen = x.o.Attributes.Of(n), n.AttrGen
		can = can && (!s.Dir || x.TellsDirAttrs())
		if !can || opts.Attr.Valid == 0 {
			base := *rec.Remote
			base.AttrGen = attrGen
			x.Confirm(tx, s.Link, &base)
			return nil
		}
		opts.Op = x.opFor(tx.View, s, AttemptAttr, attrGen, attrGen)
		tx.SetAttempt(s.Link, &table.Attempt{Op: opts.Op, ContentVersion: attrGen, AttrGen: attrGen, Kind: AttemptAttr})
		return nil
	})
	if err != nil || !can || opts.Attr.Valid == 0 {
		return err
	}
	info, err := setter.SetAttr(ctx, s.At, opts)
	if err != nil {
		return x.answered(err, s.Link)
	}
	return x.o.Volume.Update(func(tx Tx) error { return x.attrsSet(tx, s, info, attrGen) })
}

// TellsDirAttrs reports whether the remote can be told attributes of an existing directory. Where
// there are no empty directories they are a part of names.
func (x *Executor) TellsDirAttrs() bool {
	_, can := providers.As[providers.AttrSetter](x.o.Provider)
	return can && x.caps.EmptyDirs
}

// attrsSet notes that the remote has attributes of ours. Content that is only partly local comes
// from the version that they made.
func (x *Executor) attrsSet(tx Tx, s *Try, info providers.Info, attrGen uint64) error {
	rec := tx.Record(s.Link)
	if rec.Remote == nil {
		tx.SetAttempt(s.Link, nil)
		return nil
	}
	base := *rec.Remote
	if base.Kind != providers.KindDir {
		x.renew(tx, &base, info.Version)
	}
	base.AttrGen = attrGen
	x.Confirm(tx, s.Link, &base)
	return nil
}

// renew says that the content of a name has another version at the remote: missing content is
// fetched from that, and changes are counted from it.
func (x *Executor) renew(tx Tx, base *table.Remote, now providers.Version) {
	if n := tx.Inode(base.Ino); n != nil && n.Origin.Version.Matches(base.Version) {
		tx.Edit(base.Ino).Origin.Version = now
	}
	x.o.Content.Renamed(tx.View, base.Ino, stateOf(base.ContentVersion, base.Version), stateOf(base.ContentVersion, now))
	base.Version = now
}
