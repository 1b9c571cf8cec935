package s3

import (
	"context"
	"errors"
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/wsmount/wsmount/providers"
)

// An object's tags come with no other answer: what does come, to those who may read tags,
// is how many there are. So they are asked for where there are some; for a GET, which may
// be one of many of the same object, what was told last is good enough.

// tags are those of objects that were asked for.
type tags struct {
	log *slog.Logger

	mu    sync.Mutex          // guards what follows
	known map[tagsOf]string   // at most maxKnownTags
	told  map[string]struct{} // what was logged
}

// tagsOf is a state of an object. Tags may change without another.
type tagsOf struct{ key, etag string }

// maxKnownTags bounds what is remembered.
const maxKnownTags = 4096

func newTags(log *slog.Logger) *tags {
	return &tags{log: log, known: map[tagsOf]string{}, told: map[string]struct{}{}}
}

// of are the tags of an object as they were told last, or are told now.
func (t *tags) of(ctx context.Context, s *store, key, etag string, count int32) (string, error) {
	t.mu.Lock()
	all, ok := t.known[tagsOf{key, etag}]
	t.mu.Unlock()
	if ok && count > 0 {
		return all, nil
	}
	return t.ask(ctx, s, key, etag, count)
}

// ask asks for the tags of an object that has so many. Where they may not be read there
// are none.
func (t *tags) ask(ctx context.Context, s *store, key, etag string, count int32) (string, error) {
	if count <= 0 {
		return "", nil
	}
	out, err := call(ctx, s, s.client.GetObjectTagging, &s3.GetObjectTaggingInput{Bucket: &s.config.Bucket, Key: &key}, nil)
	if errors.Is(err, providers.ErrPermission) || errors.Is(err, providers.ErrUnsupported) {
		t.tell("tags cannot be read (s3:GetObjectTagging): a file that is written anew loses them", key, err)
		return "", nil
	}
	if err != nil {
		return "", err
	}
	all := query(out.TagSet)
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.known) >= maxKnownTags {
		clear(t.known)
	}
	t.known[tagsOf{key, etag}] = all
	return all, nil
}

// query are tags as a request has them, but for those that others may not set, and one
// that says what was found in these bytes.
func query(set []types.Tag) string {
	var all []string
	for _, one := range set {
		name := aws.ToString(one.Key)
		if strings.HasPrefix(name, "aws:") || name == "GuardDutyMalwareScanStatus" {
			continue
		}
		all = append(all, escape(name)+"="+escape(aws.ToString(one.Value)))
	}
	slices.Sort(all)
	return strings.Join(all, "&")
}

func escape(s string) string { return strings.ReplaceAll(url.QueryEscape(s), "+", "%20") }

// tell logs something that a person should know, once.
func (t *tags) tell(what, key string, err error) {
	t.mu.Lock()
	_, told := t.told[what]
	t.told[what] = struct{}{}
	t.mu.Unlock()
	if !told {
		t.log.Warn(what, "key", key, "err", err)
	}
}

// tagged sends a request with tags, and without them where those may not be set: the
// content counts for more.
func tagged[O any](t *tags, asked **string, again func() bool, send func() (O, error)) (O, error) {
	out, err := send()
	if *asked == nil || !errors.Is(err, providers.ErrPermission) || !again() {
		return out, err
	}
	*asked = nil
	out, without := send()
	if without != nil {
		return out, err
	}
	t.tell("tags cannot be set (s3:PutObjectTagging): a file that is written anew loses them", "", err)
	return out, nil
}

// sameAgain is for a request that can be sent again as it is.
func sameAgain() bool { return true }

// classToKeep is the storage class that new content goes to, with the object: none where
// it would go anyway, or could not be read at once.
func classToKeep(c types.StorageClass) string {
	switch c {
	case types.StorageClassStandard, types.StorageClassGlacier, types.StorageClassDeepArchive:
		return ""
	}
	return string(c)
}
