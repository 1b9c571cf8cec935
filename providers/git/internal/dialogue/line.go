package dialogue

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"github.com/wsmount/wsmount/providers"
)

// A Line is a connection that is ended with its context, or when the server is silent where it
// has to speak.
type Line struct {
	net.Conn
	patience time.Duration
	stalled  atomic.Bool
	unlink   func() bool
}

const patience = time.Minute

// errStalled is the error of a connection that was ended because no answer came.
var errStalled = errors.New("the server has stopped answering")

// NewLine has a connection end with ctx. longest is how long the server may take for
// the next piece of an answer; 0: a minute.
func NewLine(ctx context.Context, conn net.Conn, longest time.Duration) *Line {
	if longest == 0 {
		longest = patience
	}
	return &Line{Conn: conn, patience: longest, unlink: context.AfterFunc(ctx, func() { conn.Close() })}
}

// Close ends the connection.
func (l *Line) Close() error {
	l.unlink()
	return l.Conn.Close()
}

// Await runs f, which waits for the server.
func (l *Line) Await(f func() error) error {
	end := time.AfterFunc(l.patience, func() {
		l.stalled.Store(true)
		l.Close()
	})
	err := f()
	end.Stop()
	if err != nil && l.stalled.Load() {
		return &Error{Kind: providers.ErrUnavailable, Code: "stalled", Says: fmt.Sprintf("%v for %v", errStalled, l.patience), Err: errStalled}
	}
	return err
}
