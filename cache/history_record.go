package cache

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/providers"
)

// record is a Version as the table keeps it:
//
//	hv/<id>           the record
//	hn/<dir>/<name>   the last record of a name, and how many there were
//	hk/<id>           what the store keeps under this id: size, record
//	hq/<inode>        id under which content is kept once nothing holds it
//	hz/               the time up to which records were given up
//
// Names are (directory, name), as everywhere: what was recorded before a
// directory is renamed follows it.
type record struct {
	Change string    `json:"k"`
	Why    string    `json:"y,omitempty"`
	Number uint64    `json:"n"`
	Ino    table.Ino `json:"i"`
	Dir    table.Ino `json:"d"`
	Name   string    `json:"m"`
	Path   string    `json:"p"` // at that time
	From   *link     `json:"f,omitempty"`
	Time   int64     `json:"t"`
	Mode   uint32    `json:"o"`
	UID    uint32    `json:"u,omitempty"`
	PID    uint32    `json:"q,omitempty"`
	Cmd    string    `json:"c,omitempty"`
	Size   int64     `json:"s,omitempty"`
	SHA    string    `json:"h,omitempty"`
	Gen    uint64    `json:"g,omitempty"`
	Birth  int64     `json:"w,omitempty"` // of the inode; of one that is New, since when it is there
	Base   string    `json:"b,omitempty"`
	Target string    `json:"l,omitempty"`  // of a symbolic link that ended
	Kept   bool      `json:"kp,omitempty"` // the store has the content
	Copy   uint64    `json:"cp,omitempty"` // under this id; 0: under the record's
	New    bool      `json:"nw,omitempty"` // the inode was made since the record before, if any
	Stays  bool      `json:"st,omitempty"` // the name stayed: content ended, not the file
	Back   uint64    `json:"bk,omitempty"` // the record of the same name before
	Prev   uint64    `json:"pv,omitempty"` // the content of the same inode before
	Of     uint64    `json:"of,omitempty"` // the record with this content
	Commit string    `json:"ct,omitempty"` // the revision that it went into
	Past   *pastAt   `json:"pa,omitempty"` // where the store has the content
	Before *pastAt   `json:"pb,omitempty"` // and that which there was before, if it has no record
	Actor
}

// link is a place that something was moved from.
type link struct {
	Dir  table.Ino `json:"d"`
	Name string    `json:"m"`
	Path string    `json:"p"`
}

// at is the name that a record is about.
func (r *record) at() table.Link { return table.Link{Dir: r.Dir, Name: r.Name} }

const (
	versionPrefix = "hv/"
	headPrefix    = "hn/"
	keptPrefix    = "hk/"
	queuePrefix   = "hq/"
	prunedKey     = "hz/"
)

// goesAway is queued for content that does not go into the history.
const goesAway = "-"

func versionKey(id uint64) string     { return hexKey(versionPrefix, id) }
func keptKey(id uint64) string        { return hexKey(keptPrefix, id) }
func queueKey(ino table.Ino) string   { return hexKey(queuePrefix, ino) }
func headKey(l table.Link) string     { return hexKey(headPrefix, l.Dir) + "/" + l.Name }
func idText(id uint64) string         { return strconv.FormatUint(id, 10) }
func storeID(id uint64) string        { return hexKey("", id) }
func idOfKey(key string) (id uint64)  { id, _ = strconv.ParseUint(key[3:], 16, 64); return id }
func parseID(s string) (uint64, bool) { id, err := strconv.ParseUint(s, 10, 64); return id, err == nil }

// hexKey is a prefix and a number, as 16 digits so that it sorts.
func hexKey(prefix string, n uint64) string {
	const digits = "0123456789abcdef"
	var b [32]byte
	k := append(b[:0], prefix...)
	for shift := 60; shift >= 0; shift -= 4 {
		k = append(k, digits[n>>shift&15])
	}
	return string(k)
}

// head is the last record of a name.
type head struct{ id, number uint64 }

