package bucket

import (
	"bytes"
	"cmp"
	"context"
	"crypto/md5"
	"encoding/hex"
	"errors"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/providertest"
)

// fake is a bucket in memory: keys are any strings, a file may be beside a directory,
// and all conditions are honoured, unless careless.
type fake struct {
	careless bool  // honours no condition
	tokens   bool  // begins no listing behind a key
	from     bool  // begins one at a key, and goes on by tokens
	deaf     bool  // begins one at the first key, whatever is asked
	hides    bool  // lists no directory beside a file
	mixes    bool  // lists keys backwards
	tells    bool  // listings have metadata
	markers  bool  // and that of markers with their groups
	patches  bool  // changes metadata without a copy
	most     int64 // takes no more in one piece; 0: a lot
	partMost int64 // nor in a part

	mu      sync.Mutex // guards all below
	objects map[string]*fakeObject
	uploads map[string]*fakeUpload
	next    int
}

type fakeObject struct {
	Object
	content []byte
}

type fakeUpload struct {
	key   string
	begun time.Time
	parts map[int]Part
	sent  map[int][]byte
}

func newFake() *fake {
	return &fake{objects: map[string]*fakeObject{}, uploads: map[string]*fakeUpload{}}
}

func (f *fake) put(key, content string, metadata map[string]string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.keep(key, []byte(content), Making{Metadata: metadata}, "")
}

func (f *fake) keys() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Sorted(maps.Keys(f.objects))
}

// keep makes an object. What the service says of it then has neither key nor time.
func (f *fake) keep(key string, content []byte, m Making, parts string) Object {
	sum := md5.Sum(content)
	digest := hex.EncodeToString(sum[:])
	o := &fakeObject{content: content, Object: Object{Key: key, Size: int64(len(content)), ETag: digest + parts, Modified: time.Now().Truncate(time.Second), Metadata: m.Metadata, Headers: m.Headers}}
	if parts == "" {
		o.MD5 = digest
	}
	f.objects[key] = o
	return Object{ETag: o.ETag, MD5: o.MD5, Answered: time.Now()}
}

// make makes an object on a condition.
func (f *fake) make(key string, content []byte, m Making, parts string) (Object, error) {
	if err := f.check(key, m.If); err != nil {
		return Object{}, err
	}
	return f.keep(key, content, m, parts), nil
}

// check is the conditions.
func (f *fake) check(key string, c providers.Condition) error {
	o := f.objects[key]
	switch {
	case f.careless:
	case c.Kind == providers.ConditionVersion && o == nil:
		return &Fault{Kind: providers.ErrNotExist}
	case c.Kind == providers.ConditionVersion && o.ETag != c.Version.ETag, c.Kind == providers.ConditionAbsent && o != nil:
		return &Fault{Kind: providers.ErrConflict}
	}
	return nil
}

func (f *fake) find(key, etag string) (*fakeObject, error) {
	o := f.objects[key]
	switch {
	case o == nil:
		return &fakeObject{}, &Fault{Kind: providers.ErrNotExist}
	case etag != "" && etag != o.ETag:
		return &fakeObject{}, &Fault{Kind: providers.ErrConflict}
	}
	return o, nil
}

// client is the Store of one provider, which counts what it asks for.
type client struct {
	f      *fake
	before func(op, key string) error      // of many requests at a time; nil: all get there
	stuck  func(ctx context.Context) error // nil: all are answered

	mu    sync.Mutex // guards asked
	asked map[string]int64
}

var _ Store = (*client)(nil)

// ask counts a request, and has it answered if it gets to the fake, which is locked meanwhile.
func ask[V any](ctx context.Context, c *client, op, key string, answer func() (V, error)) (none V, err error) {
	c.mu.Lock()
	c.asked[op]++
	c.mu.Unlock()
	if c.before != nil {
		err = c.before(op, key)
	}
	if err == nil && c.stuck != nil {
		return none, c.stuck(ctx)
	}
	if err = cmp.Or(err, ctx.Err()); err != nil {
		return none, err
	}
	c.f.mu.Lock()
	defer c.f.mu.Unlock()
	return answer()
}

func (c *client) counts() map[string]int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.asked)
}

func (c *client) Honours(context.Context, Listing) (Honours, error) {
	yes := !c.f.careless
	return Honours{Create: yes, Replace: yes, Complete: yes, Copy: yes, Delete: yes, Encodes: true, Hides: c.f.hides}, nil
}

func (c *client) Head(ctx context.Context, key string) (Object, error) {
	return ask(ctx, c, "Head", key, func() (Object, error) { o, err := c.f.find(key, ""); return o.Object, err })
}

