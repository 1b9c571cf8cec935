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
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/wsmount/wsmount/providers"
)

// Probe is what a service was found to do. A condition is honoured when a
// request that must be refused for it is.
type Probe struct {
	Done bool // false: the provider was opened for reading, and refuses changes

	Create   bool // PUT with If-None-Match
	Replace  bool // PUT with If-Match
	Complete bool // CompleteMultipartUpload with If-Match
	Copy     bool // CopyObject with If-None-Match on the target
	Delete   bool // DELETE with If-Match, also of what is not there
	MD5      bool // ETags of what was put whole are MD5s

	// Encodes: listings carry every name (encoding-type url); XML does not.
	Encodes bool
	// Hides: where a file is beside a directory of its name, a listing has the
	// file alone (MinIO). What would hide a directory then asks first.
	Hides bool
}

// Probe is the result, for those who explain a service.
func (p *Provider) Probe() Probe { return p.probe }

// guard is atomic when the service decides, else we look before we act.
func guard(honoured bool) providers.Guard {
	if honoured {
		return providers.GuardAtomic
	}
	return providers.GuardChecked
}

// guards says how a condition of a Write holds.
func (b Probe) guards(c providers.Condition) providers.Guard {
	switch c.Kind {
	case providers.ConditionAbsent:
		return guard(b.Create)
	case providers.ConditionVersion:
		return guard(b.Replace)
	}
	return providers.GuardAtomic // nothing to hold
}

// conditions are what Capabilities say. Nothing is promised untried.
func (b Probe) conditions() providers.Conditions {
	if !b.Done {
		return providers.Conditions{}
	}
	both := b.Create && b.Replace && (b.Copy || b.Complete)
	return providers.Conditions{
		Create: guard(b.Create), Replace: guard(b.Replace), Delete: guard(b.Delete), Copy: guard(both), SetAttr: guard(both),
	}
}

// missing names what a service must honour to be written to safely.
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

const (
	probeContent = "wsmount looks which conditions this service honours\n"
	probeOld     = time.Hour
	wrongETag    = "00000000000000000000000000000000"
)

// tryAll probes with scratch keys, which it removes. Each step is one round
// trip of requests that do not wait for each other.
func (p *Provider) tryAll(ctx context.Context, own listing) error {
	t := &trial{p: p, own: own, key: p.config.prefix + reserved + "/probe-" + rand.Text()}
	defer t.clean(context.WithoutCancel(ctx))
	if err := t.prepare(ctx); err != nil {
		return err
	}
	if err := together(
		t.honoured(ctx, &p.probe.Create, func(ctx context.Context) error { return t.put(ctx, t.key, nil, aws.String("*")) }),
		t.honoured(ctx, &p.probe.Replace, func(ctx context.Context) error { return t.put(ctx, t.key, quote(wrongETag), nil) }),
		t.honoured(ctx, &p.probe.Complete, t.complete),
		t.honoured(ctx, &p.probe.Copy, t.copy),
		t.honoured(ctx, &p.probe.Delete, func(ctx context.Context) error { return t.remove(ctx, t.third()) }),
		func() error { return t.beside(ctx) },
		t.honoured(ctx, &t.absent, func(ctx context.Context) error { return t.remove(ctx, t.key+"-4") }),
	); err != nil {
		return err
	}
	p.probe.Done, p.probe.MD5, p.probe.Hides, p.probe.Encodes = true, t.md5, t.hides, own.encoded
	p.probe.Delete = p.probe.Delete && t.absent
	missing := p.probe.missing()
	if len(missing) > 0 && !p.config.unsafe {
		return fmt.Errorf("the service does not honour %s (allow_unsafe_writes takes the risk): %w",
			strings.Join(missing, ", "), providers.ErrUnsupported)
	}
	if len(missing) > 0 {
		p.log.WarnContext(ctx, "a change by another writer may be overwritten", "bucket", p.config.bucket, "not honoured", missing)
	}
	return nil
}

