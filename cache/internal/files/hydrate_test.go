package files

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/table/tabletest"
	"github.com/wsmount/wsmount/cache/internal/tree"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
)

// An answer is what the remote says to one read of a scene.
type answer struct {
	content string
	then    error  // after the content; nil: its end
	err     error  // in place of it
	during  func() // while it is asked
}

// A scene is a file "f" that only the remote has, in content version 7, and a remote that
// gives answers one after the other, the last for ever.
type scene struct {
	*Hydrator
	tree    *tree.Tree
	disk    *vfs.MemFS // of the table
	x       table.Ino
	answers []answer
	asked   []string // where a read was asked for
	moved   int      // how often there was progress
	looks   int      // at names
	look    func()   // what comes of it
	cancel  func()   // ends the call that is followed
	now     time.Time
}

const version = 7

func newScene(t *testing.T, answers ...answer) *scene {
	t.Helper()
	disk := vfs.NewCrashableMem()
	tab := assert.Of(table.Open("/files", table.Options{FS: disk, Strict: true})).OK(t)
	t.Cleanup(func() { tab.Close() })
	s := &scene{tree: tree.New(tab, tree.Options{}), disk: disk, answers: answers, now: time.Unix(1000, 0), look: func() {}}
	s.update(func(tx *tree.Tx) {
		tx.Put(table.Root, &table.Inode{Mode: syscall.S_IFDIR, Loaded: true})
		s.x = tx.Alloc()
		tx.Put(s.x, &table.Inode{Mode: syscall.S_IFREG | 0o644, Size: 3, ContentVersion: version})
	})
	s.place("f", version)
	s.Hydrator = NewHydrator(HydratorOptions{Tree: s.tree, Remote: s, Names: s, Now: func() time.Time { return s.now }, Patience: time.Minute})
	return s
}

func (s *scene) update(do func(*tree.Tx)) {
	err := s.tree.Update(func(tx *tree.Tx) error {
		do(tx)
		return nil
	}, nil)
	if err != nil {
		panic(err)
	}
}

// afterPowerLoss is the file by the table that the disk has.
func (s *scene) afterPowerLoss(t *testing.T) table.Inode {
	t.Helper()
	n := tabletest.AfterPowerLoss(t, s.disk, "/files").Inode(s.x)
	if n == nil {
		return table.Inode{}
	}
	return *n
}

// place has the remote have a content version of the file under a name, and under no other.
func (s *scene) place(name string, content uint64) {
	s.update(func(tx *tree.Tx) {
		for _, l := range tx.Inode(s.x).RemoteLinks {
			tx.SetName(l, table.Name{})
		}
		remote := &table.Remote{Ino: s.x, Kind: providers.KindFile, ContentVersion: content}
		tx.SetName(table.Link{Dir: table.Root, Name: name}, table.Name{Ino: s.x, Remote: remote})
		tx.Edit(s.x).ContentVersion = content
	})
}

func (s *scene) Read(_ context.Context, _ table.Ino, at providers.Locator, _ providers.ReadOptions) (providers.Content, error) {
	s.asked = append(s.asked, at.String())
	a := s.answers[0]
	if len(s.answers) > 1 {
		s.answers = s.answers[1:]
	}
	if a.during != nil {
		a.during()
	}
	then := a.then
	if then == nil {
		then = io.EOF
	}
	return providers.Content{Body: io.NopCloser(io.MultiReader(strings.NewReader(a.content), failingReader{then}))}, a.err
}

type failingReader struct{ err error }

func (f failingReader) Read([]byte) (int, error) { return 0, f.err }

func (s *scene) Patiently(ctx context.Context, do func(context.Context, func()) error) error {
	return do(ctx, func() { s.moved++ })
}

func (s *scene) Retry(ctx context.Context, most time.Duration, hope func(error) bool, do func(context.Context) error) error {
	for {
		err := do(ctx)
		if err == nil || providers.KindOf(err).Retry != providers.RetryLater || !hope(err) {
			return err
		}
		s.now = s.now.Add(most)
	}
}

func (s *scene) Revalidate(context.Context, table.Ino) error {
	s.looks++
	s.look()
	return nil
}

func (s *scene) AwaitPlace(context.Context, table.Ino) bool { return false }

// fetch fetches the three bytes of the file.
func (s *scene) fetch() (string, error) {
	var to buffer
	err := s.Fetch(context.Background(), s.x, version, 0, 3, &to)
	return to.String(), err
}

type buffer struct{ bytes.Buffer }

func (b *buffer) WriteAt(p []byte, off int64) (int, error) {
	b.Truncate(int(off))
	return b.Write(p)
}

var refused = answer{err: providers.ErrUnavailable}

// A fetch gives the bytes of one version, or says why not, and looks at no name.
func TestFetch(t *testing.T) {
	replaced := answer{err: providers.ErrConflict}
	for name, c := range map[string]struct {
		answers []answer
		want    string
		err     error
		asked   string
		moved   int
	}{
		"at once":                 {[]answer{{content: "one"}}, "one", nil, "f", 1},
		"after a refusal":         {[]answer{refused, {content: "one"}}, "one", nil, "f f", 1},
		"broken off":              {[]answer{{content: "o", then: io.ErrUnexpectedEOF}, {content: "one"}}, "one", nil, "f f", 2},
		"broken off at one place": {[]answer{{content: "on", then: io.ErrUnexpectedEOF}, {content: "on", then: io.ErrUnexpectedEOF}, {content: "one"}}, "one", nil, "f f f", 2},
		"too short":               {[]answer{{content: "on"}, {content: "one"}}, "one", nil, "f f", 2},
		"too long":                {[]answer{{content: "ones"}, {content: "one"}}, "one", nil, "f f", 1},
		"not allowed":             {[]answer{{err: providers.ErrPermission}}, "", providers.ErrPermission, "f", 0},
		"replaced":                {[]answer{replaced}, "", ErrVersionGone, "f", 0},
		"another kind":            {[]answer{{err: ErrVersionGone}}, "", ErrVersionGone, "f", 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, c.answers...)
			got, err := s.fetch()
			assert.Is(t, err, c.err)
			assert.False(t, errors.Is(err, providers.ErrConflict), "it counts as a conflict")
			if err == nil {
				assert.Equal(t, got, c.want)
			}
			assert.Equal(t, strings.Join(s.asked, " "), c.asked, "reads")
			assert.Equal(t, s.moved, c.moved, "progress")
			assert.Equal(t, s.looks, 0, "looks at names")
		})
	}
}

