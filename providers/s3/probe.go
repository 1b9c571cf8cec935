package s3

import (
	"context"
	"crypto/md5"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/internal/bucket"
)

// Probe is the tested behaviour of a service. A condition is honoured when a request is refused
// that must be for it.
type Probe struct {
	Done bool // false: the provider was opened for reading, and refuses changes
	MD5  bool // ETags of objects put whole are MD5s

	bucket.Honours
}

// missing names the conditions that safe writing needs and the service does not honour.
func (b Probe) missing() []string {
	var missing []string
	for _, c := range []struct {
		name     string
		honoured bool
	}{{"PUT with If-None-Match", b.Create}, {"PUT with If-Match", b.Replace}, {"CompleteMultipartUpload with If-Match", b.Complete}} {
		if !c.honoured {
			missing = append(missing, c.name)
		}
	}
	return missing
}

const probeContent = "wsmount looks which conditions this service honours\n"

// wrong is a condition that never holds.
var wrong = providers.IfVersion(providers.Version{ETag: "00000000000000000000000000000000"})

// Honours implements bucket.Store. It tries with scratch keys, which it removes. Each step
// is one round trip of requests that do not wait for each other.
func (s *store) Honours(ctx context.Context, _ bucket.Listing) (bucket.Honours, error) {
	s.probe.Encodes = s.encodes.Load() // whether the listing of own keys was encoded
	err := s.tryAll(ctx)
	return s.probe.Honours, err
}

func (s *store) tryAll(ctx context.Context) error {
	t := &trial{s: s, key: s.config.Prefix + bucket.Scratch + rand.Text()}
	defer t.clean(context.WithoutCancel(ctx))
	if err := t.prepare(ctx); err != nil {
		return err
	}
	if err := bucket.Together(
		t.honoured(ctx, &s.probe.Create, func(ctx context.Context) error { return t.put(ctx, t.key, nil, aws.String("*")) }),
		t.honoured(ctx, &s.probe.Replace, func(ctx context.Context) error { return t.put(ctx, t.key, quote(wrong.Version.ETag), nil) }),
		t.honoured(ctx, &s.probe.Complete, t.complete),
		t.honoured(ctx, &s.probe.Copy, t.copy),
		t.honoured(ctx, &s.probe.Delete, func(ctx context.Context) error { return t.remove(ctx, t.third()) }),
		func() error { return t.beside(ctx) },
		t.honoured(ctx, &t.absent, func(ctx context.Context) error { return t.remove(ctx, t.key+"-4") }),
	); err != nil {
		return err
	}
	s.probe.Done, s.probe.MD5, s.probe.Hides = true, t.md5, t.hides
	s.probe.Delete = s.probe.Delete && t.absent
	missing := s.probe.missing()
	if len(missing) > 0 && !s.config.unsafe {
		return fmt.Errorf("the service does not honour %s (allow_unsafe_writes takes the risk): %w",
			strings.Join(missing, ", "), providers.ErrUnsupported)
	}
	if len(missing) > 0 {
		s.log.WarnContext(ctx, "a change by another writer may be overwritten", "bucket", s.config.Bucket, "not honoured", missing)
	}
	return nil
}

// trial has the scratch keys of one probe. The second has a key below it, and the third is for
// the deletion, which may succeed and must not disturb the others.
type trial struct {
	s   *store
	key string
	// absent: a DELETE with If-Match of a key that is not there is refused. A service that
	// reports a success checks first and then acts, and reports one also when another writer
	// was quicker.
	absent bool
	md5    bool // ETags are MD5s

	uploading bucket.Upload
	part      bucket.Part

	refusesBelow bool // nothing can be below a file
	hides        bool
}

func (t *trial) second() string { return t.key + "-2" }
func (t *trial) third() string  { return t.key + "-3" }
func (t *trial) under() string  { return t.second() + "/x" }

// below puts a key below another; a service whose store is a file system may
// refuse one of the two.
func (t *trial) below(ctx context.Context) error {
	err := t.put(ctx, t.second(), nil, nil)
	if err == nil {
		err = t.put(ctx, t.under(), nil, nil)
		t.refusesBelow = errors.Is(err, providers.ErrNotDir)
	}
	if t.refusesBelow {
		return nil
	}
	return err
}