func (c *client) Get(ctx context.Context, key string, want Range) (Object, io.ReadCloser, error) {
	o, err := ask(ctx, c, "Get", key, func() (fakeObject, error) { o, err := c.f.find(key, want.ETag); return *o, err })
	switch {
	case err != nil:
		return Object{}, nil, err
	case want.Offset > 0 && want.Offset >= o.Size:
		return Object{}, nil, &Fault{Kind: providers.ErrInvalid, Doubt: RangeBeyond}
	}
	content := o.content[want.Offset:]
	if want.Length > 0 {
		content = content[:min(want.Length, int64(len(content)))]
	}
	return o.Object, io.NopCloser(bytes.NewReader(content)), nil
}

func (c *client) Past(context.Context, string, providers.Version) (string, error) {
	return "", &Fault{Kind: providers.ErrUnsupported}
}

func (c *client) Put(ctx context.Context, key string, body *Outgoing, m Making) (Object, error) {
	content, err := io.ReadAll(body.Reader())
	if err != nil {
		return Object{}, err
	}
	return ask(ctx, c, "Put", key, func() (Object, error) { return c.f.make(key, content, m, "") })
}

func (c *client) Copy(ctx context.Context, from Object, key string, m Making) (Object, error) {
	return ask(ctx, c, "Copy", key, func() (Object, error) {
		source, err := c.f.find(from.Key, from.ETag)
		if err != nil {
			return Object{}, err
		}
		return c.f.make(key, source.content, m, "")
	})
}

func (c *client) Delete(ctx context.Context, key string, when providers.Condition) error {
	_, err := ask(ctx, c, "Delete", key, func() (any, error) {
		err := c.f.check(key, when)
		if err == nil {
			delete(c.f.objects, key)
		}
		return nil, err
	})
	return err
}

func (c *client) Begin(ctx context.Context, key string, _ Making) (string, error) {
	return ask(ctx, c, "Begin", key, func() (string, error) {
		c.f.next++
		id := strconv.Itoa(c.f.next)
		c.f.uploads[id] = &fakeUpload{key: key, begun: time.Now(), parts: map[int]Part{}, sent: map[int][]byte{}}
		return id, nil
	})
}

func (c *client) Part(ctx context.Context, u Upload, n int, body *Outgoing) (Part, error) {
	content, err := io.ReadAll(body.Reader())
	if err != nil {
		return Part{}, err
	}
	return ask(ctx, c, "Part", u.Key, func() (Part, error) { return c.f.part(u, n, content) })
}

func (f *fake) part(u Upload, n int, content []byte) (Part, error) {
	up := f.uploads[u.ID]
	if up == nil {
		return Part{}, &Fault{Kind: providers.ErrNotExist}
	}
	sum := md5.Sum(content)
	up.sent[n] = content
	up.parts[n] = Part{ETag: "part" + strconv.Itoa(n), MD5: hex.EncodeToString(sum[:])}
	return up.parts[n], nil
}

func (c *client) CopyPart(ctx context.Context, u Upload, n int, from Object, offset, size int64) (Part, error) {
	return ask(ctx, c, "CopyPart", u.Key, func() (Part, error) {
		if source := c.f.objects[from.Key]; source != nil && offset+size > source.Size { // which some services look at first
			return Part{}, &Fault{Kind: providers.ErrInvalid, Doubt: RangeBeyond}
		}
		source, err := c.f.find(from.Key, from.ETag)
		if err != nil {
			return Part{}, err
		}
		return c.f.part(u, n, source.content[offset:offset+size])
	})
}

func (c *client) Complete(ctx context.Context, u Upload, parts []Part, m Making) (Object, error) {
	return ask(ctx, c, "Complete", u.Key, func() (Object, error) {
		up := c.f.uploads[u.ID]
		if up == nil {
			return Object{}, &Fault{Kind: providers.ErrConflict}
		}
		var content []byte
		for _, part := range parts {
			content = append(content, up.sent[part.N]...)
		}
		o, err := c.f.make(u.Key, content, m, "-"+strconv.Itoa(len(parts)))
		if err == nil {
			delete(c.f.uploads, u.ID)
		}
		return o, err
	})
}

func (c *client) Abort(ctx context.Context, u Upload) error {
	return assert.ErrOf(ask(ctx, c, "Abort", u.Key, func() (any, error) { delete(c.f.uploads, u.ID); return nil, nil }))
}

func (c *client) AbortBefore(ctx context.Context, prefix string, before time.Time) (count int, err error) {
	return ask(ctx, c, "AbortBefore", prefix, func() (int, error) {
		for id, up := range c.f.uploads {
			if strings.HasPrefix(up.key, prefix) && up.begun.Before(before) {
				delete(c.f.uploads, id)
				count++
			}
		}
		return count, nil
	})
}

func (c *client) List(ctx context.Context, q Query) (Listing, error) {
	return ask(ctx, c, "List", q.Prefix, func() (Listing, error) {
		answer := c.f.list(q)
		answer.Answered = time.Now()
		return answer, nil
	})
}

