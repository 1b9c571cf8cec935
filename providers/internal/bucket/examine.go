package bucket

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/wsmount/wsmount/providers"
)

// Services refuse requests whose time is off by skewMax; skewNote is worth a
// warning long before.
const (
	skewMax  = 15 * time.Minute
	skewNote = 5 * time.Second
)

// examineSize is the size of the body that measures throughput: a part of a large file.
const examineSize = 8 << 20

// examineClean is how long the scratch key may take to go.
const examineClean = 10 * time.Second

// Good is a Finding about something that is as it should be.
func Good(name, format string, args ...any) providers.Finding {
	return providers.Finding{Name: name, Says: fmt.Sprintf(format, args...)}
}

// Less is a Finding about something that works, but not as well as it could, and the remedy.
func Less(name, do, format string, args ...any) providers.Finding {
	return providers.Finding{Name: name, Grade: providers.Less, Do: do, Says: fmt.Sprintf(format, args...)}
}

// Bad is a Finding about something that does not work, and the remedy.
func Bad(name, do, format string, args ...any) providers.Finding {
	return providers.Finding{Name: name, Grade: providers.Bad, Do: do, Says: fmt.Sprintf(format, args...)}
}

// Examined is a Store with findings of its own, besides those of any bucket.
type Examined interface{ Examination() Examination }

// Examination is a service's addition to the findings about any bucket.
type Examination struct {
	Endpoint   string                                    // as people call it
	Own        func(context.Context) []providers.Finding // nil: nothing
	Conditions []providers.Finding                       // the conditions that it honours
}

// Examine implements providers.Examiner. An open provider has shown already that its bucket
// answers and takes the credentials.
func (p *Provider) Examine(ctx context.Context) []providers.Finding {
	var x Examination
	if store, ok := p.store.(Examined); ok {
		x = store.Examination()
	}
	out := p.examineAnswer(ctx, x.Endpoint)
	if x.Own != nil {
		out = append(out, x.Own(ctx)...)
	}
	if !p.writes {
		return append(out, Less("writing", "examine it without read-only to try them",
			"not tried, since this is for reading: writing, the conditions of changes, and how fast content goes"))
	}
	return append(append(out, x.Conditions...), p.examineSpeed(ctx)...)
}

// examineAnswer sends a LIST of one key: it measures how long the answer takes, and compares the
// service's clock.
func (p *Provider) examineAnswer(ctx context.Context, endpoint string) []providers.Finding {
	where := fmt.Sprintf("bucket %q, prefix %q at %s", p.name, p.prefix, endpoint)
	began := p.now()
	answer, err := p.list(ctx, Query{Prefix: p.prefix, Limit: 1})
	if err != nil {
		return []providers.Finding{Bad("answer", "check the endpoint, the network and the credentials", "%s: %v", where, err)}
	}
	took := p.now().Sub(began)
	findings := []providers.Finding{Good("answer", "%s answers in %v and takes the credentials", where, took.Round(time.Millisecond))}
	if answer.Answered.IsZero() {
		return append(findings, Less("clock", "nothing; services with a clock say a Date", "the service does not say what time it is"))
	}
	return append(findings, clock(answer.Answered.Sub(began.Add(took/2))))
}

// clock judges how far the service's clock is ahead. A Date has whole seconds.
func clock(ahead time.Duration) providers.Finding {
	far := max(ahead, -ahead).Round(time.Second)
	if far >= skewNote {
		return Less("clock", fmt.Sprintf("set the clock of this machine; %v apart, the service refuses everything", skewMax), "this machine's clock and the service's are %v apart", far)
	}
	return Good("clock", "this machine's clock and the service's agree")
}

// examineSpeed sends a part and takes it back.
func (p *Provider) examineSpeed(ctx context.Context) []providers.Finding {
	key := p.prefix + Scratch + rand.Text() // a later Open sweeps it if it stays
	content := make([]byte, examineSize)
	rand.Read(content) // cannot be compressed
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), examineClean)
		defer cancel()
		if err := p.store.Delete(ctx, key, providers.Unconditional()); err != nil {
			p.log.DebugContext(ctx, "a scratch key stays", "key", key, "error", err)
		}
	}()
	body := bytesBody(content)
	up, err := timed(func() error {
		_, err := p.send(ctx, key, body, Making{If: providers.Unconditional()})
		return err
	})
	if err != nil {
		return []providers.Finding{Bad("throughput", "see what the service says, and its limits", "%d MiB could not be sent: %v", examineSize>>20, err)}
	}
	down, err := timed(func() error { return p.fetchSame(ctx, key, content) })
	if err != nil {
		return []providers.Finding{Bad("throughput", "see what the service says, and its limits", "%d MiB could not be read back: %v", examineSize>>20, err)}
	}
	return []providers.Finding{
		Good("throughput", "%s up, %s down, with one part of %d MiB; several go at the same time", rate(up), rate(down), examineSize>>20),
		Good("scratch", "what this tried was a key below %s%s/, which is removed again", strings.TrimPrefix(p.prefix, "/"), Own),
	}
}

func (p *Provider) fetchSame(ctx context.Context, key string, want []byte) error {
	_, body, err := p.store.Get(ctx, key, Range{})
	if err != nil {
		return err
	}
	defer body.Close()
	got, err := io.ReadAll(body)
	if err == nil && !bytes.Equal(got, want) {
		err = fmt.Errorf("it came back different: %w", providers.ErrCorrupt)
	}
	return err
}

// timed uses the real clock: the time that is measured is real.
func timed(do func() error) (time.Duration, error) {
	began := time.Now()
	err := do()
	return time.Since(began), err
}

func rate(took time.Duration) string {
	return fmt.Sprintf("%.1f MiB/s", float64(examineSize)/(1<<20)/max(took.Seconds(), 1e-6))
}
