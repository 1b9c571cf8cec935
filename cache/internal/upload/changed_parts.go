package upload

import (
	"errors"
	"fmt"
	"slices"

	"github.com/wsmount/wsmount/cache/internal/content"
	"github.com/wsmount/wsmount/cache/internal/files"
	"github.com/wsmount/wsmount/providers"
)

// Parts of large content that have not changed since the version that a name has at the remote are
// not sent again: the remote copies them, if it still has that version there. The changed bytes
// are known of content that was sent or first changed in this run; after a restart all of it goes.

// copiedMost bounds the bytes that one part copies: the remote answers when it is done.
const copiedMost = 128 << 20

// piece is a part of an upload: local content, or a range that the remote copies.
type piece struct {
	off, size int64
	copied    bool
}

// pieces are the parts, of about a size, in which content goes out.
func (x *Executor) pieces(p *Payload, part int64) []piece {
	limits := x.caps.Parts
	least := max(limits.Min, 1)
	whole := cut(nil, piece{0, p.snap.Size(), false}, part, least)
	if p.base == nil {
		return whole
	}
	changed, size, ok := p.snap.Changed(stateOf(p.base.ContentVersion, p.base.Version))
	if !ok || size != p.base.Version.Size {
		return whole
	}
	copied := int64(copiedMost)
	if limits.Max > 0 {
		copied = min(copied, limits.Max)
	}
	var parts []piece
	for _, one := range spared(changed, size, p.snap.Size(), least) {
		most := part
		if one.copied {
			most = copied
		}
		parts = cut(parts, one, most, least)
	}
	if limits.Count > 0 && len(parts) > limits.Count {
		return whole
	}
	return parts
}

// cut adds a piece to others, in equal parts of about most bytes, and not below least.
func cut(to []piece, one piece, most, least int64) []piece {
	n := max(min((one.size+most-1)/most, one.size/least), 1)
	for i := range n {
		from, end := one.size*i/n, one.size*(i+1)/n
		to = append(to, piece{one.off + from, end - from, one.copied})
	}
	return to
}

// spared divides content of a size into pieces to send and pieces to copy, by the changed spans of
// the base. All pieces but the last have at least as many bytes as least: smaller ones are sent
// together with their neighbours.
func spared(changed []content.Span, base, size, least int64) (all []piece) {
	if size > base {
		changed = slices.DeleteFunc(slices.Clone(changed), func(c content.Span) bool { return c.Off >= base })
		changed = append(changed, content.Span{Off: base, End: size})
	}
	off, end := int64(0), int64(0) // of the span to send that is not in all yet
	for _, c := range changed {
		if c.Off = min(c.Off, size); c.Off >= size {
			break
		}
		if c.Off-end >= least {
			all = appendSent(all, off, end)
			all = append(all, piece{end, c.Off - end, true})
			off = c.Off
		}
		end = max(end, min(max(c.End, off+least), size))
	}
	all = appendSent(all, off, end)
	if end < size {
		all = append(all, piece{end, size - end, true})
	}
	return all
}

func appendSent(all []piece, off, end int64) []piece {
	if off < end {
		all = append(all, piece{off, end - off, false})
	}
	return all
}

// stateOf names a state of content that a remote has: our content version, and the remote's.
func stateOf(gen uint64, version providers.Version) string {
	return fmt.Sprint(gen, version.ETag, version.Size)
}

// sent notes that the remote has this state of content.
func (x *Executor) sent(p *Payload, version providers.Version) {
	if p.snap == nil || p.snap.Size() < x.inPartsFrom() || p.oi.MayBeMapped() {
		return
	}
	p.snap.Sent(stateOf(p.Version, version))
}

// Follow has the changes of content recorded that a program is about to make, if the remote has
// the present state.
func (x *Executor) Follow(oi files.LockedInode) {
	if oi.Content() == nil || oi.Content().Size() < x.inPartsFrom() || oi.MayBeMapped() || !x.caps.Abilities.Has(providers.AbilityParts) {
		return
	}
	v := x.o.Tree.Lock()
	origin, ok := v.OriginOf(oi.Ino)
	x.o.Tree.Unlock()
	if ok {
		oi.Follow(stateOf(origin.ContentVersion, origin.Version))
	}
}

// cannotCopy reports whether a remote does not copy parts at all, or not for this client: then
// they are sent.
func cannotCopy(err error) bool {
	return errors.Is(err, providers.ErrUnsupported) || errors.Is(err, providers.ErrInvalid) || errors.Is(err, providers.ErrPermission)
}
