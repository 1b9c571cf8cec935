package cache

import (
	"bytes"
	"crypto/sha256"
	"encoding/gob"
	"encoding/hex"
	"regexp"
	"strings"

	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/providers"
)

// both: a name was changed here and there. mu is held, in an update.
func (m *merge) both(l table.Link, rec table.Name, r *providers.Info) {
	if m.v.isBeingWritten(rec.Ino) && !m.late[l] {
		return // it is being written: when it was sent, it comes here again
	}
	a, ok := m.ask(l, rec.Ino, r)
	_, renamed := m.v.originOf(rec.Ino) // and otherwise as the backend had it
	switch {
	case !ok: // once the answer is there
	case a.same:
		m.adopt(l, rec, r)
	case a.broken && renamed:
		// Nothing of ours is lost: another changed it under its old name. The next
		// try finds that first, and then has what it is now.
	case m.v.isRemnant(rec.Ino, a):
		if m.remnant(l, rec.Ino) {
			m.takeTheirs(l, rec, r)
			m.report.Changed++
		}
	case a.broken:
		m.hold(l, rec, r, "changed here and there, and part of what ours began from is gone")
	default:
		m.decide(l, rec, r, a.sum)
	}
}

// decide is for what was changed here and there, and is not the same.
func (m *merge) decide(l table.Link, rec table.Name, r *providers.Info, sum string) {
	policy := m.v.o.Policy.Conflict
	u, ok := m.unionOf(l, rec.Ino, rec.Base, r)
	switch {
	case !ok: // once it is known
	case u != nil:
		m.unite(l, rec, r, u)
	case policy.splits():
		m.divide(l, rec, r, sum)
	case policy == LastWriterWins && !m.keptTheirs(l, r): // once it is in the history
	default:
		m.byPolicy(l, rec, r)
	}
}

// byPolicy deals with a conflict of a name that stays ours.
func (m *merge) byPolicy(l table.Link, rec table.Name, r *providers.Info) {
	switch m.v.o.Policy.Conflict {
	case LastWriterWins:
	case Abort:
		m.hold(l, rec, r, "changed here and there (storage_conflict)") // as the AIP-35 adapter guide calls it
		return
	default:
		m.hold(l, rec, r, "changed here and there")
		return
	}
	m.overwrite(l, rec, r)
	m.tell(l, "changed here and there: ours replaces theirs, which is in the history", true)
}

// overwrite has ours sent in place of the version that is there.
func (m *merge) overwrite(l table.Link, rec table.Name, r *providers.Info) {
	m.rehome(l, &rec, versionOf(r), rec.Ino)
}

// versionOf is r as what the backend has and nobody here does.
func versionOf(r *providers.Info) *table.Base {
	return &table.Base{Kind: r.Kind, Version: r.Version, Digest: r.Digest}
}

// hold keeps both sides as they are until somebody resolves it.
func (m *merge) hold(l table.Link, rec table.Name, r *providers.Info, reason string) {
	since := m.v.now()
	if rec.Held == nil || !rec.Held.Conflict {
		m.tell(l, reason, true)
	} else {
		at, _ := m.v.path(l)
		m.clash(l, at.String())
		if side, ok := decodeSide(rec.Held.Remote); ok {
			since = side.Since
		}
	}
	rec.Attempt = nil
	rec.Held = &table.Held{Reason: reason, Conflict: true, Remote: encodeInfo(r, since)}
	m.set(l, rec)
}

// adopt: both made the same content. The backend has it already.
func (m *merge) adopt(l table.Link, rec table.Name, r *providers.Info) {
	v, b := m.v, rec.Base
	n := v.table.Edit(rec.Ino)
	base := baseOf(*r, rec.Ino, n)
	if b != nil && b.Ino == rec.Ino && b.AttrGen != n.AttrGen {
		base.AttrGen = b.AttrGen // our attributes are still to be sent
	} else {
		m.takeAttr(rec.Ino, r)
	}
	v.table.Edit(rec.Ino).Origin = table.Origin{Version: r.Version, Digest: r.Digest, Gen: n.Gen}
	m.base(l, &rec, base)
	if b != nil && b.Ino != rec.Ino {
		m.unhomed(b.Ino)
	}
}

// divide keeps both: ours gets the name of a conflict copy, and who has it open
// goes along; theirs gets the name.
func (m *merge) divide(l table.Link, rec table.Name, r *providers.Info, sum string) {
	v, x := m.v, rec.Ino
	name, exists, ok := m.freeCopy(l, sum, false)
	if !ok {
		return
	}
	to := table.Link{Dir: l.Dir, Name: name}
	if exists {
		v.bury(l, x, whyConflict)
	}
	was := baseIno(rec)
	y, n := m.fresh(r, was)
	v.table.Put(y, n)
	m.swap(l, &rec, y)
	m.base(l, &rec, baseOf(*r, y, n))
	if exists {
		m.lost(l, x) // its content has that name already
	} else {
		v.setLocal(to, x, v.stays(to, v.table.Inode(x)))
		v.recordMoved(x, l, to, whyConflict)
		m.touched = append(m.touched, to)
		m.shown(to)
		v.wrote(to)
	}
	if was != x {
		m.unhomed(was)
	}
	m.shown(l)
	v.wrote(l)
	m.report.Changed++
	m.tell(l, "changed here and there: ours is "+name, true)
}

// swap gives a name another inode.
func (m *merge) swap(l table.Link, rec *table.Name, x table.Ino) {
	rec.Ino, rec.Local = x, false
	m.set(l, *rec)
	*rec, _ = m.v.table.Name(l.Dir, l.Name)
	m.shown(l)
}

