package exiting

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/wsmount/wsmount/integration/assert"
)

// All closes of a thread that ends wait for a moment together; one that does not end, or
// another with its number, waits as ever.
func TestThreads(t *testing.T) {
	var l Threads
	start := time.Unix(1e9, 0)
	for _, x := range []struct {
		tid    uint32
		ending bool
		after  time.Duration
		over   bool
	}{
		{1, false, 0, false},
		{1, true, time.Second, false}, // it is found to end
		{1, true, time.Second + exitGrace - exitLook - 1, false},
		{2, true, time.Second + exitGrace - exitLook, false},
		{1, true, time.Second + exitGrace - exitLook, true},
		{1, true, time.Hour, true}, // its next close
		{1, false, time.Hour, false},
		{1, true, time.Hour, false},
	} {
		assert.Equal(t, l.over(x.tid, x.ending, start.Add(x.after)), x.over, x)
	}
	assert.Equal(t, l.firstLook(1), 0, "one that is known to end")
	assert.Equal(t, l.firstLook(3), exitLook)
	for tid := range uint32(3 * maxLeaving) { // those whose time is over are forgotten
		l.over(10+tid, true, start.Add(time.Duration(tid)*time.Second))
	}
	assert.AtMost(t, len(l.until), maxLeaving+1)
}

// A thread that goes on is waited for as long as whoever waits.
func TestWaitOfAThreadThatGoesOn(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var l Threads
	assert.False(t, l.Wait(ctx, uint32(os.Getpid())), "it ends")
}
