package cache

import (
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/providers"
)

// Content whose answer got lost may arrive when it has been asked for, and found
// not to have come. Then the engine still has its operation, and what others seem
// to have changed is an older state of ours: newer content of ours takes its place,
// and so does a deletion. Nobody else was there, and nothing is in conflict.

// isOwnLateWrite reports whether that is what the backend has under a name now, or may
// be: then the question is noted.
func (m *merge) isOwnLateWrite(v *Tx, l table.Link, rec table.Name, r *providers.Info) bool {
	t := v.engine.jobs[l]
	if t == nil || t.attempt.Op == "" || r == nil || r.Kind == providers.KindDir {
		return false
	}
	op := t.attempt
	x, _ := parseSent(op.Other)
	a, ok := m.look(query{question: question{ino: x, gen: op.ContentVersion, at: r.Locator, theirs: r.Version, what: askOurs}, info: *r, l: l, op: op})
	switch {
	case !ok: // once the answer is there
		return true
	case !a.same:
		return false
	}
	if v.table.Inode(x) == nil {
		x = 0
	}
	m.moveRemote(v, l, &rec, &table.Remote{Ino: x, Kind: r.Kind, Version: r.Version, Digest: r.Digest, ContentVersion: op.ContentVersion, AttrGen: op.AttrGen}, x)
	return true
}

// isOurs asks whether an operation of ours left a version.
func (m *merge) isOurs(q query) (bool, error) {
	op := q.op
	info, happened, err := m.v.engine.find(m.ctx, &operation{at: q.at, attempt: &op})
	return happened && info.Version.Matches(q.theirs), err
}
