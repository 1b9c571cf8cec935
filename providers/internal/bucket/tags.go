package bucket

import (
	"context"
	"errors"
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/wsmount/wsmount/providers"
)

// Tags has the tags of the objects of a bucket, for a Store. No answer that describes an object
// has them, only their number. So they are asked for where there are some; for a GET, which may
// be one of many of the same object, the last answer is good enough. Where tags may not be read,
// or not be set, content goes without.
type Tags struct {
	ask         func(ctx context.Context, key string) (string, error)
	read, write string // the names of these rights
	log         *slog.Logger

	mu    sync.Mutex          // guards all below
	known map[tagsOf]string   // at most maxKnownTags
	told  map[string]struct{} // the rights that the log has named
}

// tagsOf is a state of an object. Tags may change while that stays the same.
type tagsOf struct{ key, etag string }

// maxKnownTags bounds the objects whose tags are remembered.
const maxKnownTags = 4096

// NewTags asks a service by ask for the tags of an object, as Headers.Tags has them. read and
// write are the rights that reading and setting them needs.
func NewTags(log *slog.Logger, read, write string, ask func(ctx context.Context, key string) (string, error)) *Tags {
	return &Tags{ask: ask, read: read, write: write, log: log, known: map[tagsOf]string{}, told: map[string]struct{}{}}
}

// Known are the tags of an object that has so many, from memory, or else from the service.
func (t *Tags) Known(ctx context.Context, key, etag string, count int64) (string, error) {
	t.mu.Lock()
	all, ok := t.known[tagsOf{key, etag}]
	t.mu.Unlock()
	if ok && count > 0 {
		return all, nil
	}
	return t.Ask(ctx, key, etag, count)
}

// Ask asks for the tags of an object that has so many. Where they may not be read there are
// none.
func (t *Tags) Ask(ctx context.Context, key, etag string, count int64) (string, error) {
	if count <= 0 {
		return "", nil
	}
	all, err := t.ask(ctx, key)
	if Denied(err) {
		t.tell("read", t.read, key, err)
		return "", nil
	}
	if err != nil {
		return "", err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.known) >= maxKnownTags {
		clear(t.known)
	}
	t.known[tagsOf{key, etag}] = all
	return all, nil
}

// Denied reports whether an error means that the credentials, or the service, do not allow it.
func Denied(err error) bool {
	return errors.Is(err, providers.ErrPermission) || errors.Is(err, providers.ErrUnsupported)
}

// tell logs something that a person should know, once.
func (t *Tags) tell(what, right, key string, err error) {
	t.mu.Lock()
	_, told := t.told[right]
	t.told[right] = struct{}{}
	t.mu.Unlock()
	if !told {
		t.log.Warn("tags cannot be "+what+" ("+right+"): a file that is written anew loses them", "key", key, "err", err)
	}
}

// Tagged sends a request with tags, and without them where those may not be set: the content
// counts for more. again makes its body ready for that, and reports whether it could; nil: it
// needs nothing.
func Tagged[O any](t *Tags, tags string, again func() bool, send func(tags string) (O, error)) (O, error) {
	out, err := send(tags)
	if tags == "" || !Denied(err) || again != nil && !again() {
		return out, err
	}
	out, without := send("")
	if without != nil {
		return out, err
	}
	t.tell("set", t.write, "", err)
	return out, nil
}

// FormatTags writes tags as Headers has them, in one order.
func FormatTags(tags map[string]string) string {
	escape := func(s string) string { return strings.ReplaceAll(url.QueryEscape(s), "+", "%20") }
	var all []string
	for name, value := range tags {
		all = append(all, escape(name)+"="+escape(value))
	}
	slices.Sort(all)
	return strings.Join(all, "&")
}

// ParseTags reads the output of FormatTags. nil: there are no tags.
func ParseTags(s string) map[string]string {
	var tags map[string]string
	values, _ := url.ParseQuery(s) // ours, or a service's
	for name, value := range values {
		if tags == nil {
			tags = map[string]string{}
		}
		tags[name] = value[0]
	}
	return tags
}
