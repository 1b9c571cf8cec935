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

// Good is a Finding of what is as it should be.
func Good(name, format string, args ...any) providers.Finding {
	return providers.Finding{Name: name, Says: fmt.Sprintf(format, args...)}
}

// Less is a Finding of what works with less than there could be, and what to do.
func Less(name, do, format string, args ...any) providers.Finding {
	return providers.Finding{Name: name, Grade: providers.Less, Do: do, Says: fmt.Sprintf(format, args...)}
}

// Bad is a Finding of what does not work, and what to do.
func Bad(name, do, format string, args ...any) providers.Finding {
	return providers.Finding{Name: name, Grade: providers.Bad, Do: do, Says: fmt.Sprintf(format, args...)}
}

// Examined is a Store of which there is more to find than of any bucket.
type Examined interface{ Examination() Examination }

// Examination is what a service adds to what is found of any bucket.
type Examination struct {
	Endpoint   string                                    // as people call it
	Own        func(context.Context) []providers.Finding // nil: nothing
	Conditions []providers.Finding                       // what it was found to honour
}

// Examine implements providers.Examiner. That the provider is open says already
// that its bucket answers, and takes the credentials.
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

// examineAnswer asks for nothing in particular: how long that takes, and what time
// it is there.
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
	key := p.prefix + Scratch + rand.Text() // which a later Open sweeps
	content := make([]byte, examineSize)
	rand.Read(content) // which nobody can compress
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

// timed is by the real clock: what is measured is real.
func timed(do func() error) (time.Duration, error) {
	began := time.Now()
	err := do()
	return time.Since(began), err
}

func rate(took time.Duration) string {
	return fmt.Sprintf("%.1f MiB/s", float64(examineSize)/(1<<20)/max(took.Seconds(), 1e-6))
}
