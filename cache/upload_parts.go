package cache

import (
	"time"

	"github.com/wsmount/wsmount/cache/internal/chores"
	"github.com/wsmount/wsmount/cache/internal/waiting"
	"github.com/wsmount/wsmount/providers"
)

// partsLeft is how old an upload is that nobody completes any more: its program
// was killed, or lost its network for good.
const partsLeft = 24 * time.Hour

// freeParts frees, after a while and then once a day, what uploads left that were
// never completed.
func (v *Volume) freeParts(parter providers.Multiparter, wait time.Duration) {
	if waiting.Sleep(v.ctx, wait) != nil {
		return
	}
	for {
		w := v.waits.For(nil, v.o.Patience)
		n, err := parter.AbortParts(w, v.o.Now().Add(-partsLeft))
		w.Close()
		v.chores.Ended(chores.Parts, err)
		if n > 0 {
			v.o.Log.Info("uploads that were never completed are freed", "count", n)
		}
		if waiting.Sleep(v.ctx, partsLeft) != nil {
			return
		}
	}
}
