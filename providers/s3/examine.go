package s3

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/internal/bucket"
)

// Services refuse requests whose time is this far off, and the first is worth
// a word long before.
const (
	skewMax  = 15 * time.Minute
	skewNote = 5 * time.Second
)

// examineSize is what throughput is measured with: a part of a large file.
const examineSize = 8 << 20

// examineClean is how long the scratch key may take to go.
const examineClean = 10 * time.Second

func good(name, format string, args ...any) providers.Finding {
	return providers.Finding{Name: name, Says: fmt.Sprintf(format, args...)}
}

func less(name, do, format string, args ...any) providers.Finding {
	return providers.Finding{Name: name, Grade: providers.Less, Do: do, Says: fmt.Sprintf(format, args...)}
}

func bad(name, do, format string, args ...any) providers.Finding {
	return providers.Finding{Name: name, Grade: providers.Bad, Do: do, Says: fmt.Sprintf(format, args...)}
}

// Examine implements providers.Examiner. That the provider is open says already
// that its bucket answers, and takes the credentials.
func (p *Provider) Examine(ctx context.Context) []providers.Finding { return p.store.examine(ctx) }

func (s *store) examine(ctx context.Context) []providers.Finding {
	out := s.examineAnswer(ctx)
	out = append(out, s.examineRegion(ctx), s.examineVersioning(ctx))
	if !s.probe.Done {
		return append(out, less("writing", "examine it without read-only to try them",
			"not tried, since this is for reading: writing, the conditions of changes, and how fast content goes"))
	}
	return append(append(out, s.probe.findings(s.config.unsafe)...), s.examineSpeed(ctx)...)
}

// where names the bucket as a person looks for it.
func (s *store) where() string {
	endpoint := s.config.endpoint
	if endpoint == "" {
		endpoint = "AWS"
	}
	return fmt.Sprintf("bucket %q, prefix %q at %s", s.config.bucket, s.config.prefix, endpoint)
}

// examineAnswer asks for nothing in particular: how long that takes, and what time
// it is there.
func (s *store) examineAnswer(ctx context.Context) []providers.Finding {
	began := s.now()
	out, err := call(ctx, s, s.client.ListObjectsV2, &s3.ListObjectsV2Input{
		Bucket: &s.config.bucket, Prefix: aws.String(s.config.prefix), MaxKeys: aws.Int32(1)}, nil)
	if err != nil {
		return []providers.Finding{bad("answer", "check the endpoint, the network and the credentials", "%s: %v", s.where(), err)}
	}
	took := s.now().Sub(began)
	findings := []providers.Finding{good("answer", "%s answers in %v and takes the credentials", s.where(), took.Round(time.Millisecond))}
	there, ok := awsmiddleware.GetServerTime(out.ResultMetadata)
	if !ok {
		return append(findings, less("clock", "nothing; services with a clock say a Date", "the service does not say what time it is"))
	}
	return append(findings, clock(there.Sub(began.Add(took/2))))
}

// clock judges how far the service's clock is ahead. A Date has whole seconds.
func clock(ahead time.Duration) providers.Finding {
	far := max(ahead, -ahead).Round(time.Second)
	if far >= skewNote {
		return less("clock", fmt.Sprintf("set the clock of this machine; %v apart, the service refuses everything", skewMax), "this machine's clock and the service's are %v apart", far)
	}
	return good("clock", "this machine's clock and the service's agree")
}

// examineRegion compares the region that requests are signed for with the
// bucket's own.
func (s *store) examineRegion(ctx context.Context) providers.Finding {
	out, err := call(ctx, s, s.client.GetBucketLocation, &s3.GetBucketLocationInput{Bucket: &s.config.bucket}, nil)
	if err != nil {
		return asked("region", "s3:GetBucketLocation", fmt.Sprintf("%s is taken", s.config.region), err)
	}
	region := string(out.LocationConstraint)
	switch region {
	case "": // the first region has no name there
		region = "us-east-1"
	case "EU":
		region = "eu-west-1"
	}
	if region != s.config.region {
		return less("region", fmt.Sprintf("write %s as storage.config.region", region), "the bucket is in %s, and the configuration says %s", region, s.config.region)
	}
	return good("region", "%s", region)
}

