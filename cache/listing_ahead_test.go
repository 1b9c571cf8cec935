package cache

import (
	"fmt"
	"testing"
	"time"

	"github.com/wsmount/wsmount/cache/internal/listing"
	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/providertest"
)

// A listing of a directory that is no small tree has brought the first page of a walk. One
// that is not used makes no walk harder to begin.
func TestFirstPageServesTwice(t *testing.T) {
	inForest(t, 100, 10, flat(30), func(f *forest) {
		if f.list(""); f.asked() != 2 {
			t.Error("the first listing is not one of the tree and one of the directory")
		}
		f.look("d0000")
		assert.Equal(t, f.asked(), 0, "the first directory took requests more")
		time.Sleep(listing.WalkPause + time.Second)
		locked := f.v.lock()
		need := f.v.ahead.Need()
		locked.unlock()
		if need > 1 || f.walking() {
			t.Errorf("%d looks begin a walk; one goes on: %v", need, f.walking())
		}
	})
}

// Where a page had to be asked for twice, the second answer says where the next begins.
func TestFirstPageIsAskedForTwice(t *testing.T) {
	inForest(t, 10, 10, flat(6), func(f *forest) {
		gate, reached := make(chan struct{}), make(chan struct{})
		f.faults.Queue(providers.MethodList, providertest.Fault{After: providers.ErrUnavailable}, providertest.Fault{Gate: gate, Reached: reached})
		listed := async(func() { f.list("") })
		<-reached
		for i := range 3 {
			f.tamper(fmt.Sprintf("d0000/a%d", i), "theirs") // the page ends earlier now
		}
		close(gate)
		<-listed
		assert.Equal(t, f.walkAll(fs.RootIno), f.names+3, "names")
	})
}

// The next page is asked for as soon as it is known where it begins, though the one
// before has not come: two ahead of the walker.
func TestPagesAreAskedForAhead(t *testing.T) {
	inForest(t, 100, 10, flat(100), func(f *forest) {
		f.listExpired()
		f.look("d0000")
		f.asked()
		gate, reached := f.answerLate(providers.MethodList)
		f.look("d0001")
		<-reached
		assert.Equal(t, f.asked(), 2, "requests")
		close(gate)
		for i := 2; i < 12; i++ {
			f.look(fmt.Sprintf("d%04d", i))
		}
		assert.Equal(t, f.asked(), 1, "requests")
	})
}