// What moves while it is read is read where it is then, and what becomes another version is
// not.
func TestFetchOfWhatMoves(t *testing.T) {
	s := newScene(t)
	s.answers = []answer{{err: providers.ErrNotExist, during: func() { s.place("g", version) }}, {content: "one"}}
	got := assert.Of(s.fetch()).OK(t)
	assert.Equal(t, got, "one")
	assert.Equal(t, strings.Join(s.asked, " "), "f g", "reads")

	s.answers = []answer{{err: providers.ErrConflict, during: func() { s.place("g", version+1) }}}
	assert.Is(t, assert.ErrOf(s.fetch()), ErrOutdated)
	assert.Is(t, assert.ErrOf(s.fetch()), ErrOutdated)
	assert.Equal(t, len(s.asked), 3, "reads")
}

// Not more is read at once than is good for the remote. What becomes another version while
// a fetch waits for its turn is not asked for.
func TestFetchesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, answer{content: "one"})
		for range maxFetches {
			s.slots <- struct{}{}
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		fetch := func() { done <- s.Fetch(ctx, s.x, version, 0, 3, &buffer{}) }
		go fetch()
		synctest.Wait()
		cancel()
		assert.Is(t, <-done, context.Canceled)
		ctx = t.Context()
		go fetch()
		synctest.Wait()
		s.place("f", version+1)
		<-s.slots
		assert.Is(t, <-done, ErrOutdated)
		assert.Equal(t, len(s.asked), 0, "reads")
		assert.Equal(t, len(s.slots), maxFetches-1, "fetches under way")
	})
}

// A remote that refuses all reads is given its time once, and a second after that, until it
// answers.
func TestFetchOfARemoteThatRefuses(t *testing.T) {
	s := newScene(t, refused)
	took := func() time.Duration {
		began := s.now
		assert.Is(t, assert.ErrOf(s.fetch()), providers.ErrUnavailable)
		return s.now.Sub(began)
	}
	assert.Equal(t, took(), time.Minute)
	assert.Equal(t, took(), TriedFor)
	assert.Is(t, s.Fetch(t.Context(), s.x, version+1, 0, 3, nil), ErrOutdated) // which asked nothing
	ctx, cancel := context.WithCancel(t.Context())
	s.answers = []answer{{during: cancel, err: context.Canceled}}
	assert.Is(t, s.Fetch(ctx, s.x, version, 0, 3, nil), context.Canceled)
	s.answers = []answer{refused}
	assert.Equal(t, took(), TriedFor, "after two reads that the remote did not answer, it took")
	s.answers = []answer{{err: providers.ErrPermission}, refused}
	assert.Is(t, assert.ErrOf(s.fetch()), providers.ErrPermission) // it has answered
	assert.Equal(t, took(), time.Minute)
}

type fullDisk struct{}

func (fullDisk) WriteAt([]byte, int64) (int, error) { return 0, syscall.ENOSPC }

// That content finds no room is no refusal of the remote: it is not asked again.
func TestFetchOntoAFullDisk(t *testing.T) {
	s := newScene(t, answer{content: "one"})
	assert.Is(t, s.Fetch(t.Context(), s.x, version, 0, 3, fullDisk{}), syscall.ENOSPC)
	assert.Equal(t, len(s.asked), 1, "reads")
}

// A caller whose version is gone learns what became of it.
func TestFollow(t *testing.T) {
	for name, c := range map[string]struct {
		look  func(*scene) // what a look at the names brings
		err   error
		looks int
	}{
		"at another place": {func(s *scene) { s.place("g", version); s.answers = []answer{{content: "one"}} }, nil, 1},
		"another version":  {func(s *scene) { s.place("f", version+1) }, ErrOutdated, 1},
		"still listed":     {func(*scene) {}, ErrNotServed, 1},
		"nowhere": {func(s *scene) {
			s.update(func(tx *tree.Tx) { tx.SetName(table.Link{Dir: table.Root, Name: "f"}, table.Name{Ino: s.x}) })
		}, ErrPartial, 1},
		"gone at each place":  {func(s *scene) { s.place("f"+string(rune('0'+s.looks)), version) }, ErrVersionGone, followed - 1},
		"while the call ends": {func(s *scene) { s.cancel() }, context.Canceled, 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, answer{err: providers.ErrNotExist})
			ctx, cancel := context.WithCancel(t.Context())
			s.look, s.cancel = func() { c.look(s) }, cancel
			err := s.Follow(ctx, func() error { return s.Fetch(ctx, s.x, version, 0, 3, &buffer{}) })
			assert.Is(t, err, c.err)
			assert.Equal(t, s.looks, c.looks, "looks at names")
			assert.True(t, c.err != ErrNotServed || strings.Count(err.Error(), "gone") == 1 && !strings.Contains(err.Error(), "exist"), err, "says no more than that")
		})
	}
}