// together runs functions at the same time and gives the first error of them.
func together(fs ...func() error) error {
	errs := make([]error, len(fs))
	var wg sync.WaitGroup
	for i, f := range fs {
		wg.Go(func() { errs[i] = f() })
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// trial is the scratch keys of one probe. The second has a key below it, and
// the third is for the deletion, which may succeed and must not disturb others.
type trial struct {
	p   *Provider
	key string
	own listing // of what was below wsmount's own name before
	// absent: a DELETE with If-Match of a key that is not there is refused. A
	// service that says it was done looks first and then acts, and says so too
	// when somebody else was quicker.
	absent bool
	md5    bool   // ETags are MD5s
	etag   string // of the upload's part
	id     string // of the upload

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

// beside looks whether a listing has both.
func (t *trial) beside(ctx context.Context) error {
	if t.refusesBelow {
		return nil
	}
	answer, err := t.p.list(ctx, &s3.ListObjectsV2Input{Prefix: aws.String(t.second()), Delimiter: aws.String("/")})
	t.hides = err == nil && len(answer.items) < 2
	return err
}

// prepare makes the keys and the upload, and clears what crashed probes left.
func (t *trial) prepare(ctx context.Context) error {
	return together(
		func() error { return t.put(ctx, t.key, nil, nil) },
		func() error { return t.put(ctx, t.third(), nil, nil) },
		func() error { return t.upload(ctx) },
		func() error { return t.below(ctx) },
		func() error { t.sweep(ctx); return nil },
	)
}

func (t *trial) put(ctx context.Context, key string, ifMatch, ifNoneMatch *string) error {
	out, err := call(ctx, t.p, t.p.client.PutObject, &s3.PutObjectInput{
		Bucket: &t.p.config.bucket, Key: &key, Body: strings.NewReader(probeContent), IfMatch: ifMatch, IfNoneMatch: ifNoneMatch,
	}, nil)
	if err == nil && key == t.third() {
		sum := md5.Sum([]byte(probeContent))
		t.md5 = unquote(out.ETag) == hex.EncodeToString(sum[:])
	}
	return err
}

func (t *trial) upload(ctx context.Context) error {
	u, err := t.p.begin(ctx, t.key, nil, meta{})
	if err != nil {
		return err
	}
	t.id = u.id
	err = u.send(ctx, 1, providers.String(probeContent))
	t.etag = u.parts[1].etag
	return err
}

func (t *trial) complete(ctx context.Context) error {
	_, err := call(ctx, t.p, t.p.client.CompleteMultipartUpload, &s3.CompleteMultipartUploadInput{
		Bucket: &t.p.config.bucket, Key: &t.key, UploadId: &t.id, IfMatch: quote(wrongETag),
		MultipartUpload: &types.CompletedMultipartUpload{Parts: []types.CompletedPart{{PartNumber: aws.Int32(1), ETag: quote(t.etag)}}},
	}, nil)
	return err
}

func (t *trial) copy(ctx context.Context) error {
	_, err := call(ctx, t.p, t.p.client.CopyObject, &s3.CopyObjectInput{
		Bucket: &t.p.config.bucket, Key: &t.key, CopySource: t.p.sourceOf(t.key), IfNoneMatch: aws.String("*"),
		Metadata: map[string]string{"probe": "copy"}, MetadataDirective: types.MetadataDirectiveReplace,
	}, nil)
	return err
}

func (t *trial) remove(ctx context.Context, key string) error {
	_, err := call(ctx, t.p, t.p.client.DeleteObject, &s3.DeleteObjectInput{Bucket: &t.p.config.bucket, Key: &key, IfMatch: quote(wrongETag)}, nil)
	if key != t.third() && errors.Is(err, providers.ErrNotExist) {
		return &fault{kind: providers.ErrConflict, code: "PreconditionFailed", err: err} // as good a refusal
	}
	return err
}

// honoured notes whether a request was refused for its condition. One that the
// service takes, or does not know, is not honoured; what else goes wrong says
// nothing and ends the probe.
func (t *trial) honoured(ctx context.Context, result *bool, request func(context.Context) error) func() error {
	return func() error {
		err := request(ctx)
		*result = isStatus(err, http.StatusPreconditionFailed) || isCode(err, "PreconditionFailed")
		unknown := errors.Is(err, providers.ErrUnsupported) || errors.Is(err, providers.ErrInvalid) || errors.Is(err, providers.ErrConflict)
		if err == nil || unknown {
			return nil
		}
		return err
	}
}

// clean removes the scratch keys. What stays, a later probe sweeps.
func (t *trial) clean(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	err := together(
		func() error { return t.p.remove(ctx, t.key, "") },
		func() error {
			if !t.refusesBelow {
				return t.p.remove(ctx, t.under(), "")
			}
			return nil
		},
		func() error { return t.p.remove(ctx, t.second(), "") },
		func() error { return t.p.remove(ctx, t.third(), "") },
		func() error {
			if t.id == "" || !t.p.probe.Complete && t.p.probe.Done {
				return nil
			}
			return t.p.abortUpload(ctx, t.key, t.id)
		},
	)
	if err != nil {
		t.p.log.DebugContext(ctx, "scratch keys stay", "error", err)
	}
}

// sweep removes what is left of probes that ended before they were done.
func (t *trial) sweep(ctx context.Context) {
	var err error
	for _, it := range t.own.items {
		if !strings.HasPrefix(it.key, t.p.config.prefix+reserved+"/probe-") {
			continue
		}
		if !it.modified.IsZero() && it.modified.Before(t.p.now().Add(-probeOld)) {
			err = errors.Join(err, t.p.remove(ctx, it.key, ""))
		}
	}
	if err != nil {
		t.p.log.DebugContext(ctx, "scratch keys of others stay", "error", err)
	}
}