func (f *fake) list(q Query) (out Listing) {
	limit, after := q.Limit, max(q.After, q.Token)
	if limit == 0 {
		limit = pageMax
	}
	keys := slices.Sorted(maps.Keys(f.objects))
	if f.mixes {
		slices.Reverse(keys)
	}
	group, last := "", ""
	for _, key := range keys {
		rest, ok := strings.CutPrefix(key, q.Prefix)
		passed := key <= after
		if f.from {
			passed = key <= q.Token || key < q.After && !f.deaf
		}
		if f.mixes { // and have no After
			passed = q.Token != "" && key >= q.Token
		}
		if !ok || passed || group != "" && strings.HasPrefix(key, group) {
			continue
		}
		if q.Grouped && strings.HasSuffix(after, "/") && strings.HasPrefix(key, after) && after != q.Prefix {
			continue // the group that the page before ended with
		}
		if len(out.Items) == limit {
			out.More, out.Next = true, last
			break
		}
		if i := strings.Index(rest, "/"); i >= 0 && q.Grouped {
			if f.hides && f.objects[q.Prefix+rest[:i]] != nil {
				continue
			}
			group = q.Prefix + rest[:i+1]
			last = group
			it := Item{Object: Object{Key: group}, IsDir: true}
			if marker := f.objects[group]; marker != nil && f.markers {
				it.Metadata, it.Headers = marker.Metadata, marker.Headers
			}
			out.Items = append(out.Items, it)
			continue
		}
		o := f.objects[key].Object
		last = key
		o.MD5, o.Answered = "", time.Time{}
		if !f.tells {
			o.Metadata, o.Headers = nil, Headers{}
		}
		out.Items = append(out.Items, Item{Object: o})
	}
	return out
}

// service is what the fake is like.
func (f *fake) service() Service {
	s := Service{
		Name: "fake", Tells: f.tells, TellsDirs: f.markers, ListStart: BehindKey, Key: 1 << 10, Metadata: 2 << 10, Put: 1 << 30, Copy: 1 << 30, Size: 1 << 40,
		Parts: providers.PartLimits{Min: 1 << 20, Max: 1 << 30, Count: 1000},
	}
	switch {
	case f.tokens:
		s.ListStart = Nowhere
	case f.from:
		s.ListStart = NearKey
	}
	if f.most > 0 {
		s.Put, s.Copy = f.most, f.most
	}
	if f.partMost > 0 {
		s.Parts.Max = f.partMost
	}
	return s
}

// openFake opens a bucket in memory, below the prefix "pre".
func openFake(t providertest.T, f *fake, o *Options) *Provider {
	t.Helper()
	return assert.Of(openFakeErr(t, &client{f: f}, o)).OK(t, "open")
}

func openFakeErr(t providertest.T, c *client, o *Options) (*Provider, error) {
	c.asked = map[string]int64{}
	if o == nil {
		o = &Options{Prefix: "pre/"}
	}
	o.Service, o.Bucket, o.Now = c.f.service(), "b", time.Now
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	store := Store(c)
	if c.f.patches {
		store = patcher{c}
	}
	p, err := Open(t.Context(), store, *o)
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() { p.Close() })
	return p, nil
}

func requests(p *Provider) map[string]int64 {
	if s, ok := p.store.(patcher); ok {
		return s.counts()
	}
	return p.store.(*client).counts()
}

// listed is all that a listing says, by name, in one page.
func listed(t *testing.T, p *Provider, at string, recursive bool) map[string]providers.Info {
	t.Helper()
	page, err := p.List(t.Context(), loc(at), providers.ListOptions{Recursive: recursive})
	if err != nil || page.Next != "" {
		t.Fatalf("list %q: more %v, %v", at, page.Next != "", err)
	}
	all := map[string]providers.Info{}
	for _, info := range page.Entries {
		all[info.Locator.String()] = info
	}
	return all
}

// spent is what requests a call costs that do not write, as "Head=3 List=1".
func spent(p *Provider, call func()) string {
	<-p.index.loaded
	before := requests(p)
	call()
	var words []string
	for op, n := range requests(p) {
		if op == "Put" {
			continue // it may be a segment
		}
		if n -= before[op]; n > 0 {
			words = append(words, op+"="+strconv.FormatInt(n, 10))
		}
	}
	slices.Sort(words)
	return strings.Join(words, " ")
}

func mustWrite(t *testing.T, p *Provider, name, content string, opts providers.WriteOptions) {
	t.Helper()
	opts.If = providers.Unconditional()
	assert.OK(t, assert.ErrOf(p.Write(t.Context(), loc(name), providers.String(content), opts)))
}

func loc(s string) providers.Locator { return providers.MustLocator(s) }

var errNoRoute = errors.New("no route to host")
