package daemon

import (
	"slices"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
)

// A tied mount ends when the last of its users has left, and takes no more; one
// that a person made has none.
func TestHold(t *testing.T) {
	d := &Daemon{tree: &Tree{}, opts: Options{Tied: true}, users: users{none: make(chan struct{})}}
	ended := func() bool {
		select {
		case <-d.users.none:
			return true
		default:
			return false
		}
	}
	first, err := d.Hold(1)
	second, err2 := d.Hold(2)
	if err != nil || err2 != nil || !slices.Equal(d.users.list(), []int{1, 2}) {
		t.Fatalf("got %v, %v, used by %v", err, err2, d.users.list())
	}
	first()
	first() // the same end, told twice
	if ended() || !slices.Equal(d.users.list(), []int{2}) {
		t.Errorf("ended: %v, used by %v", ended(), d.users.list())
	}
	second()
	_, err = d.Hold(3)
	assert.Must(t, ended() && err != nil, "ended:", ended(), "held again:", err)
	assert.Contains(t, err.Error(), "ends: the last command in it has ended")

	d = &Daemon{tree: &Tree{}}
	release, err := d.Hold(1)
	assert.Must(t, err == nil && len(d.users.list()) == 0, "a mount that is not tied", "used by", d.users.list(), err)
	release()
}
