package cache

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/memory"
	"github.com/wsmount/wsmount/providers/providertest"
)

// part is how large the parts of these tests are: smaller than what they really
// are, as it costs a lot to have the race detector watch so many bytes, and larger than
// what account is kept of (see content).
const part = 1 << 20

// inParts has content of two parts and more go in parts.
func inParts(_ *world, o *Options) { o.part = part }

// large is content of two and a half parts.
func large() string {
	b := make([]byte, 2*part+part/2)
	r := rand.NewChaCha8([32]byte{1})
	r.Read(b)
	return string(b)
}

// Large content goes out in parts; one that breaks off is sent again, and alone.
func TestLargeContentInParts(t *testing.T) {
	t.Parallel()
	var parts atomic.Int64
	p := memory.New(memory.Options{Hook: func(_ context.Context, m providers.Method, _ providers.Locator) error {
		if m == providers.MethodPart {
			parts.Add(1)
		}
		return nil
	}})
	w := newWorld(t, inParts, func(w *world, _ *Options) { w.p = p })
	w.faults.Queue(providers.MethodPart, providertest.Fault{Before: providers.ErrUnavailable}, providertest.Fault{After: providers.ErrUnavailable})
	content := large()
	w.ok(w.put("f", content))
	b, _, err := providers.Fetch(t.Context(), w.p, at("f"), providers.ReadOptions{})
	if w.ok(err); string(b) != content {
		t.Error("the backend has something else")
	}
	assert.Equal(t, parts.Load(), 4, "parts arrived")
	assert.Equal(t, p.Uploads(), 0, "uploads are left")
}

// What is lost to another writer frees its parts.
func TestLostPartsAreFreed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, inParts, unwaited, holding("f", "base"))
	o := w.open("f", syscall.O_WRONLY|syscall.O_TRUNC)
	w.write(o, large(), 0)
	w.tamper("f", "theirs")
	w.ok(w.shut(o))
	w.upload()
	assert.Equal(t, w.get("f"), "theirs", "the name")
	if got := len(w.list("")); got != 4 { // the conflict copy, and . and ..
		t.Errorf("%d names", got)
	}
	assert.Equal(t, w.p.Uploads(), 0, "uploads are left")
}

// An upload that a killed program left is freed after a day.
func TestPartsLeftByOthers(t *testing.T) {
	p := memory.New(memory.Options{})
	for i := range 2 {
		if _, err := p.StartParts(t.Context(), at(fmt.Sprint("f", i)), providers.WriteOptions{If: providers.IfAbsent()}); err != nil {
			t.Fatal(err)
		}
	}
	w := newWorld(t, func(w *world, o *Options) {
		o.partsWait = time.Nanosecond
		w.p, o.Now = p, func() time.Time { return time.Now().Add(partsLeft + time.Hour) }
	})
	w.until(func() bool { return p.Uploads() == 0 })
}
