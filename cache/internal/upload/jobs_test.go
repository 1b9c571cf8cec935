package upload

import (
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
)

var noon = time.Unix(1e9, 0)

var errSome = errors.New("some failure")

// begun is a scene with jobs, with a new file n, of inode 10.
func begun(t *testing.T) (*scene, *Jobs) {
	s := newScene(t, canMove)
	s.has(10, file, root("n"), none)
	j := NewJobs()
	return s, &j
}

// view runs do under the lock.
func (s *scene) view(do func(v *tree.View)) {
	s.Helper()
	assert.OK(s, s.tree.View(func(v *tree.View) error { do(v); return nil }))
}

// tries begins and ends an operation for a name.
func tries(v *tree.View, j *Jobs, l table.Link) *Job {
	t := j.Begin(v, &Operation{Verb: VerbWrite, Link: l, Ino: v.Record(l).Ino}, noon)
	j.End(v, t)
	return t
}

// writes makes another state of the content of n.
func (s *scene) writes() {
	s.does(func(tx *tree.Tx) { tx.ContentChanged(10, 2, table.Time{}) })
}

// Beside what runs nothing runs at the same place or with the same content, nor too much; and
// one file, however large, is not too much for the others.
func TestFits(t *testing.T) {
	s, j := begun(t)
	write := func(path string, ino table.Ino, size int64) *Operation {
		return &Operation{Verb: VerbWrite, Link: root(path), At: place(t, path), Ino: ino, Size: size}
	}
	s.view(func(v *tree.View) {
		var large []*Job
		for i := range mostBytes/mostOfOne - 1 {
			op := write("large"+strconv.Itoa(i), table.Ino(20+i), 1<<40)
			assert.True(t, j.Fits(v, op), op, "is too much beside", i)
			large = append(large, j.Begin(v, op, noon))
		}
		first := j.Begin(v, write("n", 10, mostOfOne-5), noon)
		for _, c := range []struct {
			next *Operation
			want bool
		}{
			{write("m", 11, 5), true}, {write("m", 11, 6), false}, {write("m", 10, 1), false}, {write("n", 11, 1), false},
			{&Operation{Verb: VerbDelete, Link: root("m"), At: place(t, "m"), Ino: 11, Size: 6}, true},
		} {
			assert.Equal(t, j.Fits(v, c.next), c.want, c.next, c.next.Size)
		}
		for _, one := range large {
			j.End(v, one)
		}
		assert.Equal(t, j.Busy(v, root("n")), first.Op)
		assert.True(t, j.IsWaiting(v, root("n")) && j.WorksIn(v, table.Root) && !j.WorksIn(v, 10), "it is under way")
		j.End(v, first)
		j.Done(v, first)
		assert.True(t, j.Busy(v, root("n")) == nil && !j.IsWaiting(v, root("n")) && !j.WorksIn(v, table.Root), "it is done")
		assert.True(t, j.Fits(v, write("n", 10, 6)), "what was under way has ended")
	})
}

// What fails rests or is held back, and which of both decides what ends that.
func TestOutcomes(t *testing.T) {
	s, j := begun(t)
	n := root("n")
	state := func(v *tree.View, want State, err error) {
		t.Helper()
		failure, final := j.Failure(v, n)
		assert.Equal(t, failure, err)
		assert.Equal(t, final, want == Held)
		got := Idle
		if job := j.Of(v, n); job != nil {
			got = job.State
		}
		assert.Equal(t, got, want)
		assert.Equal(t, j.IsWaiting(v, n), want != Idle)
	}
	s.view(func(v *tree.View) {
		job := tries(v, j, n)
		assert.Equal(t, j.Rest(v, job, errSome), 0)
		state(v, Resting, errSome)
		stalled, _ := j.IsStalled(v)
		assert.False(t, stalled, "something rests")
		j.Wake(v, job)
		state(v, Idle, nil)
		assert.Equal(t, tries(v, j, n), job, "the job of the name")
		assert.Equal(t, j.Rest(v, job, errSome), 1)
		tries(v, j, n)
		j.Refuse(v, job, errSome, noon)
		state(v, Held, errSome)
		stalled, cause := j.IsStalled(v)
		assert.True(t, stalled && cause == errSome, cause)
		j.Wake(v, job)
		state(v, Held, errSome)
		assert.False(t, j.TryAgain(v, noon.Add(4*HoldFor-1)), "it is too early, after the third failure")
		assert.True(t, j.TryAgain(v, noon.Add(4*HoldFor)), "it is time")
		state(v, Idle, nil)
		tries(v, j, n)
		j.Refuse(v, job, providers.ErrConflict, noon)
		assert.False(t, j.TryAgain(v, noon.Add(1000*time.Hour)), "time does not end a conflict")
		j.Changed(v, []table.Link{n, root("other")})
		state(v, Held, providers.ErrConflict)
	})
	s.writes()
	s.view(func(v *tree.View) {
		j.Changed(v, []table.Link{n})
		state(v, Idle, nil)
		assert.True(t, j.Of(v, n) == nil, "another state begins anew")
	})
}

