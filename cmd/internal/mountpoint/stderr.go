package mountpoint

import (
	"io"
	"os"
	"strings"
	"time"
)

// WithStderr runs f and returns what programs wrote meanwhile that f started
// with os.Stderr: fusermount3 says there why it refuses. The daemon's own log
// does not go by that variable. Where there is no pipe to be had, its lines go
// where they always did.
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
