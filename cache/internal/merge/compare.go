package merge

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"

	"github.com/wsmount/wsmount/cache/internal/files"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/upload"
	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/providers"
)

// answer finds the answers to the open questions.
func (i *inquiry) answer() {
	for _, q := range i.open {
		if _, done := i.answers[q.question]; done {
			continue
		}
		var a answer
		switch q.what {
		case askKeep:
			a.kept, a.err = i.keepTheirs(q)
		case askNames:
			a.count, a.err = i.countNames(q.head, q.at)
		case askOurs:
			a.same, a.err = i.isOurs(q)
		case askLines:
			a.union, a.err = i.mergeLines(q)
		case askRemnant:
			a.remnant, a.sum, a.err = i.makeRemnant(q)
		case askFar:
			a.sum, a.err = i.hashTheirs(q)
		default:
			a = i.compare(q)
		}
		if a.err != nil {
			i.v.o.Side.Log.Warn("a conflict is left for later", "path", q.at, "err", a.err)
		}
		i.answers[q.question] = a
	}
}

// keepTheirs puts a version that is about to be overwritten into the history; false: it is too
// large for that.
func (i *inquiry) keepTheirs(q query) (kept bool, err error) {
	err = i.v.o.Volume.Retry(i.ctx, func(ctx context.Context) (err error) {
		kept, err = i.v.o.Past.Keep(ctx, q.l, q.info)
		return err
	})
	return kept, err
}

// compareBytes is the size up to which content is fetched for a comparison; the remote's hash
// suffices for any size.
const compareBytes = 16 << 20

// compare finds the hash of ours, and whether theirs is the same.
func (i *inquiry) compare(q query) answer {
	a := answer{}
	other, want := providers.Hasher(q.info.Digest) // nil: the remote gives no hash of theirs
	if a.broken, a.err = i.v.restIsGone(i.ctx, q.ino); a.broken || a.err != nil {
		return a
	}
	size, err := i.v.readLocal(i.ctx, q.ino, func(r io.Reader) error {
		h := sha256.New()
		into := io.Writer(h)
		if other != nil {
			other.Reset()
			into = io.MultiWriter(h, other)
		}
		_, err := io.Copy(into, r)
		a.sum = hex.EncodeToString(h.Sum(nil))
		return err
	})
	switch {
	case errors.Is(err, files.ErrVersionGone) || errors.Is(err, fs.ErrStale):
		a.broken = true
		a.sum = hex.EncodeToString(sha256.New().Sum(nil))
		return a
	case err != nil:
		return answer{err: err}
	case q.at.IsRoot() || q.info.Size != size || i.kind(q.ino) != q.info.Kind:
		return a
	case other != nil:
		a.same = hex.EncodeToString(other.Sum(nil)) == want
	case size <= compareBytes:
		a.same, a.err = i.sameBytes(q, a.sum)
	}
	return a
}

func (i *inquiry) kind(x table.Ino) (k providers.Kind) {
	locked := i.v.lock()
	defer locked.unlock()
	if n := locked.Inode(x); n != nil && n.IsSymlink() {
		return providers.KindSymlink
	}
	return providers.KindFile
}

// sameBytes reads theirs.
func (i *inquiry) sameBytes(q query, sum string) (bool, error) {
	theirs, err := i.hashTheirs(q)
	if files.IsElsewhere(err) {
		return false, nil // it has changed again; the next look tells
	}
	return theirs == sum, err
}

func (i *inquiry) hashTheirs(q query) (sum string, err error) {
	err = i.v.readRemoteVersion(i.ctx, i.remote, q.info, func(r io.Reader) error {
		h := sha256.New()
		_, err := io.Copy(h, r)
		sum = hex.EncodeToString(h.Sum(nil))
		return err
	})
	return sum, err
}

// isOurs asks whether an operation of ours left a version.
func (i *inquiry) isOurs(q query) (bool, error) {
	op := q.op
	info, happened, err := i.v.o.Executor.Find(i.ctx, &upload.Operation{At: q.at, Attempt: &op})
	return happened && info.Version.Matches(q.theirs), err
}