// asked is a question that was not answered, and need not be for a mount.
func asked(name, right, but string, err error) providers.Finding {
	if errors.Is(err, providers.ErrPermission) {
		return less(name, "grant "+right+" if doctor is to say", "not told (%v); %s", err, but)
	}
	return less(name, "nothing, unless that is new", "the service does not say (%v); %s", err, but)
}

func (s *store) examineVersioning(ctx context.Context) providers.Finding {
	out, err := call(ctx, s, s.client.GetBucketVersioning, &s3.GetBucketVersioningInput{Bucket: &s.config.bucket}, nil)
	switch {
	case err != nil:
		return asked("versioning", "s3:GetBucketVersioning", "a mount needs none", err)
	case out.Status == types.BucketVersioningStatusEnabled:
		return good("versioning", "on: the bucket keeps, and charges for, what is overwritten or deleted, until a rule of its lifecycle ends it")
	}
	return good("versioning", "off: what is overwritten or deleted is gone there; wsmount's own history is on this machine")
}

// findings tell of each condition whether the service honours it.
func (b Probe) findings(unsafe bool) []providers.Finding {
	risk := "use a service that honours it"
	if unsafe {
		risk = "nothing, if nobody else writes: allow_unsafe_writes takes the risk"
	}
	var out []providers.Finding
	for _, c := range []struct {
		what     string
		honoured bool
		do, says string
	}{
		{"PUT with If-None-Match", b.Create, risk, "a new file may overwrite another writer's"},
		{"PUT with If-Match", b.Replace, risk, "a change may overwrite another writer's"},
		{"CompleteMultipartUpload with If-Match", b.Complete, risk, "a large file may overwrite another writer's"},
		{"CopyObject with If-None-Match", b.Copy, "nothing", "renames and changes of modes go as uploads in parts, which cost three requests more"},
		{"DELETE with If-Match", b.Delete, "nothing, unless another writes the file in the moment that it is deleted", "a deletion looks first, and then deletes"},
	} {
		if c.honoured {
			out = append(out, good("conditions", "%s is honoured", c.what))
			continue
		}
		out = append(out, less("conditions", c.do, "%s is not honoured: %s", c.what, c.says))
	}
	return out
}

// examineSpeed sends a part and takes it back.
func (s *store) examineSpeed(ctx context.Context) []providers.Finding {
	key := s.config.prefix + bucket.Scratch + rand.Text() // which a later probe would sweep
	content := make([]byte, examineSize)
	rand.Read(content) // which nobody can compress
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), examineClean)
		defer cancel()
		if err := s.Delete(ctx, key, providers.Unconditional()); err != nil {
			s.log.DebugContext(ctx, "a scratch key stays", "key", key, "error", err)
		}
	}()
	up, err := timed(func() error {
		_, err := call(ctx, s, s.client.PutObject, &s3.PutObjectInput{Bucket: &s.config.bucket, Key: &key, Body: bytes.NewReader(content)}, nil)
		return err
	})
	if err != nil {
		return []providers.Finding{bad("throughput", "see what the service says, and its limits", "%d MiB could not be sent: %v", examineSize>>20, err)}
	}
	down, err := timed(func() error { return s.fetchSame(ctx, key, content) })
	if err != nil {
		return []providers.Finding{bad("throughput", "see what the service says, and its limits", "%d MiB could not be read back: %v", examineSize>>20, err)}
	}
	return []providers.Finding{
		good("throughput", "%s up, %s down, with one part of %d MiB; several go at the same time", rate(up), rate(down), examineSize>>20),
		good("scratch", "what this tried was a key below %s%s/, which is removed again", strings.TrimPrefix(s.config.prefix, "/"), bucket.Own),
	}
}

func (s *store) fetchSame(ctx context.Context, key string, want []byte) error {
	out, err := call(ctx, s, s.client.GetObject, &s3.GetObjectInput{Bucket: &s.config.bucket, Key: &key}, nil)
	if err != nil {
		return err
	}
	defer out.Body.Close()
	got, err := io.ReadAll(out.Body)
	if err == nil && !bytes.Equal(got, want) {
		err = fmt.Errorf("it came back different: %w", providers.ErrCorrupt)
	}
	return translate(ctx, err)
}

// timed is by the real clock: what is measured is real.
func timed(do func() error) (time.Duration, error) {
	began := time.Now()
	err := do()
	return time.Since(began), err
}

func rate(took time.Duration) string {
	return fmt.Sprintf("%.1f MiB/s", float64(examineSize)/(1<<20)/max(took.Seconds(), 1e-6))
}
