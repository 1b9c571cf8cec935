package upload

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"maps"
	"strings"

	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
	"github.com/wsmount/wsmount/providers"
)

// resolveAttempt finds out whether a change that was begun has happened: its answer got lost, or
// the process was killed. Then it is as if it had been answered. Content, directories and
// deletions are not sent again for that: they may be out of date by now.
func (x *Executor) resolveAttempt(ctx context.Context, s *Try) error {
	switch s.Attempt.Kind {
	case AttemptWrite, AttemptCopy:
		return x.resolveWrite(ctx, s)
	case AttemptMove:
		return x.resolveMove(ctx, s)
	case AttemptAttr:
		return x.resolveAttr(ctx, s)
	}
	return x.resolvePresence(ctx, s)
}

// resolvePresence looks whether an entry was made or deleted.
func (x *Executor) resolvePresence(ctx context.Context, s *Try) error {
	info, err := x.o.Provider.Stat(ctx, s.At)
	if err != nil && !x.isLost(err) {
		return err
	}
	there := err == nil
	err = x.o.Volume.Update(func(tx Tx) error {
		rec := tx.Record(s.Link)
		switch {
		case rec.Attempt == nil || rec.Attempt.Kind != s.Attempt.Kind:
		case !there:
			x.Confirm(tx, s.Link, nil)
		case s.Attempt.Kind == AttemptMkdir && there && info.Kind == providers.KindDir:
			x.copied(tx, s, providers.Info{}, providers.KindDir, s.Attempt.ContentVersion, s.Attempt.AttrGen)
		default:
			tx.SetAttempt(s.Link, nil)
		}
		return nil
	})
	if err == nil {
		err = ErrAgain
	}
	return err
}

// Impossible is a version that no remote has. A Write on its condition cannot happen, but if the
// same operation has happened before, the answer says so.
var Impossible = providers.Version{ETag: "wsmount: none", Size: -1}

func (x *Executor) resolveWrite(ctx context.Context, s *Try) error {
	info, happened, err := x.Find(ctx, s.Operation)
	if err != nil {
		return err
	}
	a := s.Attempt
	err = x.o.Volume.Update(func(tx Tx) error {
		if rec := tx.Record(s.Link); rec.Attempt == nil || rec.Attempt.Op != a.Op {
			return nil // another call has resolved it
		}
		if !happened {
			*s.Unmade = *a
			tx.SetAttempt(s.Link, nil)
			return nil
		}
		x.TakeMetadata(tx.Tx, s.Ino, a.ContentVersion, info.Metadata)
		x.copied(tx, s, info, info.Kind, a.ContentVersion, a.AttrGen)
		return nil
	})
	if err == nil {
		err = ErrAgain
	}
	return err
}

// Find looks for the entry that the attempt of a Write or Copy would have left.
func (x *Executor) Find(ctx context.Context, s *Operation) (info providers.Info, happened bool, err error) {
	if x.caps.OperationIDs {
		info, err = x.o.Provider.Write(ctx, s.At, providers.Body{}, providers.WriteOptions{If: providers.IfVersion(Impossible), Op: s.Attempt.Op})
		if err != nil && x.isLost(err) {
			return info, false, nil
		}
		return info, err == nil, err
	}
	info, err = x.o.Provider.Stat(ctx, s.At)
	switch {
	case err != nil && x.isLost(err):
		return info, false, nil
	case err != nil:
		return info, false, err
	case info.Kind == providers.KindDir, s.Cond.Kind == providers.ConditionVersion && s.Cond.Version.Matches(info.Version):
		return info, false, nil
	}
	_, digest := ParseSent(s.Attempt.Other)
	if digest == "" {
		return info, false, nil
	}
	same, err := x.hasDigest(ctx, info, digest)
	return info, same, err
}