// head finds it.
func (v *View) head(l table.Link) (h head) {
	id, number, ok := strings.Cut(string(v.table.Get(headKey(l))), " ")
	if ok {
		h.id, _ = strconv.ParseUint(id, 16, 64)
		h.number, _ = strconv.ParseUint(number, 16, 64)
	}
	return h
}

// getRecord is a record; nil for none.
func (v *View) getRecord(id uint64) *record {
	if id == 0 {
		return nil
	}
	return decodeRecord(v.table.Get(versionKey(id)))
}

func decodeRecord(value []byte) *record {
	r := &record{}
	if value == nil || json.Unmarshal(value, r) != nil {
		return nil
	}
	return r
}

// putRecord changes a record that is there.
func (v *Tx) putRecord(id uint64, r *record) {
	value, err := json.Marshal(r)
	if err != nil {
		panic(err) // nothing in it can fail
	}
	v.table.Set(versionKey(id), value)
}

// addRecord appends a record to the history of its name.
func (v *Tx) addRecord(r *record) (id uint64) {
	return v.addBehind(v.head(r.at()), r)
}

// addBehind is addRecord for who has looked for the last record already.
func (v *Tx) addBehind(h head, r *record) (id uint64) {
	id = v.table.NextSeq()
	r.Number, r.Back, r.Time = h.number+1, h.id, v.now()
	at, _ := v.LocalPath(r.at())
	r.Path = at.String()
	r.Actor = v.history.actor
	v.signRecord(r)
	v.putRecord(id, r)
	v.table.Set(headKey(r.at()), fmt.Appendf(nil, "%x %x", id, r.Number))
	v.Later(func() { v.recorded(r) })
	return id
}

// recorded has the worker look after a name that got one more version.
func (v *Volume) recorded(r *record) {
	h := &v.history
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.records >= 0 {
		h.records++
	}
	if limit := uint64(v.o.Policy.History.Versions); r.Number > limit && r.Number%pruneEach == 0 {
		h.long[r.at()] = struct{}{}
	}
}

// recordOf starts a record about an inode under a name.
func recordOf(change, why string, l table.Link, ino table.Ino, n *table.Inode) *record {
	r := &record{Change: change, Why: why, Dir: l.Dir, Name: l.Name, Ino: ino,
		Mode: n.Mode, Gen: n.ContentVersion, Birth: n.Birth, Base: versionText(n.Origin.Version)}
	if isRegular(n) {
		r.Size = n.Size
	}
	if isSymlink(n) {
		r.Target = n.Target
	}
	return r
}

// contentRecord finds the record of an inode's content by one of its names: the last
// version that was written, moved here since or not.
func (v *View) contentRecord(ino table.Ino, l table.Link) (uint64, *record) {
	return v.contentBehind(ino, v.head(l).id)
}

// contentBehind is contentRecord for who has looked for the last record
// already.
func (v *View) contentBehind(ino table.Ino, id uint64) (uint64, *record) {
	r := v.getRecord(id)
	for i := 0; i < 4 && r != nil && r.Stays && r.Ino != ino; i++ {
		id = r.Back // what another wrote, and we replaced
		r = v.getRecord(id)
	}
	if r != nil && r.Change == Moved && r.Of != 0 {
		id = r.Of
		r = v.getRecord(id)
	}
	if r == nil || r.Ino != ino || r.Change == Ended && !r.Stays {
		return 0, nil
	}
	return id, r
}

// ofHere reports whether an inode was made here, and never was at the backend. Of one that
// came from there the backend may have nothing any more, by the same update.
func ofHere(n *table.Inode) bool {
	return !n.Pulled && len(n.RemoteLinks) == 0 && n.Origin.Version.IsZero()
}

func versionText(ver providers.Version) string {
	switch {
	case ver.IsZero():
		return ""
	case ver.ETag != "":
		return ver.ETag
	}
	return fmt.Sprintf("%d-%d", ver.Modified, ver.Size)
}
