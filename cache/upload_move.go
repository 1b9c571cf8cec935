package cache

import (
	"context"
	"maps"

	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/upload"
	"github.com/wsmount/wsmount/providers"
)

// move gives what is known at another name this one, in one step of the
// backend.
func (e *executor) move(ctx context.Context, s *operation) error {
	mover, ok := providers.As[providers.Mover](e.v.p)
	if !ok {
		return providers.ErrUnsupported
	}
	var op string
	if s.Attempt != nil {
		op = s.Attempt.Op
	} else {
		err := e.v.updateOwn(func(v *Tx) error {
			if v.Record(s.Link).Attempt != nil || v.Record(s.From).Attempt != nil {
				return errAgain
			}
			op = e.opFor(v.View, s, upload.AttemptMove, s.Source.ContentVersion, 0)
			v.setAttempt(s.Link, &table.Attempt{Op: op, ContentVersion: s.Source.ContentVersion, Kind: upload.AttemptMove, Other: upload.FormatLink(s.From)})
			v.setAttempt(s.From, &table.Attempt{Op: op, ContentVersion: s.Source.ContentVersion, Kind: upload.AttemptGone, Other: upload.FormatLink(s.Link)})
			return nil
		})
		if err != nil {
			return err
		}
	}
	info, err := mover.Move(ctx, s.FromAt, s.At, providers.MoveOptions{Source: upload.Condition(s.Source), Target: s.Cond, Op: op})
	if err != nil && s.Attempt != nil && !e.v.caps.OperationIDs && lostRace(err) {
		info, err = e.arrived(ctx, s, err)
	}
	if err != nil {
		return e.answered(err, s.Link, s.From)
	}
	return e.v.updateOwn(func(v *Tx) error {
		e.moved(v, s, info)
		return nil
	})
}

// moved notes that what was known at one name is at another.
func (e *executor) moved(v *Tx, s *operation, info providers.Info) {
	base := *s.Source
	if base.Kind != providers.KindDir {
		e.renewed(v, base.Ino, base.Version, info.Version)
		base.Version = info.Version
	}
	if v.table.Inode(base.Ino) == nil {
		base.Ino = 0
	}
	// The new remote link first: an inode without any may be forgotten.
	confirm(v, s.Link, &base)
	confirm(v, s.From, nil)
}

// arrived decides whether a rename that was not answered has happened.
func (e *executor) arrived(ctx context.Context, s *operation, lost error) (providers.Info, error) {
	if _, err := e.v.p.Stat(ctx, s.FromAt); err == nil {
		return providers.Info{}, lost
	} else if !lostRace(err) {
		return providers.Info{}, err
	}
	info, err := e.v.p.Stat(ctx, s.At)
	switch {
	case err != nil && lostRace(err):
		return info, lost
	case err != nil:
		return info, err
	case info.Kind != s.Source.Kind || info.Kind != providers.KindDir &&
		(info.Version.ETag != s.Source.Version.ETag || info.Version.Size != s.Source.Version.Size):
		return info, lost
	}
	return info, nil
}

// copy gives what is known at another name this one too. The old name, if it is
// no more here, is deleted in its own time.
func (e *executor) copy(ctx context.Context, s *operation) error {
	copier, ok := providers.As[providers.Copier](e.v.p)
	if !ok {
		return providers.ErrUnsupported
	}
	opts := providers.CopyOptions{If: s.Cond, Version: s.Source.Version}
	attrGen := s.Source.AttrGen
	err := e.fetchInheritedAttrs(ctx, s)
	if err != nil {
		return err
	}
	err = e.v.updateOwn(func(v *Tx) error {
		if v.Record(s.Link).Attempt != nil || v.Record(s.From).Attempt != nil {
			return errAgain
		}
		if n := v.table.Inode(s.Ino); n != nil {
			opts.Attr, attrGen = v.attrOf(n), n.AttrGen
			if metadata := e.metadataFor(v.View, s, n); !n.AttrsUnknown && !maps.Equal(metadata, n.Metadata) {
				opts.Metadata = metadata
			}
		}
		opts.Looked = v.looked(s.Link, v.Record(s.Link))
		opts.Op = e.opFor(v.View, s, upload.AttemptCopy, s.Source.ContentVersion, attrGen)
		v.setAttempt(s.Link, &table.Attempt{Op: opts.Op, ContentVersion: s.Source.ContentVersion, AttrGen: attrGen, Kind: upload.AttemptCopy,
			Other: upload.FormatSent(s.Ino, s.Source.Digest)})
		return nil
	})
	if err != nil {
		return err
	}
	info, err := copier.Copy(ctx, s.FromAt, s.At, opts)
	if err != nil {
		return e.answered(err, s.Link)
	}
	return e.v.updateOwn(func(v *Tx) error {
		v.takeMetadata(s.Ino, s.Source.ContentVersion, info.Metadata)
		e.copied(v, s, info, s.Source.Kind, s.Source.ContentVersion, attrGen)
		return nil
	})
}

// copied notes what a copy left: nobody's directory where the inode has got another place while the answer was out.
func (e *executor) copied(v *Tx, s *operation, info providers.Info, kind providers.Kind, gen, attrGen uint64) {
	base := &table.Remote{Ino: s.Ino, Kind: kind, Version: info.Version, Digest: info.Digest, ContentVersion: gen, AttrGen: attrGen}
	if n := v.table.Inode(s.Ino); n == nil || n.IsDir() && len(n.RemoteLinks) > 0 && n.RemoteLinks[0] != s.Link {
		base.Ino = 0
	}
	confirm(v, s.Link, base)
}
