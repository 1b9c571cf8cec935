package providers

import (
	"fmt"
	"slices"
	"strings"
)

// Key is the name that a flat backend gives to an entry: any bytes, slashes
// without meaning.
//
// Each Key has exactly one Locator, and two keys never share one. A segment that POSIX allows
// is itself. The others are written after a mark:
//
//	key              locator
//	a/b\c            a/b\c
//	a//b             a/%~/b          an empty segment
//	../x             %~../x
//	a<NUL>b          %~a%00b         inside a marked name: NUL is %00, % is %25
//	%~.              %~%25~.         would otherwise be read as the segment "."
//	%~draft          %~draft         marks nothing, so it is itself
//	300 bytes        %+253 bytes/%~the remaining 47
//
// A name that needs more than 255 bytes continues in the directory below: all parts but the
// last begin with %+ and are exactly 255 bytes long.
//
// The other way round, every Locator has a key that leads back to it, except
// those with a %+ name of exactly 255 bytes that is not written as above.
type Key string

const (
	escapeMark   = "%~" // begins an escaped name, and the last part of a long one
	continueMark = "%+" // begins the other parts of a long name
	bodyMax      = MaxName - len(escapeMark)
)

// escaper and unescape are exact opposites; a marked name holds no other "%".
var escaper = strings.NewReplacer("\x00", "%00", "%", "%25")

// Locator is the one Locator of k. It never is the root.
func (k Key) Locator() Locator {
	var names []string
	for segment := range strings.SplitSeq(string(k), "/") {
		names = append(names, encodeSegment(segment)...)
	}
	return Locator{strings.Join(names, "/")}
}

// Key is the key whose Locator is l. It fails with ErrInvalid for the root and
// for a long name that is incomplete or not in its one right form.
func (l Locator) Key() (Key, error) {
	names := l.Parts()
	if len(names) == 0 {
		return "", fmt.Errorf("the root has none: %w", ErrInvalid)
	}
	var segments []string
	for len(names) > 0 {
		segment, used, ok := decodeSegment(names)
		if !ok {
			return "", fmt.Errorf("%q is no key's name: %w", l.key, ErrInvalid)
		}
		segments = append(segments, segment)
		names = names[used:]
	}
	return Key(strings.Join(segments, "/")), nil
}

// Prefix is the common prefix of the keys of all entries below the directory l: "" for the
// root. Keys with that prefix may lie elsewhere when l ends inside a long name; compare with
// Contains.
func (l Locator) Prefix() (Key, error) {
	names := l.Parts()
	open := len(names)
	for open > 0 && isContinuation(names[open-1]) {
		open--
	}
	var prefix Key
	if open > 0 {
		key, err := Locator{strings.Join(names[:open], "/")}.Key()
		if err != nil {
			return "", err
		}
		prefix = key + "/"
	}
	return prefix + Key(unescapeStart(joinBodies(names[open:]))), nil
}

// encodeSegment gives the names, usually one, that encode a segment.
func encodeSegment(s string) []string {
	if !needsEscape(s) {
		return []string{s}
	}
	body := escaper.Replace(s)
	var names []string
	for len(body) > bodyMax {
		names = append(names, continueMark+body[:bodyMax])
		body = body[bodyMax:]
	}
	return append(names, escapeMark+body)
}

// decodeSegment decodes the segment at the start of names, and returns how many it used.
func decodeSegment(names []string) (segment string, used int, ok bool) {
	if !isContinuation(names[0]) {
		return decodeName(names[0]), 1, true
	}
	used = slices.IndexFunc(names, func(n string) bool { return !isContinuation(n) }) + 1
	if used == 0 || !strings.HasPrefix(names[used-1], escapeMark) {
		return "", 0, false
	}
	segment, ok = unescape(joinBodies(names[:used]))
	ok = ok && slices.Equal(encodeSegment(segment), names[:used])
	return segment, used, ok
}

// decodeName is the segment of a single name. A marked name whose content needs no mark, or
// cannot be unescaped, is itself.
func decodeName(name string) string {
	body, marked := strings.CutPrefix(name, escapeMark)
	if !marked {
		return name
	}
	if segment, ok := unescape(body); ok && needsEscape(segment) {
		return segment
	}
	return name
}

// needsEscape reports whether POSIX refuses s as a name, or s would be read back as another
// segment. The recursion ends: decodeName checks a shorter text.
func needsEscape(s string) bool {
	return s == "" || s == "." || s == ".." || len(s) > MaxName ||
		strings.IndexByte(s, 0) >= 0 || isContinuation(s) || decodeName(s) != s
}

func isContinuation(name string) bool {
	return len(name) == MaxName && strings.HasPrefix(name, continueMark)
}

// joinBodies is the escaped text of all parts of a long name.
func joinBodies(names []string) string {
	var b strings.Builder
	for _, name := range names {
		b.WriteString(name[len(escapeMark):])
	}
	return b.String()
}

// unescape fails on a "%" that escaper does not write.
func unescape(body string) (string, bool) {
	s := unescapeStart(body)
	return s, escaper.Replace(s) == body
}

// unescapeStart is unescape up to the first "%" that is broken or cut off.
func unescapeStart(body string) string {
	var b strings.Builder
	for {
		plain, rest, found := strings.Cut(body, "%")
		b.WriteString(plain)
		switch {
		case !found:
			return b.String()
		case strings.HasPrefix(rest, "00"):
			b.WriteByte(0)
		case strings.HasPrefix(rest, "25"):
			b.WriteByte('%')
		default:
			return b.String()
		}
		body = rest[2:]
	}
}
