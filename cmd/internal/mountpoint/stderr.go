package mountpoint

import (
	"io"
	"os"
	"strings"
	"time"
)

// WithStderr runs f and returns the standard error of programs that f starts with
// os.Stderr: fusermount3 writes there why it refuses. The daemon's own log
// does not go by that variable. Where no pipe can be had, the output goes
// to os.Stderr as always.
func WithStderr(f func() error) (said string, err error) {
	r, w, perr := os.Pipe()
	if perr != nil {
		return "", f()
	}
	defer r.Close()
	old := os.Stderr
	os.Stderr = w
	err = f()
	os.Stderr = old
	w.Close()
	_ = r.SetReadDeadline(time.Now().Add(time.Second)) // a program that f left behind may hold the other end
	b, _ := io.ReadAll(io.LimitReader(r, 4096))
	return strings.TrimSpace(string(b)), err
}
