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

// AnswerLimit is how long a daemon that runs may take to answer what it waits for nothing
// for. On a busy machine that is not a matter of a second; one that takes longer hangs.
var AnswerLimit = limitOf(answerLimit)

// answerLimit is another in a program that is tested: integration/testrun links it so,
// since a machine that runs many tests side by side may let a daemon wait for longer.
var answerLimit = "30s"

func limitOf(text string) time.Duration {
	d, err := time.ParseDuration(text)
	if err != nil {
		panic("control: " + err.Error()) // it was built with that
	}
	return d
}

// lookEvery is how often it is looked whether the process that is asked is stopped.
const lookEvery = 50 * time.Millisecond

// A stopWatch hangs up on a process that is stopped (SIGSTOP, signal(7)), and so does not
// answer before somebody lets it go on, who may never come.
type stopWatch struct {
	done    chan struct{} // closed by end
	decided sync.Once     // by what comes first: end, or that the process is stopped
	stopped int           // that process, or 0
}

// over is a context for a request that the watch looks after until end.
func (w *stopWatch) over(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) {
		conn, ok := i.Conn.(*net.UnixConn)
		if !ok {
			return
		}
		if peer, err := peerOf(conn); err == nil && peer.PID > 0 { // else it is not to be seen from here
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

// end ends the watch, once, and returns the process if it was hung up on.
func (w *stopWatch) end() (pid int) {
	close(w.done)
	w.decided.Do(func() {})
	return w.stopped
}
