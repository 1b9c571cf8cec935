package cache

import (
	"errors"
	"fmt"

	"github.com/wsmount/wsmount/cache/internal/commit"
	"github.com/wsmount/wsmount/cache/internal/needle"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/providers"
)

// Guard says what a commit does not take, where the backend takes sets: what is
// in the history of a repository once is there for good. What is held back stays
// here, is told once and listed in Status, and is no obstacle to the rest or to
// later commits. It goes with the next commit once it has changed so that it
// may.
type Guard struct {
	// MaxFile is the largest file that is taken, in bytes; 0: 100 MiB, or what the
	// provider takes if that is less. Where that takes some files that are larger, it is
	// asked.
	MaxFile int64
	// MaxCommit is how much content a commit may bring, in bytes; 0: 500 MiB. The
	// changes that came first go; what would be too much waits for the next commit
	// that somebody asks for, or five minutes where nobody has to. A file over MaxFile
	// does not count: it goes elsewhere, or nowhere. So what is meant
	// arrives in parts, and a dataset that a program unpacked by mistake is in
	// Status before all of it is in the history.
	MaxCommit int64
	// Secrets are values that no content may hold; nil: none are known.
	Secrets *Secrets

	asks bool // the provider is asked about files over MaxFile
}

// limit takes in what a provider takes.
func (g *Guard) limit(c providers.Capabilities) {
	if c.MaxSize > 0 && c.MaxSize <= g.MaxFile {
		g.MaxFile, g.asks = c.MaxSize, c.LargerSome
	}
}

func (g *Guard) isTooLarge(size int64) bool { return size > g.MaxFile && !g.asks }

const (
	defaultMaxFile   = 100 << 20
	defaultMaxCommit = 500 << 20
)

// guardError is why a commit does not take a file.
type guardError struct {
	text   string
	passes bool // it may go later as it is
	secret bool // it is about what the content holds
	asked  bool // the provider has said so
}

func (e *guardError) Error() string { return e.text }

func (g *Guard) tooLarge(size int64) error {
	return &guardError{asked: g.asks, text: fmt.Sprintf("%d bytes, and a commit takes files of up to %s: make it smaller, keep it elsewhere, or exclude or ignore it", size, bytesOf(g.MaxFile))}
}

func (g *Guard) tooMuch(size int64) error {
	return &guardError{text: fmt.Sprintf("with its %d bytes the commit would bring more than %s: it goes with a later one", size, bytesOf(g.MaxCommit)), passes: true}
}

func bytesOf(n int64) string {
	if n%(1<<20) == 0 {
		return fmt.Sprintf("%d MiB", n>>20)
	}
	return fmt.Sprintf("%d bytes", n)
}

// weigh says why content does not go with a commit that brings so much already.
func (f *snapshot) weigh(ino table.Ino, n *table.Inode, total int64) error {
	g := &f.o.Guard
	switch {
	case g.isTooLarge(n.Size):
		return g.tooLarge(n.Size)
	case n.Size <= g.MaxFile && total+n.Size > g.MaxCommit && total > 0:
		return g.tooMuch(n.Size)
	}
	if secret, ok := f.found[ino]; ok {
		if secret.gen == n.ContentVersion && secret.set == g.Secrets.needles() {
			return secret.err
		}
		delete(f.found, ino)
	}
	return nil
}

// finding is a secret in content of a state, as those knew that were looked for.
type finding struct {
	gen uint64
	set *needle.Set
	err error
}

// holdStopped holds back what a set had to leave out.
func (c *setCommitter) holdStopped(names []commit.Stopped) {
	for _, n := range names {
		c.v.engine.holdName(n.Link, n.Err)
	}
}

// toldAgain reports whether a name is held back for the same reason again: whoever asks
// for a commit has it looked at anew, and would be told each time.
func toldAgain(rec table.Name, cause error) bool {
	return rec.Held != nil && rec.Held.Reason == cause.Error() && guardOf(cause) != nil
}

// toldBefore reports whether this run has told the same of a name already, about which
// the provider is asked each time.
func (e *engine) toldBefore(v *View, l table.Link, cause error) bool {
	g := guardOf(cause)
	if g == nil || !g.asked {
		return false
	}
	was := e.larger[l]
	e.larger[l] = g.text
	return was == g.text
}

// guardOf is the guard's error that an error is, or nil.
func guardOf(err error) (g *guardError) {
	errors.As(err, &g)
	return g
}
