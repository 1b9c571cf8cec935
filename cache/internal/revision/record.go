package revision

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/providers"
)

const (
	keySynced        = "pull/level"
	keyPreviousHeads = "pull/earlier"
	keyUpstream      = "pull/upstream"
	keyMerging       = "pull/merging"
	keyFirst         = "pull/first"
	keySince         = "pull/since"
	keyCommitted     = "engine/revision"
)

// Reader is a table that is read.
type Reader interface{ Get(key string) []byte }

// Writer is a table that is changed.
type Writer interface {
	Reader
	Set(key string, value []byte)
}

// Rules say which names of a revision are shown. A person may change them, and a table with the
// same revision and other rules has other names.
type Rules string

// RulesOf are the rules of a working copy: the name of its ignore files, and its exclusions (nil:
// none).
func RulesOf(ignoreFile string, exclude fmt.Stringer) Rules {
	if exclude == nil {
		return Rules(ignoreFile)
	}
	return Rules(ignoreFile + "\x00" + exclude.String())
}

// mark is the table's value for a synced revision.
func (rules Rules) mark(r providers.Revision) []byte {
	if r == "" {
		return nil
	}
	return fmt.Appendf(nil, "1 %x %s", sha256.Sum256([]byte(rules)), r)
}

// Synced is the revision whose names the table has as the remote side, by these rules; "": that is
// not known. It is written together with the names, so that no comparison of a whole tree is
// needed to know it, after a crash or in another run. The table may have some names of a commit
// whose answer was lost already: its outcome is resolved before the head moves on.
func Synced(v Reader, rules Rules) providers.Revision {
	mark := v.Get(keySynced)
	r := providers.Revision(mark[bytes.LastIndexByte(mark, ' ')+1:])
	if !bytes.Equal(rules.mark(r), mark) {
		return ""
	}
	return r
}

// Last is StandsOn regardless of the rules; "": the revision is not known, or about to change.
func Last(v Reader) providers.Revision {
	if v.Get(keyRewind) != nil {
		return ""
	}
	mark := v.Get(keySynced)
	return cmp.Or(providers.Revision(mark[bytes.LastIndexByte(mark, ' ')+1:]), Committed(v))
}

// StandsOn is the revision that the shown tree is based on, that of the last pull or commit: if
// the table does not say, the one that the last commit made.
func StandsOn(v Reader, rules Rules) providers.Revision {
	return cmp.Or(Synced(v, rules), Committed(v))
}

// SetSynced records Synced; "": it is not known any more.
func SetSynced(tx Writer, r providers.Revision, rules Rules) { tx.Set(keySynced, rules.mark(r)) }

// maxPreviousHeads bounds them: a file that was changed locally during more pulls is not merged
// any more.
const maxPreviousHeads = 32

// PreviousHeads are the revisions that the head was before, the last first: the base of a file
// that was changed meanwhile is in one of them.
func PreviousHeads(v Reader) (all []providers.Revision) {
	if note := v.Get(keyPreviousHeads); note != nil {
		_ = json.Unmarshal(note, &all) // a damaged record is like none
	}
	return all
}

// PassedBy records a revision that is not the head any more.
func PassedBy(tx Writer, r providers.Revision) error {
	if r == "" {
		return nil
	}
	all := slices.DeleteFunc(PreviousHeads(tx), func(old providers.Revision) bool { return old == r })
	note, err := json.Marshal(slices.Insert(all, 0, r)[:min(len(all)+1, maxPreviousHeads)])
	if err == nil {
		tx.Set(keyPreviousHeads, note)
	}
	return err
}

// Upstream is the last revision of the remote's tracked branch that the head has: later ones are
// local. "": it is not known.
func Upstream(v Reader) providers.Revision { return providers.Revision(v.Get(keyUpstream)) }

// SetUpstream records Upstream.
func SetUpstream(tx Writer, r providers.Revision) { tx.Set(keyUpstream, []byte(r)) }

// Merging is the local revision that the next commit merges with the remote's; "": none.
func Merging(v Reader) providers.Revision { return providers.Revision(v.Get(keyMerging)) }

// SetMerging records Merging.
func SetMerging(tx Writer, r providers.Revision) {
	if r == "" {
		tx.Set(keyMerging, nil)
		return
	}
	tx.Set(keyMerging, []byte(r))
}

// Committed is the revision that the last commit made; "": none did.
func Committed(v Reader) providers.Revision { return providers.Revision(v.Get(keyCommitted)) }

// SetCommitted records Committed.
func SetCommitted(tx Writer, r providers.Revision) { tx.Set(keyCommitted, []byte(r)) }

// Comes records that another revision is shown from now on.
func Comes(tx Writer, now int64) { tx.Set(keySince, fmt.Appendf(nil, "%x", now)) }

// Since is the birth time of inodes for which the remote gives no time: in a store of whole
// revisions the time of the pull that brought the present one, in nanoseconds since 1970; 0: not
// known.
func Since(v Reader) int64 {
	at, _ := strconv.ParseInt(string(v.Get(keySince)), 16, 64)
	return at
}

// SetFirst records when the first revision of a working copy was made; zero, or a time in the
// future: it is not known.
func SetFirst(tx Writer, made, now time.Time) {
	if made.Unix() > 0 && made.Before(now) {
		tx.Set(keyFirst, fmt.Appendf(nil, "%x", made.UnixNano()))
	}
}

// FirstListed is the time of change of an entry that is listed for the first time: that of the
// first revision, whenever it is listed; now, once another revision came, as programs may have
// seen an older state.
func FirstListed(v Reader, now table.Time) table.Time {
	at, err := strconv.ParseInt(string(v.Get(keyFirst)), 16, 64)
	if err != nil || Since(v) != 0 {
		return now
	}
	return table.Stamp(at)
}
