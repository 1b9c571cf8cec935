package upload

import (
	"context"
	"maps"

	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/providers"
)

// move gives the remote's entry at another name this one, in one step of the remote.
func (x *Executor) move(ctx context.Context, s *Try) error {
	mover, ok := providers.As[providers.Mover](x.o.Provider)
	if !ok {
		return providers.ErrUnsupported
	}
	var op string
	if s.Attempt != nil {
		op = s.Attempt.Op
	} else {
		err := x.o.Volume.Update(func(tx Tx) error {
			if tx.Record(s.Link).Attempt != nil || tx.Record(s.From).Attempt != nil {
				return ErrAgain
			}
			op = x.opFor(tx.View, s, AttemptMove, s.Source.ContentVersion, 0)
			tx.SetAttempt(s.Link, &table.Attempt{Op: op, ContentVersion: s.Source.ContentVersion, Kind: AttemptMove, Other: FormatLink(s.From)})
			tx.SetAttempt(s.From, &table.Attempt{Op: op, ContentVersion: s.Source.ContentVersion, Kind: AttemptGone, Other: FormatLink(s.Link)})
			return nil
		})
		if err != nil {
			return err
		}
	}
	info, err := mover.Move(ctx, s.FromAt, s.At, providers.MoveOptions{Source: Condition(s.Source), Target: s.Cond, Op: op})
	if err != nil && s.Attempt != nil && !x.caps.OperationIDs && x.isLost(err) {
		info, err = x.arrived(ctx, s, err)
	}
	if err != nil {
		return x.answered(err, s.Link, s.From)
	}
	return x.o.Volume.Update(func(tx Tx) error {
		x.moved(tx, s, info)
		return nil
	})
}

// moved notes that the remote's entry of one name is at another.
func (x *Executor) moved(tx Tx, s *Try, info providers.Info) {
	base := *s.Source
	if base.Kind != providers.KindDir {
		x.renew(tx, &base, info.Version)
	}
	if tx.Inode(base.Ino) == nil {
		base.Ino = 0
	}
	// The new remote link first: an inode without any may be forgotten.
	x.Confirm(tx, s.Link, &base)
	x.Confirm(tx, s.From, nil)
}

// arrived decides whether a rename that was not answered has happened.
func (x *Executor) arrived(ctx context.Context, s *Try, lost error) (providers.Info, error) {
	if _, err := x.o.Provider.Stat(ctx, s.FromAt); err == nil {
		return providers.Info{}, lost
	} else if !x.isLost(err) {
		return providers.Info{}, err
	}
	info, err := x.o.Provider.Stat(ctx, s.At)
	switch {
	case err != nil && x.isLost(err):
		return info, lost
	case err != nil:
		return info, err
	case info.Kind != s.Source.Kind || info.Kind != providers.KindDir &&
		(info.Version.ETag != s.Source.Version.ETag || info.Version.Size != s.Source.Version.Size):
		return info, lost
	}
	return info, nil
}

// copy gives the remote's entry at another name this one too. The old name, if it was removed
// locally, is deleted in its own time.
func (x *Executor) copy(ctx context.Context, s *Try) error {
	copier, ok := providers.As[providers.Copier](x.o.Provider)
	if !ok {
		return providers.ErrUnsupported
	}
	opts := providers.CopyOptions{If: s.Cond, Version: s.Source.Version}
	attrGen := s.Source.AttrGen
	err := x.fetchInheritedAttrs(ctx, s)
	if err != nil {
		return err
	}
	err = x.o.Volume.Update(func(tx Tx) error {
		if tx.Record(s.Link).Attempt != nil || tx.Record(s.From).Attempt != nil {
			return ErrAgain
		}
		if n := tx.Inode(s.Ino); n != nil {
			opts.Attr, attrGen = x.o.Attributes.Of(n), n.AttrGen
			if metadata := x.metadataFor(tx.View, s, n); !n.AttrsUnknown && !maps.Equal(metadata, n.Metadata) {
				opts.Metadata = metadata
			}
		}
		opts.Looked = isLooked(tx.View, s.Link, tx.Record(s.Link))
		opts.Op = x.opFor(tx.View, s, AttemptCopy, s.Source.ContentVersion, attrGen)
		tx.SetAttempt(s.Link, &table.Attempt{Op: opts.Op, ContentVersion: s.Source.ContentVersion, AttrGen: attrGen, Kind: AttemptCopy,
			Other: FormatSent(s.Ino, s.Source.Digest)})
		return nil
	})
	if err != nil {
		return err
	}
	info, err := copier.Copy(ctx, s.FromAt, s.At, opts)
	if err != nil {
		return x.answered(err, s.Link)
	}
	return x.o.Volume.Update(func(tx Tx) error {
		x.TakeMetadata(tx.Tx, s.Ino, s.Source.ContentVersion, info.Metadata)
		x.copied(tx, s, info, s.Source.Kind, s.Source.ContentVersion, attrGen)
		if gen := s.Source.ContentVersion; tx.Record(s.From).Ino != s.Ino { // it is the only one soon
			x.o.Content.Renamed(tx.View, s.Ino, stateOf(gen, s.Source.Version), stateOf(gen, info.Version))
		}
		return nil
	})
}

// copied notes the result of a copy.
func (x *Executor) copied(tx Tx, s *Try, info providers.Info, kind providers.Kind, gen, attrGen uint64) {
	base := &table.Remote{Ino: s.Ino, Kind: kind, Version: info.Version, Digest: info.Digest, ContentVersion: gen, AttrGen: attrGen}
	n := tx.Inode(s.Ino)
	// A directory is at one place of the remote. One that has another place by now, since it was
	// renamed while this answer was out, left an empty one here.
	elsewhere := n != nil && n.IsDir() && len(n.RemoteLinks) > 0 && n.RemoteLinks[0] != s.Link
	if n == nil || elsewhere {
		base.Ino = 0
	}
	x.Confirm(tx, s.Link, base)
}