// aside gives what is here under a name that of a conflict copy, because theirs
// is of another kind. It reports whether the name is free now.
func (m *merge) aside(l table.Link, rec *table.Name) bool {
	v, x := m.v, rec.Ino
	sum, dir := dirSum, isDir(v.table.Inode(x))
	if !dir {
		a, ok := m.ask(l, x, nil)
		if !ok {
			return false
		}
		if v.isRemnant(x, a) && !v.isBeingWritten(x) {
			if !m.remnant(l, x) {
				return false
			}
			m.swap(l, rec, 0)
			m.lost(l, x)
			*rec, _ = v.table.Name(l.Dir, l.Name)
			return true
		}
		sum = a.sum
	}
	name, exists, ok := m.freeCopy(l, sum, dir)
	if !ok {
		return false
	}
	if exists {
		v.bury(l, x, whyConflict)
	}
	m.swap(l, rec, 0)
	to := table.Link{Dir: l.Dir, Name: name}
	if exists {
		m.lost(l, x)
	} else {
		v.setLocal(to, x, v.stays(to, v.table.Inode(x)))
		v.recordMoved(x, l, to, whyConflict)
		m.touched = append(m.touched, to)
		m.shown(to)
	}
	m.tell(l, "of another kind there, changed here: ours is "+name, true)
	*rec, _ = v.table.Name(l.Dir, l.Name)
	return true
}

// freeCopy is the name of a conflict copy of what has a hash, and whether the same
// is there already. Another content of that name (a copy that was edited since, or
// a directory) makes the hash in the name longer, and then another. What must be
// known of all that is in the way is asked at once.
func (m *merge) freeCopy(l table.Link, sum string, dir bool) (name string, exists, ok bool) {
	known := true
	for hash := sum; ; hash = hashOf(hash) {
		for digits := 8; digits <= len(hash); digits *= 2 {
			name = conflictName(l.Name, hash[:digits])
			rec, _ := m.v.table.Name(l.Dir, name)
			switch {
			case rec.Ino == 0:
				return name, false, known
			case dir: // what is in it cannot be compared
				continue
			}
			same, ok := m.sameSum(table.Link{Dir: l.Dir, Name: name}, rec, sum)
			if same {
				return name, true, known
			}
			known = known && ok
		}
	}
}

func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// sameSum reports whether what has a name is content with a hash.
func (m *merge) sameSum(l table.Link, rec table.Name, sum string) (same, ok bool) {
	n := m.v.table.Inode(rec.Ino)
	if isDir(n) || !isRegular(n) && !isSymlink(n) {
		return false, true
	}
	if b := rec.Base; b != nil && b.Ino == rec.Ino && b.Gen == n.Gen && strings.HasPrefix(b.Digest, "sha256:") {
		return b.Digest == "sha256:"+sum, true
	}
	a, ok := m.ask(l, rec.Ino, nil)
	return ok && a.sum == sum, ok
}

// dirSum stands for the hash of a directory, whose copies on all hosts are to
// become one: that of nothing.
const dirSum = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

var conflictPart = regexp.MustCompile(`\.conflict-[0-9a-f]{8,64}`)

// conflictName is the name of a conflict copy: ".conflict-" and the beginning
// of the hash of its content, before the last extension. It depends on nothing
// else, so that every host makes the same copy of the same content. A conflict
// about a conflict copy makes another copy of the first name, so names do not
// grow.
func conflictName(name, hash string) string {
	part := ".conflict-" + hash
	if at := conflictPart.FindStringIndex(name); at != nil && at[0] > 0 {
		name = name[:at[0]] + name[at[1]:]
	}
	stem, ext := name, ""
	if dot := strings.LastIndexByte(name, '.'); dot > 0 && strings.Trim(name[:dot], ".") != "" {
		stem, ext = name[:dot], name[dot:]
	}
	if len(ext)+len(part) > providers.MaxName/2 {
		stem, ext = name, ""
	}
	return cutName(stem, providers.MaxName-len(part)-len(ext)) + part + ext
}

// cutName is name in at most limit bytes, without half a character at its end.
func cutName(name string, limit int) string {
	if len(name) <= limit {
		return name
	}
	for limit > 0 && name[limit]&0xC0 == 0x80 {
		limit--
	}
	return name[:limit]
}

// remoteSide is what a conflict that is held knows of theirs.
type remoteSide struct {
	Info  providers.Info
	Since int64
}

func encodeInfo(r *providers.Info, since int64) []byte {
	var b bytes.Buffer
	if err := gob.NewEncoder(&b).Encode(remoteSide{*r, since}); err != nil {
		return nil
	}
	return b.Bytes()
}

func decodeSide(data []byte) (remoteSide, bool) {
	var s remoteSide
	err := gob.NewDecoder(bytes.NewReader(data)).Decode(&s)
	return s, err == nil
}

func decodeInfo(data []byte) (providers.Info, bool) {
	s, ok := decodeSide(data)
	return s.Info, ok
}

// conflictError is what close and fsync say of a name that is held. To the
// engine it is the backend's conflict, to the kernel the front's.
func conflictError(path, reason string) error { return &heldConflict{path, reason} }

type heldConflict struct{ path, reason string }

func (c *heldConflict) Error() string   { return c.path + ": " + c.reason }
func (c *heldConflict) Unwrap() []error { return []error{fs.ErrConflict, providers.ErrConflict} }

// infoOf is what the backend is known to have under a name. mu is held.
func (v *Volume) infoOf(l table.Link, rec table.Name) providers.Info {
	at, _ := v.home(l)
	b := rec.Base
	return providers.Info{Locator: at, Kind: b.Kind, Size: b.Version.Size, Version: b.Version, Digest: b.Digest}
}