// hasDigest reports whether an entry has content of a hash. If the remote does not tell its hash,
// the content is read.
func (x *Executor) hasDigest(ctx context.Context, info providers.Info, want string) (bool, error) {
	algorithm, _, _ := strings.Cut(want, ":")
	if got, _, _ := strings.Cut(info.Digest, ":"); got == algorithm {
		return info.Digest == want, nil
	}
	if algorithm != "sha256" {
		return false, nil
	}
	c, err := providers.Stream(ctx, x.o.Provider, info.Locator, providers.ReadOptions{Version: info.Version})
	if err != nil {
		if x.isLost(err) {
			err = nil
		}
		return false, err
	}
	defer c.Body.Close()
	h := sha256.New()
	if _, err := io.Copy(h, c.Body); err != nil {
		return false, err
	}
	return "sha256:"+hex.EncodeToString(h.Sum(nil)) == want, nil
}

// resolveMove repeats a rename: it is the one change that can be repeated only as it was.
func (x *Executor) resolveMove(ctx context.Context, s *Try) error {
	if s.Source == nil {
		return x.o.Volume.Update(func(tx Tx) error {
			tx.SetAttempt(s.Link, nil)
			tx.SetAttempt(s.From, nil)
			return nil
		})
	}
	return x.move(ctx, s)
}

// resolveAttr repeats a change of attributes, with the present ones, if the remote has operation
// ids. Else it looks whether the remote has them.
func (x *Executor) resolveAttr(ctx context.Context, s *Try) error {
	if x.caps.OperationIDs {
		return x.resetAttr(ctx, s)
	}
	info, err := x.o.Provider.Stat(ctx, s.At)
	if err != nil && !x.isLost(err) {
		return err
	}
	return x.o.Volume.Update(func(tx Tx) error {
		n, rec := tx.Inode(s.Ino), tx.Record(s.Link)
		if rec.Attempt == nil || rec.Attempt.Op != s.Attempt.Op {
			return nil
		}
		if err == nil && n != nil && rec.Remote != nil && sameAttrs(info, rec.Remote, x.o.Attributes.Of(n)) {
			return x.attrsSet(tx, s, info, s.Attempt.AttrGen)
		}
		tx.SetAttempt(s.Link, nil)
		return nil
	})
}

func (x *Executor) resetAttr(ctx context.Context, s *Try) error {
	setter, ok := providers.As[providers.AttrSetter](x.o.Provider)
	opts := providers.SetAttrOptions{If: s.Cond, Op: s.Attempt.Op}
	err := x.o.Tree.View(func(v *tree.View) error {
		if n := v.Inode(s.Ino); n != nil {
			opts.Attr = x.o.Attributes.Of(n)
		}
		return nil
	})
	if err != nil {
		return err
	}
	var info providers.Info
	if err = providers.ErrNotExist; ok && s.Cond.Kind != providers.ConditionAbsent && opts.Attr.Valid != 0 {
		info, err = setter.SetAttr(ctx, s.At, opts)
	}
	if err != nil && !x.isLost(err) {
		return x.answered(err, s.Link)
	}
	happened := err == nil
	err = x.o.Volume.Update(func(tx Tx) error {
		if happened {
			return x.attrsSet(tx, s, info, s.Attempt.AttrGen)
		}
		tx.SetAttempt(s.Link, nil)
		return nil
	})
	if err == nil {
		err = ErrAgain
	}
	return err
}

// sameAttrs reports whether an entry has the content that it was known to have
// and these attributes.
func sameAttrs(info providers.Info, base *table.Remote, a providers.Attr) bool {
	got := info.Attr
	same := func(set providers.AttrSet, equal bool) bool { return !a.Valid.Has(set) || equal }
	return info.Kind == base.Kind && info.Version.ETag == base.Version.ETag && info.Version.Size == base.Version.Size &&
		same(providers.AttrMode, got.Mode == a.Mode) &&
		same(providers.AttrOwner, got.UID == a.UID && got.GID == a.GID) &&
		same(providers.AttrModTime, got.ModTime.Equal(a.ModTime)) &&
		same(providers.AttrXattrs, maps.EqualFunc(got.Xattrs, a.Xattrs, bytes.Equal))
}
