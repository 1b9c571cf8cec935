package bucket

import (
	"bytes"
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/wsmount/wsmount/providers"
)

// Programs that keep a tree in a bucket have words for attributes, and those of one service often
// agree. The words of all of them are read on every service; wsmount writes those that the
// programs of this service read.

// Words are how attributes are written in metadata. The zero Words are s3fs's.
type Words struct {
	Dates  bool   // mtime is a date, as rclone has it of Azure and Google, and not seconds
	Google bool   // mode, owner and seconds are under the names of Google's tools, see googMode
	Link   string // metadata that are "true" for a link with its target as content; "": its mode
	Target string // metadata with a link's target, for programs that need it; "": none
}

// Words of programs beside s3fs's.
const (
	metaTarget = "--symlink-target" // GeeseFS: the target, percent-encoded; the content is empty

	// BlobLink is blobfuse2's and AzCopy's.
	BlobLink = "is_symlink"

	// AzCopy's, where it is to keep POSIX attributes: the mode with its type, in decimal digits,
	// and the time in nanoseconds. Other programs have such names too, so the others count only
	// if the first is a mode as it writes them.
	azcopyMode  = "permissions"
	azcopyUID   = "posix_owner"
	azcopyGID   = "posix_group"
	azcopyMtime = "modtime"

	// gcsfuse's. Until its version 3.9 a link had its target and nothing else; since then it has
	// GoogLink too, and the content. gcsfuse leaves all other metadata of a file that it changes
	// as they were, so of several times its own is the latest.
	gcsfuseMtime  = "gcsfuse_mtime"
	GcsfuseTarget = "gcsfuse_symlink_target"

	// Those of Google's other tools, with the mode in octal digits, without the type.
	GoogLink  = "goog-reserved-file-is-symlink"
	googMtime = "goog-reserved-file-mtime"
	googMode  = "goog-reserved-posix-mode"
	googUID   = "goog-reserved-posix-uid"
	googGID   = "goog-reserved-posix-gid"
)

// foreign are names of metadata that one program alone uses.
var foreign = []string{azcopyMode, BlobLink, gcsfuseMtime, GcsfuseTarget, GoogLink, googMtime, googMode, googUID, googGID}

// take reads the first of some metadata that can be read, and takes away all that can.
func take[V any](left map[string]string, read func(string) (V, bool), names ...string) (v V, found bool) {
	for _, name := range names {
		value, ok := read(left[name])
		if !ok {
			continue
		}
		if !found {
			v, found = value, true
		}
		delete(left, name)
	}
	return v, found
}

func isTrue(s string) (yes, ok bool) { return true, s == "true" }

// readAzCopy takes AzCopy's words.
func (m *meta) readAzCopy(left map[string]string) {
	mode, ok := take(left, parseStat, azcopyMode)
	if !ok {
		return
	}
	m.readMode(mode)
	m.readOwner(left, azcopyUID, azcopyGID)
	if nanos, err := strconv.ParseInt(left[azcopyMtime], 10, 64); err == nil {
		m.attr.Valid |= providers.AttrModTime
		m.attr.ModTime = time.Unix(0, nanos)
		delete(left, azcopyMtime)
	}
}

// parseStat reads a mode as stat(2) has it.
func parseStat(s string) (uint32, bool) {
	n, err := strconv.ParseUint(s, 10, 16)
	kind := n & typeMask
	return uint32(n), err == nil && (kind == typeFile || kind == typeDir || kind == typeLink)
}

// parseDate reads a date as RFC 3339 has it, with a fraction of any length.
func parseDate(s string) (time.Time, bool) {
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return time.Time{}, false
	}
	return time.Unix(t.Unix(), int64(t.Nanosecond())), true
}

// repeats reports whether metadata say an attribute in another program's words. A working copy
// may have such from an earlier wsmount, which took them for a user's metadata.
func repeats(name, value string) bool {
	if _, isDate := parseDate(value); name == metaMtime && isDate {
		return true
	}
	return slices.Contains(foreign, name) && len(decodeMeta(map[string]string{name: value}).user) == 0
}

// mtime writes a time. Dates have years of four digits.
func (w Words) mtime(t time.Time, raw map[string]string) {
	raw[metaMtime] = formatTime(t)
	if year := t.UTC().Year(); w.Dates && 0 <= year && year <= 9999 {
		raw[metaMtime] = t.UTC().Format(time.RFC3339Nano)
	}
	if w.Google {
		raw[googMtime] = strconv.FormatInt(t.Unix(), 10)
	}
}

// tellTarget adds to the metadata of a link the target, which is its content, where programs look
// for it in the metadata. They read it without decoding, so a target is added only if its
// characters need no encoding.
func (p *Provider) tellTarget(ctx context.Context, c content, m meta) (content, meta, error) {
	if p.service.Words.Target == "" || m.kind != providers.KindSymlink || c.Size > int64(p.service.Metadata) {
		return c, m, nil
	}
	var text bytes.Buffer
	if _, err := c.CopyTo(ctx, &text); err != nil {
		return c, m, err
	}
	if target := text.String(); encodeValue(target) == target {
		m.target, m.targetBy, m.inContent = target, p.service.Words.Target, true
	}
	return bytesBody(text.Bytes()), m, nil
}
