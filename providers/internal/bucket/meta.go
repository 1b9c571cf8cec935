package bucket

import (
	"encoding/base64"
	"fmt"
	"maps"
	"mime"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/wsmount/wsmount/providers"
)

// Names of metadata that have a meaning for this package.
const (
	metaMode  = "mode"
	metaUID   = "uid"
	metaGID   = "gid"
	metaMtime = "mtime"
	metaXattr = "xattr"
	metaOp    = "wsmount-op"
)

var metaNames = []string{metaMode, metaUID, metaGID, metaMtime, metaXattr, metaOp, metaTarget}

// The file types of a mode, as POSIX systems number them.
const (
	typeMask = 0o170000
	typeFile = 0o100000
	typeDir  = 0o040000
	typeLink = 0o120000
)

var kindTypes = map[providers.Kind]uint32{
	providers.KindUnknown: typeFile, providers.KindFile: typeFile, providers.KindDir: typeDir, providers.KindSymlink: typeLink,
}

// attributes are those that metadata can hold.
const attributes = providers.AttrMode | providers.AttrOwner | providers.AttrModTime | providers.AttrXattrs

// meta is the meaning of an object's metadata.
type meta struct {
	kind providers.Kind // KindSymlink, or KindFile when they say nothing
	attr providers.Attr
	user map[string]string
	op   string

	// The target of a link, the name of the metadata that holds it, and whether the content is
	// the target, whatever the metadata says.
	target, targetBy string
	inContent        bool
}

// apart is the target of a link if it is not the content, else "".
func (m meta) apart() string {
	if m.inContent {
		return ""
	}
	return m.target
}

// decodeMeta reads the metadata of this package and of other programs, see words.go. Values that
// it cannot read stay in the user's metadata, so that nothing gets lost.
func decodeMeta(raw map[string]string) meta {
	m := meta{kind: providers.KindFile}
	left := map[string]string{}
	for key, value := range raw {
		left[strings.ToLower(key)] = value
	}
	m.readAzCopy(left)
	if mode, ok := take(left, parseMode, metaMode, googMode); ok {
		m.readMode(mode)
	}
	m.readOwner(left, googUID, googGID)
	m.readOwner(left, metaUID, metaGID)
	_, byGcsfuse := left[gcsfuseMtime]
	if t, ok := take(left, parseTime, gcsfuseMtime, metaMtime, googMtime); ok {
		m.attr.Valid |= providers.AttrModTime
		m.attr.ModTime = t
	}
	if all, ok := take(left, decodeXattrs, metaXattr); ok {
		m.attr.Valid |= providers.AttrXattrs
		m.attr.Xattrs = all
	}
	m.readLink(left)
	if !byGcsfuse { // else the content is gcsfuse's, the metadata another program's
		m.op = decodeValue(left[metaOp])
	}
	delete(left, metaOp)
	for key, value := range left {
		left[key] = decodeValue(value)
	}
	if len(left) > 0 {
		m.user = left
	}
	return m
}

func (m *meta) readMode(mode uint32) {
	m.attr.Valid |= providers.AttrMode
	m.attr.Mode = mode & 0o7777
	if mode&typeMask == typeLink {
		m.kind = providers.KindSymlink
	}
}

// readOwner takes both ids or none: half an owner is none.
func (m *meta) readOwner(left map[string]string, uidName, gidName string) {
	uid, uidErr := strconv.ParseUint(left[uidName], 10, 32)
	gid, gidErr := strconv.ParseUint(left[gidName], 10, 32)
	if uidErr != nil || gidErr != nil {
		return
	}
	m.attr.Valid |= providers.AttrOwner
	m.attr.UID, m.attr.GID = uint32(uid), uint32(gid)
	delete(left, uidName)
	delete(left, gidName)
}

// readLink finds out whether the object is a link whose mode does not say so.
func (m *meta) readLink(left map[string]string) {
	_, m.inContent = take(left, isTrue, BlobLink, GoogLink)
	for _, by := range []string{metaTarget, GcsfuseTarget} {
		target := left[by]
		if by == metaTarget {
			target, _ = url.PathUnescape(target) // "" if it is none
		}
		if target != "" && m.target == "" {
			m.target, m.targetBy = target, by
			delete(left, by)
		}
	}
	if m.inContent || m.target != "" {
		m.kind = providers.KindSymlink
	}
}

// parseMode tells s3fs's decimal modes from rclone's octal ones. Both have
// type bits, and no number is a type that exists in both readings. Without
// type bits it is octal, which is how people write a mode.
func parseMode(s string) (uint32, bool) {
	for _, base := range []int{10, 8} {
		if n, err := strconv.ParseUint(s, base, 32); err == nil && n <= 0o177777 {
			switch n & typeMask {
			case typeFile, typeDir, typeLink, 0o010000, 0o020000, 0o060000, 0o140000:
				return uint32(n), true
			}
		}
	}
	n, err := strconv.ParseUint(s, 8, 32)
	return uint32(n), err == nil && n <= 0o7777
}

// parseTime reads seconds with a fraction of any length, or a date.
func parseTime(s string) (time.Time, bool) {
	if t, ok := parseDate(s); ok {
		return t, true
	}
	whole, fraction, _ := strings.Cut(s, ".")
	seconds, err := strconv.ParseInt(whole, 10, 64)
	if err != nil || len(fraction) > 0 && strings.Trim(fraction, "0123456789") != "" {
		return time.Time{}, false
	}
	nanos, _ := strconv.ParseInt((fraction + "000000000")[:9], 10, 64)
	return time.Unix(seconds, nanos), true
}

