package seam

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/wsmount/wsmount/providers"
)

// ETag tells states of a file apart, by nothing but its content: the SHA-256 in
// hexadecimal digits, whatever backend the file lies in and whatever its times are. None is
// "", that of no file.
type ETag string

// None is the ETag of a missing file.
const None ETag = ""

// ETagOf is the ETag of content.
func ETagOf(content string) ETag {
	sum := sha256.Sum256([]byte(content))
	return ETag(hex.EncodeToString(sum[:]))
}

// noETag is the text of None.
const noETag = "none"

// ParseETag reads the text of String, in quotes or not, as HTTP has it. Anything else is
// providers.ErrInvalid.
func ParseETag(text string) (ETag, error) {
	text = strings.TrimSuffix(strings.TrimPrefix(text, `"`), `"`)
	if text == noETag {
		return None, nil
	}
	if sum, err := hex.DecodeString(text); err != nil || len(sum) != sha256.Size || text != strings.ToLower(text) {
		return None, fmt.Errorf("%q is no etag, which is a SHA-256, or %s where nothing is: %w", text, noETag, providers.ErrInvalid)
	}
	return ETag(text), nil
}

// String is the digits, "none" for None.
func (e ETag) String() string {
	if e == None {
		return noETag
	}
	return string(e)
}

// Conditional is a Backend whose writes can have a condition on the content that they replace.
type Conditional interface {
	Backend

	// WriteIf is Write if the file at l has the content with the ETag old, or if old is None and
	// there is no file. Else it is providers.ErrConflict, and nothing changed. Among writers that
	// all use conditions through a Backend, none replaces content that it has not read.
	// providers.ErrUnsupported where nothing keeps them apart.
	WriteIf(ctx context.Context, l Locator, old ETag, content string) (Locator, error)
}

// Update writes the result of change for the text at l, and calls it anew as long as other
// writers interfere. change gets "" for a missing file, which was tells; ok is false to leave the
// file as it is.
func Update(ctx context.Context, b Backend, l Locator, change func(text string, was bool) (changed string, ok bool, err error)) error {
	c, conditional := b.(Conditional)
	if !conditional {
		return fail(providers.MethodWrite, l, fmt.Errorf("nothing keeps writers apart: %w", providers.ErrUnsupported))
	}
	for {
		text, err := b.Read(ctx, l)
		was := !errors.Is(err, providers.ErrNotExist)
		if err != nil && was {
			return err
		}
		changed, ok, err := change(text, was)
		if err != nil || !ok {
			return err
		}
		old := None
		if was {
			old = ETagOf(text)
		}
		if _, err = c.WriteIf(ctx, l, old, changed); !errors.Is(err, providers.ErrConflict) {
			return err
		}
	}
}

// Changed is the error of WriteIf where now is the ETag. It is providers.ErrConflict.
func Changed(now ETag) error { return changed(now) }

type changed ETag

func (c changed) Error() string { return "its etag is " + ETag(c).String() }
func (c changed) Unwrap() error { return providers.ErrConflict }

// WriteIf implements Conditional.
func (s *Store) WriteIf(ctx context.Context, l Locator, old ETag, content string) (Locator, error) {
	if err := CheckText(l, content); err != nil {
		return Locator{}, err
	}
	if err := s.writeIf(ctx, l, old, content); err != nil {
		return Locator{}, fail(providers.MethodWrite, l, err)
	}
	return l, nil
}

// writeIf compares the content, and then has the provider check that it is unchanged: a
// provider's versions are its own.
func (s *Store) writeIf(ctx context.Context, l Locator, old ETag, content string) error {
	switch c := s.p.Capabilities(); {
	case !c.Writable:
		return providers.ErrReadOnly
	case c.Conditions.Create == providers.GuardNone, c.Conditions.Replace == providers.GuardNone:
		return fmt.Errorf("the storage keeps no writers apart: %w", providers.ErrUnsupported)
	}
	data, info, err := s.fetch(ctx, l)
	opts := providers.WriteOptions{If: providers.IfVersion(info.Version), Attr: info.Attr, Metadata: info.Metadata}
	opts.Attr.Valid &^= providers.AttrModTime // that of the old content
	now := ETagOf(string(data))
	if errors.Is(err, providers.ErrNotExist) {
		now, opts, err = None, providers.WriteOptions{If: providers.IfAbsent()}, nil
	}
	if err == nil && now != old {
		err = Changed(now)
	}
	if err == nil {
		_, err = s.p.Write(ctx, l.at, providers.String(content), opts)
	}
	if now == None && errors.Is(err, providers.ErrExist) {
		err = fmt.Errorf("it was made meanwhile: %w", providers.ErrConflict)
	}
	return err
}
