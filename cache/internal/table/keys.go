package table

import "encoding/binary"

// The keys of the database, by first byte:
//
//	c dir cookie   the entries of a directory in the order of readdir
//	d seq          the dirty names, in order
//	i ino          inodes
//	l dir name     the local-only names
//	m kind         of the table itself
//	n dir name     names
//	r key          records of other packages
//
// Numbers are 8 bytes, most significant first, so that they sort.
const (
	keyCookie = 'c'
	keyDirty  = 'd'
	keyInode  = 'i'
	keyLocal  = 'l'
	keyMeta   = 'm'
	keyName   = 'n'
	keyRecord = 'r'
)

var (
	keySession = []byte("msession")
	keyNumbers = []byte("mnumbers")
	keyListed  = []byte("mlocal") // marks that the list of local-only names is complete
)

func number(k []byte, n uint64) []byte { return binary.BigEndian.AppendUint64(k, n) }

func inodeKey(ino Ino) []byte { return number([]byte{keyInode}, ino) }

func cookieKey(dir Ino, cookie uint64) []byte {
	return number(number([]byte{keyCookie}, dir), cookie)
}

func dirtyKey(seq uint64) []byte { return number([]byte{keyDirty}, seq) }

func nameKey(dir Ino, name string) []byte {
	k := make([]byte, 0, 9+len(name))
	return append(number(append(k, keyName), dir), name...)
}

func localKey(dir Ino, name string) []byte { return append(number([]byte{keyLocal}, dir), name...) }

func recordKey(key string) []byte { return append([]byte{keyRecord}, key...) }

// tail is the number at the end of a key.
func tail(key []byte) uint64 { return binary.BigEndian.Uint64(key[len(key)-8:]) }

// behind is the smallest key that is greater than all that begin with prefix.
func behind(prefix []byte) []byte {
	for i := len(prefix) - 1; i >= 0; i-- {
		if prefix[i] != 0xff {
			end := append([]byte(nil), prefix[:i+1]...)
			end[i]++
			return end
		}
	}
	return nil
}
