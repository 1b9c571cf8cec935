// Package history is the records of changes to the files of a working copy: who changed which file
// when, and where the previous content is. A record never changes its facts, but later facts are
// added to it, and it is given up when there are too many.
//
// The records are in the table of the tree, so that each is there exactly if its change is:
//
//	hv/<id>           the record
//	hn/<dir>/<name>   the last record of a name, and how many there were
//	hk/<id>           content that the store of content keeps under this id: size, record
//	hq/<inode>        id under which content is kept once nothing holds it
//	hz/               the time up to which records were given up
//
// Names are (directory, name), as everywhere: records from before the rename of a directory follow
// it.
//
// A [Tx] notes the changes of a transaction of the tree, as a part of it. Its [Keeper] has the
// store keep the content (keep.go), looks at it when it has been left alone (worker.go), and gives
// up content and records over the budget (prune.go).
package history

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/wsmount/wsmount/cache/exactjson"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/providers"
)

// The values of Record.Change.
const (
	Made    = "made"    // a directory, link or other inode without content was made; or a pull brought it
	Written = "written" // content became final: a close, an fsync, a restore
	Ended   = "ended"   // content was removed or replaced; the record is about the old content
	Moved   = "moved"   // a file or a directory has another name
)

// Actor says on whose behalf files change.
type Actor struct {
	Name         string `json:"actor,omitempty"`
	Event        string `json:"event,omitempty"` // of the lifecycle (AIP-37)
	Turn         string `json:"turn,omitempty"`
	Conversation string `json:"conversation,omitempty"`
}

// Record is one entry of the history, under an id that grows from each to the next. A zero
// reference to another record means none.
type Record struct {
	Change string    `json:"k"`
	Why    string    `json:"y,omitempty"`
	Number uint64    `json:"n"` // of those of its name, from 1 on
	Ino    table.Ino `json:"i"`
	Dir    table.Ino `json:"d"`
	Name   string    `json:"m"`
	Path   string    `json:"p"` // at that time
	From   *Place    `json:"f,omitempty"`
	Time   int64     `json:"t"` // in nanoseconds since 1970
	Mode   uint32    `json:"o"`
	UID    uint32    `json:"u,omitempty"`
	PID    uint32    `json:"q,omitempty"`
	Cmd    string    `json:"c,omitempty"`
	Size   int64     `json:"s,omitempty"`
	SHA    string    `json:"h,omitempty"`
	Gen    uint64    `json:"g,omitempty"` // the content version
	Birth  int64     `json:"w,omitempty"` // of the inode; of one that is New, since when it exists
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
	Past   *Past     `json:"pa,omitempty"` // where the remote has the content
	Before *Past     `json:"pb,omitempty"` // and the previous content, if that has no record
	Actor
}

// Place is a place that an inode was moved from.
type Place struct {
	Dir  table.Ino `json:"d"`
	Name string    `json:"m"`
	Path string    `json:"p"`
}

// Past is where the remote has content, perhaps even when it is neither local nor in the remote's
// head: in a revision, or as the version that it may keep of a path.
type Past struct {
	Revision providers.Revision `json:"r,omitempty"` // "": the remote keeps none
	Path     string             `json:"p"`
	Version  string             `json:"v"` // that it has at the path: else it is other content
	Size     int64              `json:"s,omitempty"`
}

// Link is the name that a record is about.
func (r *Record) Link() table.Link { return table.Link{Dir: r.Dir, Name: r.Name} }

// KeptID is the id under which the store has the content of the record id, if it has.
func (r *Record) KeptID(id uint64) uint64 {
	if r.Copy != 0 {
		return r.Copy
	}
	return id
}

// Prefixes and keys in the table.
const (
	Prefix      = "hv/"
	headPrefix  = "hn/"
	KeptPrefix  = "hk/"
	QueuePrefix = "hq/"
	PrunedKey   = "hz/"
)

// Key, KeptKey, QueueKey and HeadKey are the keys of the table in the package comment.
func Key(id uint64) string          { return hexKey(Prefix, id) }
func KeptKey(id uint64) string      { return hexKey(KeptPrefix, id) }
func QueueKey(ino table.Ino) string { return hexKey(QueuePrefix, ino) }
func HeadKey(l table.Link) string   { return hexKey(headPrefix, l.Dir) + "/" + l.Name }

// IDOf is the id, or inode, in a key.
func IDOf(key string) (id uint64) {
	id, _ = strconv.ParseUint(key[3:], 16, 64)
	return id
}

// StoreID is the name of content in the store under an id.
func StoreID(id uint64) string { return hexKey("", id) }

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

// Reader reads records, as a tree.View does.
type Reader interface{ Get(key string) []byte }

// Writer is a transaction of the tree.
type Writer interface {
	Reader
	Set(key string, value []byte)
	NextSeq() uint64
}

// Head is the last record of a name; zero: there is none.
type Head struct{ ID, Number uint64 }

// HeadOf finds the last record of a name.
func HeadOf(v Reader, l table.Link) (h Head) {
	id, number, ok := strings.Cut(string(v.Get(HeadKey(l))), " ")
	if ok {
		h.ID, _ = strconv.ParseUint(id, 16, 64)
		h.Number, _ = strconv.ParseUint(number, 16, 64)
	}
	return h
}

// Get reads a record; nil: there is none.
func Get(v Reader, id uint64) *Record {
	if id == 0 {
		return nil
	}
	return Decode(v.Get(Key(id)))
}

// Decode is the record in a value of the table; nil: none that can be read.
func Decode(value []byte) *Record {
	r := &Record{}
	if value == nil || exactjson.Unmarshal(value, r) != nil {
		return nil
	}
	return r
}

// Put amends an existing record.
func Put(tx Writer, id uint64, r *Record) {
	value, err := exactjson.Marshal(r)
	if err != nil {
		panic(err) // no field of it can fail
	}
	tx.Set(Key(id), value)
}

// Append makes r the last record of its name, behind h, the last one so far; it fills in Number
// and Back.
func Append(tx Writer, h Head, r *Record) (id uint64) {
	id = tx.NextSeq()
	r.Number, r.Back = h.Number+1, h.ID
	Put(tx, id, r)
	tx.Set(HeadKey(r.Link()), fmt.Appendf(nil, "%x %x", id, r.Number))
	return id
}

// ContentOf finds the record of an inode's content by one of its names: the last version that was
// written, moved to that name since or not; 0: there is none.
func ContentOf(v Reader, ino table.Ino, l table.Link) (uint64, *Record) {
	return ContentBehind(v, ino, HeadOf(v, l).ID)
}

// ContentBehind is ContentOf where the last record of the name is known.
func ContentBehind(v Reader, ino table.Ino, id uint64) (uint64, *Record) {
	r := Get(v, id)
	for i := 0; i < 4 && r != nil && r.Stays && r.Ino != ino; i++ {
		id = r.Back // another file's content, which was replaced
		r = Get(v, id)
	}
	if r != nil && r.Change == Moved && r.Of != 0 {
		id = r.Of
		r = Get(v, id)
	}
	if r == nil || r.Ino != ino || r.Change == Ended && !r.Stays {
		return 0, nil
	}
	return id, r
}