// beside finds out whether a listing has both.
func (t *trial) beside(ctx context.Context) error {
	if t.refusesBelow {
		return nil
	}
	answer, err := t.s.List(ctx, bucket.Query{Prefix: t.second(), Grouped: true})
	t.hides = err == nil && len(answer.Items) < 2
	return err
}

// prepare makes the keys and the upload.
func (t *trial) prepare(ctx context.Context) error {
	return bucket.Together(
		func() error { return t.put(ctx, t.key, nil, nil) },
		func() error { return t.put(ctx, t.third(), nil, nil) },
		func() error { return t.upload(ctx) },
		func() error { return t.below(ctx) },
	)
}

func (t *trial) put(ctx context.Context, key string, ifMatch, ifNoneMatch *string) error {
	out, err := call(ctx, t.s, t.s.client.PutObject, &s3.PutObjectInput{
		Bucket: &t.s.config.Bucket, Key: &key, Body: strings.NewReader(probeContent), IfMatch: ifMatch, IfNoneMatch: ifNoneMatch,
	}, nil)
	if err == nil && key == t.third() {
		sum := md5.Sum([]byte(probeContent))
		t.md5 = unquote(out.ETag) == hex.EncodeToString(sum[:])
	}
	return err
}

func (t *trial) upload(ctx context.Context) error {
	id, err := t.s.Begin(ctx, t.key, bucket.Making{})
	if err != nil {
		return err
	}
	t.uploading = bucket.Upload{Key: t.key, ID: id}
	t.part, err = t.s.Part(ctx, t.uploading, 1, bucket.NewOutgoing(ctx, providers.String(probeContent)))
	t.part.N = 1
	return err
}

func (t *trial) complete(ctx context.Context) error {
	_, err := t.s.Complete(ctx, t.uploading, []bucket.Part{t.part}, bucket.Making{If: wrong})
	return err
}

func (t *trial) copy(ctx context.Context) error {
	_, err := call(ctx, t.s, t.s.client.CopyObject, &s3.CopyObjectInput{
		Bucket: &t.s.config.Bucket, Key: &t.key, CopySource: t.s.sourceOf(t.key), IfNoneMatch: aws.String("*"),
		Metadata: map[string]string{"probe": "copy"}, MetadataDirective: types.MetadataDirectiveReplace,
	}, nil)
	return err
}

func (t *trial) remove(ctx context.Context, key string) error {
	err := t.s.Delete(ctx, key, wrong)
	if key != t.third() && errors.Is(err, providers.ErrNotExist) {
		return &bucket.Fault{Kind: providers.ErrConflict, Code: "PreconditionFailed", Err: err} // a refusal as well
	}
	return err
}

// honoured notes whether a request was refused for its condition. One that the service accepts,
// or does not know, is not honoured; any other error proves nothing and ends the probe.
func (t *trial) honoured(ctx context.Context, result *bool, request func(context.Context) error) func() error {
	return func() error {
		err := request(ctx)
		*result = isStatus(err, http.StatusPreconditionFailed) || bucket.IsCode(err, "PreconditionFailed")
		unknown := errors.Is(err, providers.ErrUnsupported) || errors.Is(err, providers.ErrInvalid) || errors.Is(err, providers.ErrConflict)
		if err == nil || unknown {
			return nil
		}
		return err
	}
}

// clean removes the scratch keys. A later Open sweeps those that stay.
func (t *trial) clean(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	always := providers.Unconditional()
	err := bucket.Together(
		func() error { return t.s.Delete(ctx, t.key, always) },
		func() error {
			if !t.refusesBelow {
				return t.s.Delete(ctx, t.under(), always)
			}
			return nil
		},
		func() error { return t.s.Delete(ctx, t.second(), always) },
		func() error { return t.s.Delete(ctx, t.third(), always) },
		func() error {
			if t.uploading.ID == "" || !t.s.probe.Complete && t.s.probe.Done {
				return nil
			}
			return t.s.Abort(ctx, t.uploading)
		},
	)
	if err != nil {
		t.s.log.DebugContext(ctx, "scratch keys stay", "error", err)
	}
}
