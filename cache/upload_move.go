package cache

import (
	"context"
	"maps"

	"github.com/wsmount/wsmount/cache/internal/table"
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
	if s.attempt != nil {
		op = s.attempt.Op
	} else {
		err := e.v.updateOwn(func(v *Tx) error {
			if v.Record(s.link).Attempt != nil || v.Record(s.from).Attempt != nil {
				return errAgain
			}
			op = e.opFor(v.View, s, attemptMove, s.source.ContentVersion, 0)
			v.setAttempt(s.link, &table.Attempt{Op: op, ContentVersion: s.source.ContentVersion, Kind: attemptMove, Other: formatLink(s.from)})
			v.setAttempt(s.from, &table.Attempt{Op: op, ContentVersion: s.source.ContentVersion, Kind: attemptGone, Other: formatLink(s.link)})
			return nil
		})
		if err != nil {
			return err
		}
	}
	info, err := mover.Move(ctx, s.fromAt, s.at, providers.MoveOptions{Source: condition(s.source), Target: s.cond, Op: op})
	if err != nil && s.attempt != nil && !e.v.caps.OperationIDs && lostRace(err) {
		info, err = e.arrived(ctx, s, err)
	}
	if err != nil {
		return e.answered(err, s.link, s.from)
	}
	return e.v.updateOwn(func(v *Tx) error {
		e.moved(v, s, info)
		return nil
	})
}

// moved notes that what was known at one name is at another.
func (e *executor) moved(v *Tx, s *operation, info providers.Info) {
	base := *s.source
	if base.Kind != providers.KindDir {
		e.renewed(v, base.Ino, base.Version, info.Version)
		base.Version = info.Version
	}
	if v.table.Inode(base.Ino) == nil {
		base.Ino = 0
	}
	// The new remote link first: an inode without any may be forgotten.
	confirm(v, s.link, &base)
	confirm(v, s.from, nil)
}

// arrived decides whether a rename that was not answered has happened.
func (e *executor) arrived(ctx context.Context, s *operation, lost error) (providers.Info, error) {
	if _, err := e.v.p.Stat(ctx, s.fromAt); err == nil {
		return providers.Info{}, lost
	} else if !lostRace(err) {
		return providers.Info{}, err
	}
	info, err := e.v.p.Stat(ctx, s.at)
	switch {
	case err != nil && lostRace(err):
		return info, lost
	case err != nil:
		return info, err
	case info.Kind != s.source.Kind || info.Kind != providers.KindDir &&
		(info.Version.ETag != s.source.Version.ETag || info.Version.Size != s.source.Version.Size):
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
	opts := providers.CopyOptions{If: s.cond, Version: s.source.Version}
	attrGen := s.source.AttrGen
	err := e.fetchInheritedAttrs(ctx, s)
	if err != nil {
		return err
	}
	err = e.v.updateOwn(func(v *Tx) error {
		if v.Record(s.link).Attempt != nil || v.Record(s.from).Attempt != nil {
			return errAgain
		}
		if n := v.table.Inode(s.ino); n != nil {
			opts.Attr, attrGen = v.attrOf(n), n.AttrGen
			if metadata := e.metadataFor(v.View, s, n); !n.AttrsUnknown && !maps.Equal(metadata, n.Metadata) {
				opts.Metadata = metadata
			}
		}
		opts.Looked = v.looked(s.link, v.Record(s.link))
		opts.Op = e.opFor(v.View, s, attemptCopy, s.source.ContentVersion, attrGen)
		v.setAttempt(s.link, &table.Attempt{Op: opts.Op, ContentVersion: s.source.ContentVersion, AttrGen: attrGen, Kind: attemptCopy,
			Other: formatSent(s.ino, s.source.Digest)})
		return nil
	})
	if err != nil {
		return err
	}
	info, err := copier.Copy(ctx, s.fromAt, s.at, opts)
	if err != nil {
		return e.answered(err, s.link)
	}
	return e.v.updateOwn(func(v *Tx) error {
		v.takeMetadata(s.ino, s.source.ContentVersion, info.Metadata)
		e.copied(v, s, info, s.source.Kind, s.source.ContentVersion, attrGen)
		return nil
	})
}

// copied notes what a copy left.
func (e *executor) copied(v *Tx, s *operation, info providers.Info, kind providers.Kind, gen, attrGen uint64) {
	base := &table.Remote{Ino: s.ino, Kind: kind, Version: info.Version, Digest: info.Digest, ContentVersion: gen, AttrGen: attrGen}
	if v.table.Inode(s.ino) == nil {
		base.Ino = 0
	}
	confirm(v, s.link, base)
}
