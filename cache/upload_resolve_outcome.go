package cache

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"maps"
	"strings"

	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/upload"
	"github.com/wsmount/wsmount/providers"
)

// resolveAttempt finds out whether a change that was begun has happened: its
// answer got lost, or we were killed. Then it is as if it had been answered.
// Nothing is sent for that: the change may be out of date by now.
func (e *executor) resolveAttempt(ctx context.Context, s *operation) error {
	switch s.Attempt.Kind {
	case upload.AttemptWrite, upload.AttemptCopy:
		return e.resolveWrite(ctx, s)
	case upload.AttemptMove:
		return e.resolveMove(ctx, s)
	case upload.AttemptAttr:
		return e.resolveAttr(ctx, s)
	}
	return e.resolvePresence(ctx, s)
}

// resolvePresence looks whether something was made or deleted.
func (e *executor) resolvePresence(ctx context.Context, s *operation) error {
	info, err := e.v.p.Stat(ctx, s.At)
	if err != nil && !lostRace(err) {
		return err
	}
	there := err == nil
	err = e.v.updateOwn(func(v *Tx) error {
		rec := v.Record(s.Link)
		switch {
		case rec.Attempt == nil || rec.Attempt.Kind != s.Attempt.Kind:
		case !there:
			confirm(v, s.Link, nil)
		case s.Attempt.Kind == upload.AttemptMkdir && there && info.Kind == providers.KindDir:
			e.copied(v, s, providers.Info{}, providers.KindDir, s.Attempt.ContentVersion, s.Attempt.AttrGen)
		default:
			v.setAttempt(s.Link, nil)
		}
		return nil
	})
	if err == nil {
		err = errAgain
	}
	return err
}

// impossible is a version that no backend has. A Write on its condition cannot
// happen, but one whose operation has happened is told so.
var impossible = providers.Version{ETag: "wsmount: none", Size: -1}

func (e *executor) resolveWrite(ctx context.Context, s *operation) error {
	info, happened, err := e.find(ctx, s)
	if err != nil {
		return err
	}
	a := s.Attempt
	err = e.v.updateOwn(func(v *Tx) error {
		if rec := v.Record(s.Link); rec.Attempt == nil || rec.Attempt.Op != a.Op {
			return nil // somebody else has found out
		}
		if !happened {
			s.job.attempt = *a
			v.setAttempt(s.Link, nil)
			return nil
		}
		v.takeMetadata(s.Ino, a.ContentVersion, info.Metadata)
		e.copied(v, s, info, info.Kind, a.ContentVersion, a.AttrGen)
		return nil
	})
	if err == nil {
		err = errAgain
	}
	return err
}

// find looks for what a Write or Copy would have left.
func (e *executor) find(ctx context.Context, s *operation) (info providers.Info, happened bool, err error) {
	if e.v.caps.OperationIDs {
		info, err = e.v.p.Write(ctx, s.At, providers.Body{}, providers.WriteOptions{If: providers.IfVersion(impossible), Op: s.Attempt.Op})
		if err != nil && lostRace(err) {
			return info, false, nil
		}
		return info, err == nil, err
	}
	info, err = e.v.p.Stat(ctx, s.At)
	switch {
	case err != nil && lostRace(err):
		return info, false, nil
	case err != nil:
		return info, false, err
	case info.Kind == providers.KindDir, s.Cond.Kind == providers.ConditionVersion && s.Cond.Version.Matches(info.Version):
		return info, false, nil
	}
	_, digest := upload.ParseSent(s.Attempt.Other)
	if digest == "" {
		return info, false, nil
	}
	same, err := e.hasDigest(ctx, info, digest)
	return info, same, err
}

// hasDigest reports whether an entry has content of a hash. Where the backend
// does not tell, it is read.
func (e *executor) hasDigest(ctx context.Context, info providers.Info, want string) (bool, error) {
	algorithm, _, _ := strings.Cut(want, ":")
	if got, _, _ := strings.Cut(info.Digest, ":"); got == algorithm {
		return info.Digest == want, nil
	}
	if algorithm != "sha256" {
		return false, nil
	}
	c, err := e.v.p.Read(ctx, info.Locator, providers.ReadOptions{Version: info.Version})
	if err != nil {
		if lostRace(err) {
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

func digestOf(s string) string {
	return "sha256:" + hashOf(s)
}

// resolveMove repeats a rename: it is the one change that can be repeated only
// as it was.
func (e *executor) resolveMove(ctx context.Context, s *operation) error {
	if s.Source == nil {
		return e.v.updateOwn(func(v *Tx) error {
			v.setAttempt(s.Link, nil)
			v.setAttempt(s.From, nil)
			return nil
		})
	}
	return e.move(ctx, s)
}

// resolveAttr repeats a change of attributes, with those of now.
func (e *executor) resolveAttr(ctx context.Context, s *operation) error {
	if e.v.caps.OperationIDs {
		return e.resetAttr(ctx, s)
	}
	info, err := e.v.p.Stat(ctx, s.At)
	if err != nil && !lostRace(err) {
		return err
	}
	return e.v.updateOwn(func(v *Tx) error {
		n, rec := v.table.Inode(s.Ino), v.Record(s.Link)
		if rec.Attempt == nil || rec.Attempt.Op != s.Attempt.Op {
			return nil
		}
		if err == nil && n != nil && rec.Remote != nil && sameAttrs(info, rec.Remote, v.attrOf(n)) {
			return e.attrsSet(v, s, info, s.Attempt.AttrGen)
		}
		v.setAttempt(s.Link, nil)
		return nil
	})
}

func (e *executor) resetAttr(ctx context.Context, s *operation) error {
	setter, ok := providers.As[providers.AttrSetter](e.v.p)
	opts := providers.SetAttrOptions{If: s.Cond, Op: s.Attempt.Op}
	err := e.v.view(func(v *View) error {
		if n := v.table.Inode(s.Ino); n != nil {
			opts.Attr = v.attrOf(n)
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
	if err != nil && !lostRace(err) {
		return e.answered(err, s.Link)
	}
	happened := err == nil
	err = e.v.updateOwn(func(v *Tx) error {
		if happened {
			return e.attrsSet(v, s, info, s.Attempt.AttrGen)
		}
		v.setAttempt(s.Link, nil)
		return nil
	})
	if err == nil {
		err = errAgain
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
