package cache

import (
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/memory"
	"github.com/wsmount/wsmount/providers/providertest"
)

// committing has a commit go on beside the test; what comes is its error.
func (w *world) committing() <-chan error {
	done := make(chan error, 1)
	go func() {
		_, err := w.v.Commit(w.Context(), CommitOptions{})
		done <- err
	}()
	return done
}

// Two names at the backend have the same content, which a third is to get, and both
// are about to get another. While the first of them is under way, which may take as
// long as it likes to begin, the second one is not taken for a place that stays.
func TestTheLastPlaceOfContentIsKept(t *testing.T) {
	t.Parallel()
	big := strings.Repeat("q", 9<<20)
	for name, script := range map[string][]string{
		"the third before the second": {"mv q r", "ln f g", "put n new", "mv n f"},
		"the third at last":           {"ln r t", "put n new", "mv n f", "mv q r", "mv t g"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, over(memory.Options{Without: asBucket}), background, newManual().option, func(_ *world, o *Options) {
				o.Policy.Window = time.Hour // so that nothing is sent before the commit
			}, holding("r", "remote", "q", big))
			w.do("ln r f")
			w.upload()
			part := w.open("q", syscall.O_WRONLY) // of it the rest is fetched when it is sent
			w.writeLast(part, "Q", 0)
			w.do(script...)
			fetching, fetch := w.gate(providers.MethodRead)
			committed := w.committing()
			<-fetching
			w.until(func() bool {
				there := listBackend(w.p)
				return slices.Contains(there, "g: remote") || slices.Contains(there, "f: new")
			})
			fetch()
			w.ok(<-committed)
			w.noProblems()
			for path, want := range map[string]string{"f": "new", "g": "remote", "r": "Q" + big[1:]} {
				w.arrived(path, want)
			}
		})
	}
}

// A set is of what was due when it was asked for, with what each name leads to when it
// is made. Two names at the backend have the same content, which is not here, and both
// are due to lose it; the name that is to get it is new and not due. Then one of the
// two waits for that.
func TestASetKeepsTheLastPlaceOfContent(t *testing.T) {
	t.Parallel()
	for name, due := range map[string][]string{
		"removed":  {"mv f t", "rm r"},
		"replaced": {"mv f t", "put n new", "mv n r", "put f other"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, repository, has("r", "remote", "keep", "k"), onlyAsked)
			w.do("ln r f")
			w.upload()
			w.do(due...)
			begun, goOn := w.gate(providers.MethodHead)
			committed := w.committing()
			<-begun
			w.do("mv t g")
			goOn()
			w.ok(<-committed)
			assert.Contains(t, strings.Join(listBackend(w.repo), "\n")+"\n", ": remote\n", "the repository")
			w.upload()
			w.noProblems()
			assert.Equal(t, w.get("g"), "remote", "g")
			w.same()
		})
	}
}

// A program that has a file open reads it to its end, although a set has taken all names
// that the file had.
func TestReadToTheEndOfWhatASetRemoved(t *testing.T) {
	t.Parallel()
	big := strings.Repeat("q", 9<<20)
	w := newWorld(t, repository, has("r", big, "keep", "k"), onlyAsked)
	w.do("ln r f")
	w.upload()
	o := w.open("r", syscall.O_RDONLY)
	defer o.File.Release()
	w.do("rm r", "put n new", "mv n f")
	w.upload()
	d := assert.Of(o.File.Read(me, make([]byte, 100), int64(len(big)-4))).OK(w)
	assert.Equal(t, string(d.Bytes), "qqqq", "the end is", d.Bytes)
	w.same()
}

// A name from which content was removed has it again, and nobody knows whether the
// backend did remove it: until that is known the other place is left alone.
func TestAPlaceInDoubtIsNoPlace(t *testing.T) {
	// Nothing is tried again by itself.
	w := newWorld(t, over(memory.Options{Without: asBucket}), background, newManual().option, holding("r", "remote"))
	w.do("ln r f")
	w.upload()
	w.faults.Queue(providers.MethodDelete, providertest.Fault{After: providers.ErrUnavailable})
	w.do("rm r")
	w.until(func() bool { return len(listBackend(w.p)) == 1 && len(w.v.Status().InFlight) == 0 })
	looking, look := w.gate(providers.MethodStat)
	w.do("ln f r", "put n new", "mv n f")
	committed := w.committing()
	<-looking
	w.do("put z z") // which has all be looked at again
	w.until(func() bool { return slices.Contains(listBackend(w.p), "z: z") })
	look()
	w.ok(<-committed)
	w.noProblems()
	w.same()
	w.backend("f: new", "r: remote", "z: z")
}
