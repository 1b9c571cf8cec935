package unmount

import (
	"cmp"
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wsmount/wsmount/cmd/internal/control"
	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/cmd/internal/mountpoint"
	"github.com/wsmount/wsmount/integration/assert"
)

// A daemon that sends may go on; one that another mount namespace keeps, which it does not
// know while it sends, is not waited for any longer than until it says so.
func TestWait(t *testing.T) {
	const limit, interrupted, never = time.Minute, 50 * time.Minute, 100 * time.Minute
	cat := mountpoint.Holder{PID: 7, Name: "cat"}
	unsent := func(names int, halted ...string) control.Status {
		return control.Status{Parts: []control.Part{{Unsaved: control.Unsaved{Names: names}, Copy: &control.Copy{Halted: halted}}}}
	}
	held := func(s control.Status) control.Status { s.HeldBy = []mountpoint.Holder{cat}; return s }
	const late = 10 * time.Second
	sends := func(before, after control.Status) func(time.Duration) (control.Status, bool) {
		return func(at time.Duration) (control.Status, bool) {
			if at < late {
				return before, true
			}
			return after, true
		}
	}
	still := func(time.Duration) uint64 { return 0 }
	further := func(at time.Duration) uint64 { return uint64(at) }
	patient := unsent(1)
	patient.Parts[0].Copy.Patience = (3 * time.Minute).Seconds()
	for name, c := range map[string]struct {
		limit time.Duration // 0: that of all
		ends  time.Duration
		ask   func(at time.Duration) (control.Status, bool)
		beat  func(at time.Duration) uint64
		takes time.Duration
		holds bool   // cat is the result
		says  string // in the error and its hint; empty: none
	}{
		"ends":                     {0, 90 * time.Second, sends(unsent(2), unsent(1)), still, 90 * time.Second, false, ""},
		"sends nothing more":       {0, never, sends(unsent(2), unsent(1)), still, 2 * limit, false, "not ended"},
		"comes further":            {0, 30 * time.Minute, sends(unsent(2), unsent(2)), further, 30 * time.Minute, false, ""},
		"does not answer":          {0, never, func(time.Duration) (control.Status, bool) { return control.Status{}, false }, still, limit, false, "not ended"},
		"kept, and all is sent":    {0, never, sends(unsent(2), held(unsent(0))), still, late, true, ""},
		"kept, and may not send":   {0, never, sends(unsent(2), held(unsent(2, control.HaltedCommit+"25 files"))), still, late, false, "25 files: end cat (pid 7), mount the workspace again"},
		"kept, and can send":       {0, never, sends(held(unsent(2)), held(unsent(2))), still, limit, false, "end cat (pid 7); then what can be sent is"},
		"interrupted":              {0, never, sends(unsent(2), unsent(2)), further, interrupted, false, "interrupted: mnt is unmounted, and its daemon goes on until all that may be sent is"},
		"kept, and ends meanwhile": {0, 2 * late, sends(held(unsent(2)), held(unsent(1))), still, 2 * late, false, ""},
		"ends after its own limit": {AsLongAsItTries, 65 * time.Second, sends(unsent(2), unsent(2)), still, 65 * time.Second, false, ""},
		"tries for longer":         {AsLongAsItTries, 3*time.Minute + late, sends(patient, patient), still, 3*time.Minute + late, false, ""},
		"hangs":                    {AsLongAsItTries, never, sends(unsent(2), unsent(2)), still, time.Minute + endLimit, false, "not ended: 1 of 1"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begun := time.Now()
				ctx, cancel := context.WithTimeout(t.Context(), interrupted)
				defer cancel()
				got, err := detached{
					at: "mnt",
					ends: func(ctx context.Context) error {
						select {
						case <-ctx.Done():
							return ctx.Err()
						case <-time.After(c.ends - time.Since(begun)):
							return nil
						}
					},
					ask:  func(context.Context) (control.Status, bool) { return c.ask(time.Since(begun)) },
					beat: func(context.Context) uint64 { return c.beat(time.Since(begun)) },
					late: func(s control.Status, known bool) error {
						return fmt.Errorf("not ended: %d of 1", len(s.Parts))
					},
				}.wait(ctx, cmp.Or(c.limit, limit))
				assert.Equal(t, time.Since(begun), c.takes, "the time it takes")
				assert.Equal(t, len(got) == 1, c.holds, "cat is the result")
				assert.Equal(t, err != nil, c.says != "", err)
				if err != nil {
					assert.Contains(t, err.Error()+exit.From(err).Advice, c.says)
				}
			})
		})
	}
}
