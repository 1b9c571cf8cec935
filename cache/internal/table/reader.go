package table

// Reader is the methods of a Table, or of a Snapshot of one, that do not change it. The
// numbers that Alloc and NextSeq give are taken, and nothing else.
type Reader interface {
	Inode(ino Ino) *Inode
	Name(dir Ino, name string) (Name, bool)
	Names(dir Ino, after string, visit func(name string, n Name) bool)
	Next(dir Ino, cookie uint64) (DirEnt, bool)
	HasNames(dir Ino) bool
	Local(into func(dir Ino) bool, visit func(l Link) bool)
	Dirty(after uint64, visit func(seq uint64, l Link) bool)
	DirtyCount() int
	Get(key string) []byte
	Scan(prefix, after string, visit func(key string, value []byte) bool)

	Alloc() Ino
	NextSeq() uint64
	News() uint64
	Session() Session
	Snapshot() *Snapshot
	Check() error
	Err() error
}

// Writer changes a Table, until its next Commit or Abort.
type Writer interface {
	Put(ino Ino, n *Inode)
	Edit(ino Ino) *Inode
	Drop(ino Ino)
	SetName(dir Ino, name string, n Name)
	Set(key string, value []byte)
}
