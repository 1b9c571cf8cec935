package commit

import (
	"fmt"

	"github.com/wsmount/wsmount/cache/internal/pending"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/providers"
)

// Guard limits the content of a commit, where the remote takes sets: content that is in the
// history of a repository once stays in it for good. Files that are held back stay local, are
// reported once and listed in Status, and do not delay the other names or later commits. A file
// goes with the next commit once it has changed so that it may.
type Guard struct {
	// MaxFile is the size of the largest file that is taken, in bytes; 0: 100 MiB, or the
	// provider's limit if that is less. A provider that takes some larger files is asked about
	// each.
	MaxFile int64
	// MaxCommit is how much content a commit may bring, in bytes; 0: 500 MiB. The changes that
	// came first go; the excess waits for the next commit that is asked for, or for five minutes
	// where commits are not asked for. A file over MaxFile does not count: it goes elsewhere, or
	// nowhere. So intended content arrives in parts, and a dataset that a program unpacked by
	// mistake is in Status before all of it is in the history.
	MaxCommit int64
	// Secrets are values that no content may hold; nil: none are known.
	Secrets *Secrets

	asks bool // the provider is asked about files over MaxFile
}

// Limit applies the limits of a provider.
func (g *Guard) Limit(c providers.Capabilities) {
	if c.MaxSize > 0 && c.MaxSize <= g.MaxFile {
		g.MaxFile, g.asks = c.MaxSize, c.LargerSome
	}
}

// IsTooLarge reports whether a file of a size does not go.
func (g *Guard) IsTooLarge(size int64) bool { return size > g.MaxFile && !g.asks }

// The defaults of a Guard.
const (
	DefaultMaxFile   = 100 << 20
	DefaultMaxCommit = 500 << 20
)

// TooLarge is why a file of a size does not go.
func (g *Guard) TooLarge(size int64) error {
	return &pending.Refusal{Asked: g.asks, Text: fmt.Sprintf("%d bytes, and a commit takes files of up to %s: make it smaller, keep it elsewhere, or exclude or ignore it", size, bytesOf(g.MaxFile))}
}

func (g *Guard) tooMuch(size int64) error {
	return &pending.Refusal{Text: fmt.Sprintf("with its %d bytes the commit would bring more than %s: it goes with a later one", size, bytesOf(g.MaxCommit)), Passes: true}
}

func bytesOf(n int64) string {
	if n%(1<<20) == 0 {
		return fmt.Sprintf("%d MiB", n>>20)
	}
	return fmt.Sprintf("%d bytes", n)
}

// weigh says why content does not go with a commit that already brings total bytes.
func (g *Guard) weigh(found Findings, ino table.Ino, n *table.Inode, total int64) error {
	switch {
	case g.IsTooLarge(n.Size):
		return g.TooLarge(n.Size)
	case n.Size <= g.MaxFile && total+n.Size > g.MaxCommit && total > 0:
		return g.tooMuch(n.Size)
	}
	return found.check(ino, n.ContentVersion, g.Secrets)
}
