package mountpoint

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wsmount/wsmount/integration/assert"
)

// A process is ending when each of its threads is.
func TestExiting(t *testing.T) {
	const ends, lives = "S 1 1 1 0 -1 4194308", "S 1 1 1 0 -1 4194304"
	pad := func(head string, pending int) string {
		return fmt.Sprintf("7 (a) b) %s%s %d 0 0 0\n", head, strings.Repeat(" 0", 21), pending)
	}
	for _, tt := range []struct {
		name    string
		threads []string
		want    bool
	}{
		{"it lives", []string{pad(lives, 0)}, false},
		{"it closes its files", []string{pad(ends, 0)}, true},
		{"a zombie", []string{pad("Z 1 1 1 0 -1 4194304", 0)}, true},
		{"killed, and had no processor since", []string{pad(lives, 0x100)}, true},
		{"another signal waits", []string{pad(lives, 0x4000)}, false},
		{"all of several threads", []string{pad(ends, 0), pad(ends, 0)}, true},
		{"the first thread has ended, another lives", []string{pad("Z 1 1 1 0 -1 4194308", 0), pad(lives, 0)}, false},
		{"no thread is left", nil, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			for i, stat := range tt.threads {
				at := filepath.Join(dir, "task", fmt.Sprint(i))
				mkdir(t, at)
				assert.OK(t, os.WriteFile(at+"/stat", []byte(stat), 0o600))
			}
			assert.Equal(t, exiting(dir), tt.want)
		})
	}
	assert.False(t, exiting("/proc/self"), "this process is not ending")
}

// A holder that is ending is waited for, one that lives is refused.
func TestUntilFree(t *testing.T) {
	ends := Holder{PID: 7, Name: "cat", Uses: []string{"open: notes"}, Exiting: true}
	lives := Holder{PID: 8, Name: "vi", Uses: []string{"open: notes"}}
	forks := Holder{PID: 9, Name: "make", Uses: []string{"open: notes"}, forked: true}
	for _, tt := range []struct {
		name    string
		holders []Holder
		limit   time.Duration
		stands  time.Duration // so long the machine stands still while it is asked first
		freed   time.Duration // after it, the mount is free
		busy    bool
		waited  int
		atLeast time.Duration // what a refusal comes after
		atMost  time.Duration
	}{
		{name: "free"},
		{name: "a holder ends", holders: []Holder{ends}, freed: 3 * time.Second, waited: 1},
		{name: "a holder does not come to its end", holders: []Holder{ends}, freed: time.Hour, busy: true, waited: 1, atLeast: EndingLimit, atMost: EndingLimit + time.Second},
		{name: "the limit of the call", holders: []Holder{ends}, limit: time.Minute, freed: 50 * time.Second, waited: 1},
		{name: "no holder is seen", freed: 3 * time.Second},
		{name: "a living holder", holders: []Holder{lives}, freed: 3 * time.Second, busy: true, atMost: EndingLimit / 2},
		{name: "a living one beside it", holders: []Holder{ends, lives}, freed: 3 * time.Second, busy: true, waited: 1, atMost: EndingLimit / 2},
		{name: "a living holder that ends after a standstill", holders: []Holder{lives}, stands: time.Minute, freed: time.Minute + livingLimit/4},
		{name: "a fork that has executed nothing yet", holders: []Holder{forks}, freed: 3 * time.Second},
		{name: "none is ever seen", freed: time.Hour, busy: true, atLeast: EndingLimit, atMost: EndingLimit + time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begin := time.Now()
				unmount := func() error {
					time.Sleep(tt.stands - time.Since(begin))
					if time.Since(begin) < tt.freed {
						return fmt.Errorf("unmount: %w", syscall.EBUSY)
					}
					return nil
				}
				waited, err := UntilFree(tt.limit, unmount, func() []Holder { return tt.holders })
				took := time.Since(begin)
				assert.True(t, IsBusy(err) == tt.busy && len(waited) == tt.waited, "got", err, "after", took, "waited for", waited)
				assert.False(t, tt.busy && (took < tt.atLeast || took > tt.atMost), "refused after", took)
			})
		})
	}
	other := errors.New("another failure")
	assert.Equal(t, assert.ErrOf(UntilFree(0, func() error { return other }, nil)), other, "another failure")
}
