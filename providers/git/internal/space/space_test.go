package space

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/integration/assert"
)

// small takes so many bytes.
type small struct {
	bytes.Buffer
	left int
}

func (s *small) Write(b []byte) (int, error) {
	n := min(len(b), s.left)
	s.left -= n
	s.Buffer.Write(b[:n])
	if n < len(b) {
		return n, unix.ENOSPC
	}
	return n, nil
}

// A write goes on where a full disk stopped it, each byte is written once, and trying
// ends.
func TestWriter(t *testing.T) {
	const text = "0123456789abcdef"
	for _, tt := range []struct {
		name       string
		rooms      []int // that can be had
		want       string
		full, asks int // asks: how often room is asked for
	}{
		{"at once", []int{len(text)}, text, 0, 1},
		{"bit by bit", []int{3, 5, 1, 2, 4, 1}, text, 0, 6},
		{"not enough", []int{3, 5}, text[:8], 1, 3},
		{"in vain", []int{2, 0, 0, 0, 0, 0, 0}, text[:2], 1, 1 + tries - 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w, asks := &small{}, 0
			d := Disk{MakeRoom: func(n int64) bool {
				assert.True(t, n >= int64(len(text)), "room for", n, "bytes is asked")
				if asks++; asks > len(tt.rooms) {
					return false
				}
				w.left += tt.rooms[asks-1]
				return true
			}}
			n, err := d.Writer(w).Write([]byte(text))
			if n != len(tt.want) || w.String() != tt.want || IsFull(err) != (tt.full > 0) || asks != tt.asks {
				t.Errorf("%d bytes, %q, %v, asked %d times", n, w.String(), err, asks)
			}
		})
	}
}

// What fails for another reason is not tried again, and a full disk says what to do.
func TestWhile(t *testing.T) {
	other, calls := errors.New("another"), 0
	d := Disk{MakeRoom: func(int64) bool { return true }}
	if err := d.While(func() error { calls++; return other }); err != other || calls != 1 {
		t.Errorf("%v after %d calls", err, calls)
	}
	calls = 0
	err := d.While(func() error { calls++; return unix.EDQUOT })
	assert.True(t, errors.Is(err, unix.EDQUOT) && strings.Contains(err.Error(), "free some of it") && calls == tries, err, "after", calls, "calls")
	err = (Disk{}).While(func() error { return unix.ENOSPC })
	assert.True(t, IsFull(err), "with nothing to give up:", err)
}
