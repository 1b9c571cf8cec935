package progress

import (
	"testing"
	"time"

	"github.com/wsmount/wsmount/cmd/internal/control"
	"github.com/wsmount/wsmount/integration/assert"
)

// What a mount sends is told as a share of all, with the rate of the last seconds and the time
// that is left; what is written meanwhile counts, too.
func TestLine(t *testing.T) {
	const mib = 1 << 20
	began := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	var m meters
	for _, tt := range []struct {
		after         time.Duration
		unsaved, sent int64
		names         int
		work          control.Work
		want          string
	}{
		{0, 100 * mib, 0, 2, control.Work{}, "0% of 100.0 MiB sent; 2 changes to send"},
		{2 * time.Second, 100 * mib, 20 * mib, 2, control.Work{}, "20% of 100.0 MiB sent, 10.0 MiB/s, 8s left; 2 changes to send"},
		{4 * time.Second, 60 * mib, 0, 1, control.Work{}, "40% of 100.0 MiB sent, 10.0 MiB/s, 6s left; 1 change to send"},
		{5 * time.Second, 160 * mib, 0, 2, control.Work{}, "20% of 200.0 MiB sent, 8.0 MiB/s, 20s left; 2 changes to send"},
		{30 * time.Second, 80 * mib, 0, 2, control.Work{}, "60% of 200.0 MiB sent, 3.2 MiB/s, 25s left; 2 changes to send"},
		{40 * time.Second, 0, 0, 0, control.Work{}, "waiting for the store for 40s"},
		{41 * time.Second, 0, 0, 0, control.Work{What: "sending", Done: 1, Total: 4}, "sending 1 of 4 changes (25%)"},
		{42 * time.Second, mib, 0, 1, control.Work{What: "recording", Done: 1, Total: 1}, "recording 1 change (100%), 1.0 MiB"},
		{50 * time.Second, 0, 0, 0, control.Work{Fetch: 8 * mib}, "0% of 8.0 MiB fetched"},
		{52 * time.Second, 0, 0, 0, control.Work{Fetch: 8 * mib, Fetched: 4 * mib}, "50% of 8.0 MiB fetched, 2.0 MiB/s, 2s left"},
	} {
		s := control.Status{UnsavedBytes: tt.unsaved, Parts: []control.Part{{Unsaved: control.Unsaved{Names: tt.names},
			Copy: &control.Copy{InFlight: []control.Transfer{{Sent: tt.sent}}}}}}
		assert.Equal(t, m.line(s, tt.work, began, began.Add(tt.after)), tt.want, tt.after)
	}
	assert.Equal(t, Transfer(3*mib, 4*mib, 3*time.Second), "3.0 MiB of 4.0 MiB (75%), 1.0 MiB/s, 1s left")
	assert.Equal(t, Transfer(0, 0, 0), "0 B of 0 B")
	var r Received
	assert.Equal(t, r.text(time.Minute), " ...")
	r.bytes.Add(6 * mib)
	assert.Equal(t, r.text(3*time.Second), ": 6.0 MiB received, 2.0 MiB/s")
	r.Objects(300, 1200)
	assert.Equal(t, r.text(3*time.Second), ": 25% of 1200 objects, 9s left, 6.0 MiB received, 2.0 MiB/s")
}