// A failure of a state that is not there any more holds nothing back.
func TestRefusedTooLate(t *testing.T) {
	s, j := begun(t)
	var job *Job
	s.view(func(v *tree.View) { job = tries(v, j, root("n")) })
	s.writes()
	s.view(func(v *tree.View) {
		j.Refuse(v, job, errSome, noon)
		assert.False(t, j.IsWaiting(v, root("n")) || j.IsHeld(v, job), "it is held back")
	})
}

// Where nothing differs any more there is no job left to plan.
func TestAnew(t *testing.T) {
	s, j := begun(t)
	var job *Job
	s.view(func(v *tree.View) {
		job = tries(v, j, root("n"))
		j.Anew(v, job)
		assert.True(t, j.Of(v, root("n")) == job && job.State == Idle, job)
	})
	s.does(func(tx *tree.Tx) {
		tx.SetRemote(root("n"), &table.Remote{Ino: 10, Kind: providers.KindFile, ContentVersion: 1})
	})
	s.view(func(v *tree.View) {
		j.Anew(v, job)
		assert.True(t, j.Of(v, root("n")) == nil, "both sides agree")
	})
}

// A name waits in vain for a directory that is held back, and is forgiven with it; one in a
// directory that the remote has does not.
func TestFailureOfADirectory(t *testing.T) {
	s, j := begun(t)
	s.has(20, dir, root("d"), none)
	s.has(21, file, at(20, "f"), none)
	s.view(func(v *tree.View) {
		job := j.Hold(v, root("d"), errSome, noon, false)
		assert.True(t, j.IsHeld(v, job), "it is held")
		err, final := j.Failure(v, at(20, "f"))
		assert.True(t, final && err == errSome, err)
		assert.False(t, j.TryAgain(v, noon.Add(1000*time.Hour)), "it waits for a change")
	})
	s.does(func(tx *tree.Tx) { tx.SetRemote(root("d"), &table.Remote{Ino: 20, Kind: providers.KindDir}) })
	s.view(func(v *tree.View) {
		err, _ := j.Failure(v, at(20, "f"))
		assert.OK(t, err)
	})
	s.does(func(tx *tree.Tx) { tx.SetRemote(root("d"), nil) })
	s.view(func(v *tree.View) {
		j.Forgive(v, at(20, "f"))
		assert.False(t, j.IsWaiting(v, root("d")), "it is held back")
		j.Hold(v, root("d"), errSome, noon, true)
		j.ForgiveAll(v)
		assert.False(t, j.IsWaiting(v, root("d")), "it is held back")
		j.Hold(v, root("d"), errSome, noon, true)
		assert.True(t, j.TryAgain(v, noon.Add(HoldFor)), "it is time")
	})
}

// How often a name is lost to others is counted for one state of its content, in a row.
func TestLosses(t *testing.T) {
	s, j := begun(t)
	s.view(func(v *tree.View) {
		job := tries(v, j, root("n"))
		for range mostLosses {
			assert.False(t, j.Lose(v, job), "it is too often")
		}
		tries(v, j, root("n"))
		assert.True(t, j.Lose(v, job), "it is not too often")
	})
	s.writes()
	s.view(func(v *tree.View) { assert.False(t, j.Lose(v, tries(v, j, root("n"))), "that was another state") })
}

// Bytes that went before are no progress, unless they are of another state.
func TestSentAgain(t *testing.T) {
	s, j := begun(t)
	s.view(func(v *tree.View) {
		job := tries(v, j, root("n"))
		assert.True(t, job.Sent.By(5), "progress")
		tries(v, j, root("n"))
		assert.Equal(t, job.Sent.Now(), 0)
		assert.False(t, job.Sent.By(5), "progress")
	})
	s.writes()
	s.view(func(v *tree.View) { assert.True(t, tries(v, j, root("n")).Sent.By(5), "progress") })
}