func formatTime(t time.Time) string {
	if t.Nanosecond() == 0 {
		return strconv.FormatInt(t.Unix(), 10)
	}
	return fmt.Sprintf("%d.%09d", t.Unix(), t.Nanosecond())
}

// encode makes the metadata for a service.
func (m meta) encode(s Service) (map[string]string, error) {
	raw := map[string]string{}
	for key, value := range m.user {
		if isHeader(key) || repeats(key, value) {
			continue // headers are no metadata to the service
		}
		if !validName(key) {
			return nil, fmt.Errorf("metadata name %q: %w", key, providers.ErrInvalid)
		}
		raw[key] = encodeValue(value)
	}
	if read := decodeMeta(raw); len(read.user) < len(raw) { // some would be read as ours
		return nil, fmt.Errorf("metadata of the names %s: %w", strings.Join(metaNames, ", "), providers.ErrInvalid)
	}
	m.encodeAttr(s.Words, raw)
	if m.op != "" {
		raw[metaOp] = encodeValue(m.op)
	}
	size := 0
	for key, value := range raw {
		size += len(key) + len(value)
	}
	if m.target != "" {
		target := m.target
		if m.targetBy == metaTarget {
			target = url.PathEscape(target)
		}
		// A target that the content has as well is left out where there is no room.
		if whole := size + len(m.targetBy) + len(target); whole <= s.Metadata || !m.inContent {
			raw[m.targetBy], size = target, whole
		}
	}
	if size > s.Metadata {
		return nil, fmt.Errorf("%d bytes of metadata, %d fit: %w", size, s.Metadata, providers.ErrTooLarge)
	}
	return raw, nil
}

func (m meta) encodeAttr(w Words, raw map[string]string) {
	isLink := m.kind == providers.KindSymlink && m.apart() == ""
	if isLink && w.Link != "" {
		raw[w.Link] = "true"
	}
	hasMode, mode := m.attr.Valid.Has(providers.AttrMode), m.attr.Mode&0o7777
	if !hasMode {
		mode = 0o777 // POSIX's mode of a link
	}
	uid, gid := metaUID, metaGID
	switch {
	case w.Google:
		uid, gid = googUID, googGID
		if hasMode {
			raw[googMode] = fmt.Sprintf("%03o", mode)
		}
	case hasMode || isLink:
		raw[metaMode] = strconv.FormatUint(uint64(kindTypes[m.kind]|mode), 10)
	}
	if m.attr.Valid.Has(providers.AttrOwner) {
		raw[uid] = strconv.FormatUint(uint64(m.attr.UID), 10)
		raw[gid] = strconv.FormatUint(uint64(m.attr.GID), 10)
	}
	if m.attr.Valid.Has(providers.AttrModTime) {
		w.mtime(m.attr.ModTime, raw)
	}
	if len(m.attr.Xattrs) > 0 && m.attr.Valid.Has(providers.AttrXattrs) {
		raw[metaXattr] = encodeXattrs(m.attr.Xattrs)
	}
}

// decode reads the metadata and headers of the object of a key.
func decode(key string, raw map[string]string, h Headers) meta {
	m := decodeMeta(raw)
	m.takeHeaders(key, h)
	return m
}

// with is m after a change: attributes that are valid, metadata unless nil.
func (m meta) with(attr providers.Attr, user map[string]string, op string) meta {
	m.attr = m.attr.Merge(attr.Keep(attributes))
	if user != nil {
		m.user = maps.Clone(user)
	}
	m.op = op
	return m
}

// validName reports whether key can be part of a header's name.
func validName(key string) bool {
	return key != "" && strings.Trim(key, "abcdefghijklmnopqrstuvwxyz0123456789-_.") == ""
}

const (
	wordStart = "=?"
	wordEnd   = "?="
)

// encodeValue makes a value that a header can carry: printable ASCII that no service trims, or an
// encoded word.
func encodeValue(s string) string {
	plain := s != "" && s == strings.TrimSpace(s) && !strings.Contains(s, wordStart) && !strings.Contains(s, "  ") &&
		strings.IndexFunc(s, func(c rune) bool { return c < ' ' || c > '~' }) < 0
	if plain {
		return s
	}
	charset := "UTF-8"
	if !utf8.ValidString(s) {
		charset = "x-unknown"
	}
	return wordStart + charset + "?B?" + base64.StdEncoding.EncodeToString([]byte(s)) + wordEnd
}

// decodeValue reads encoded words, several with spaces between too, as AWS
// gives values that others wrote raw.
func decodeValue(s string) string {
	var b strings.Builder
	for word := range strings.FieldsSeq(s) {
		text, ok := decodeWord(word)
		if !ok {
			return s
		}
		b.WriteString(text)
	}
	return b.String()
}

func decodeWord(word string) (string, bool) {
	parts := strings.Split(word, "?")
	if len(parts) != 5 || !strings.HasPrefix(word, wordStart) || !strings.HasSuffix(word, wordEnd) {
		return "", false
	}
	if strings.EqualFold(parts[2], "B") {
		b, err := base64.StdEncoding.DecodeString(parts[3])
		return string(b), err == nil
	}
	text, err := new(mime.WordDecoder).Decode(word)
	return text, err == nil
}
