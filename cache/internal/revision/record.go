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

// Rules say which names of a revision are shown. A person may change them, and a table with
// the same revision and other rules has other names.
type Rules string

// RulesOf are the rules of a working copy: the name of its ignore files, and what it excludes
// (nil: nothing).
func RulesOf(ignoreFile string, exclude fmt.Stringer) Rules {
	if exclude == nil {
		return Rules(ignoreFile)
	}
	return Rules(ignoreFile + "\x00" + exclude.String())
}

// mark is what the table has for a synced revision.
func (rules Rules) mark(r providers.Revision) []byte {
	if r == "" {
		return nil
	}
	return fmt.Appendf(nil, "1 %x %s", sha256.Sum256([]byte(rules)), r)
}

// Synced is the revision whose names the table has as those of the remote, by these rules;
// "": that is not known. It is written together with the names, so that no one has to compare
// a whole tree to know it: not after a crash, not in another run. Of what a commit made whose
// answer was lost the table may have some already: that is resolved before the head moves on.
func Synced(v Reader, rules Rules) providers.Revision {
	mark := v.Get(keySynced)
	r := providers.Revision(mark[bytes.LastIndexByte(mark, ' ')+1:])
	if !bytes.Equal(rules.mark(r), mark) {
		return ""
	}
	return r
}

// Last is the revision that StandsOn would be, by whatever rules; "": it is not known, or about
// to be another.
func Last(v Reader) providers.Revision {
	if v.Get(keyRewind) != nil {
		return ""
	}
	mark := v.Get(keySynced)
	return cmp.Or(providers.Revision(mark[bytes.LastIndexByte(mark, ' ')+1:]), Committed(v))
}

// StandsOn is the revision that what is shown stands on, that of the last pull or commit: of
// a table that does not say, what the last commit made.
func StandsOn(v Reader, rules Rules) providers.Revision {
	return cmp.Or(Synced(v, rules), Committed(v))
}

// SetSynced notes it; "": it is not known any more.
func SetSynced(tx Writer, r providers.Revision, rules Rules) { tx.Set(keySynced, rules.mark(r)) }

// maxPreviousHeads bounds them: a file that many pulls passed by, while it was changed
// locally, is merged no more.
const maxPreviousHeads = 32

// PreviousHeads are the revisions that the head was before, the last first: what a file began
// from that was changed meanwhile is in one of them.
func PreviousHeads(v Reader) (all []providers.Revision) {
	if note := v.Get(keyPreviousHeads); note != nil {
		_ = json.Unmarshal(note, &all) // damaged, it is as if they were forgotten
	}
	return all
}

// PassedBy notes a revision that is not the head any more.
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

// Upstream is the last revision of the remote's tracked branch that the head has: what came
// after it is ours. "": it is not known.
func Upstream(v Reader) providers.Revision { return providers.Revision(v.Get(keyUpstream)) }

// SetUpstream notes it.
func SetUpstream(tx Writer, r providers.Revision) { tx.Set(keyUpstream, []byte(r)) }

// Merging is the revision of ours that the next commit merges with theirs; "": none.
func Merging(v Reader) providers.Revision { return providers.Revision(v.Get(keyMerging)) }

// SetMerging notes it.
func SetMerging(tx Writer, r providers.Revision) {
	if r == "" {
		tx.Set(keyMerging, nil)
		return
	}
	tx.Set(keyMerging, []byte(r))
}

// Committed is the revision that the last commit made; "": none did.
func Committed(v Reader) providers.Revision { return providers.Revision(v.Get(keyCommitted)) }

// SetCommitted notes it.
func SetCommitted(tx Writer, r providers.Revision) { tx.Set(keyCommitted, []byte(r)) }

// Comes notes that another revision is shown from now on.
func Comes(tx Writer, now int64) { tx.Set(keySince, fmt.Appendf(nil, "%x", now)) }

// Since is how old what the remote tells no time of is at least: of a store of whole
// revisions as old as the pull that brought this one, in nanoseconds since 1970; 0: nothing
// is known.
func Since(v Reader) int64 {
	at, _ := strconv.ParseInt(string(v.Get(keySince)), 16, 64)
	return at
}

// SetFirst notes when the revision was made that a working copy begins with; zero, or a time
// that is still to come: no one says.
func SetFirst(tx Writer, made, now time.Time) {
	if made.Unix() > 0 && made.Before(now) {
		tx.Set(keyFirst, fmt.Appendf(nil, "%x", made.UnixNano()))
	}
}

// FirstListed is the time of change of what is listed for the first time: that of the first
// revision, whoever lists it, until another came, of which others may have seen something
// before.
func FirstListed(v Reader, now table.Time) table.Time {
	at, err := strconv.ParseInt(string(v.Get(keyFirst)), 16, 64)
	if err != nil || Since(v) != 0 {
		return now
	}
	return table.Stamp(at)
}
