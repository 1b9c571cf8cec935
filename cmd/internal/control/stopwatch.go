package control

import (
	"context"
	"net"
	"net/http/httptrace"
	"strconv"
	"sync"
	"time"

	"github.com/wsmount/wsmount/fs/proc"
)

// AnswerLimit is how long a running daemon may take to answer a request for which it waits for
// nothing. On a busy machine that may be seconds; a daemon that takes longer than the limit hangs.
var AnswerLimit = limitOf(answerLimit)

// answerLimit is another in a program under test: integration/testrun links it so,
// since a machine that runs many tests side by side may delay a daemon for longer.
var answerLimit = "30s"

func limitOf(text string) time.Duration {
	d, err := time.ParseDuration(text)
	if err != nil {
		panic("control: " + err.Error()) // a fault of the build
	}
	return d
}

// lookEvery is the interval at which the state of the asked process is read.
const lookEvery = 50 * time.Millisecond

// A stopWatch hangs up on a process that is stopped (SIGSTOP, signal(7)): it does not
// answer until it is continued, which may never happen.
type stopWatch struct {
	done    chan struct{} // closed by end
	decided sync.Once     // by the first of two: end, or a stopped process
	stopped int           // the stopped process, or 0
}

// over is a context for a request that is watched until end.
func (w *stopWatch) over(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) {
		conn, ok := i.Conn.(*net.UnixConn)
		if !ok {
			return
		}
		if peer, err := peerOf(conn); err == nil && peer.PID > 0 { // else its PID is not visible
			go w.look(conn, int(peer.PID))
		}
	}})
}

func (w *stopWatch) look(conn net.Conn, pid int) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		if s, err := proc.Read("/proc/" + strconv.Itoa(pid)); err == nil && s.Stopped() {
			w.decided.Do(func() { w.stopped = pid; conn.Close() })
			return
		}
		select {
		case <-w.done:
			return
		case <-tick.C:
		}
	}
}

// end ends the watch, once, and returns the process if the watch hung up on it.
func (w *stopWatch) end() (pid int) {
	close(w.done)
	w.decided.Do(func() {})
	return w.stopped
}
