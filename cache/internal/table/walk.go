package table

import (
	"bytes"
	"strconv"
	"strings"
)

// Names visits the names of a directory after one ("" for all), in the order of their
// bytes, until visit says false: also those that are only at the remote. visit may change
// anything; names after the present one are seen with its changes.
func (t *Table) Names(dir Ino, after string, visit func(name string, n Name) bool) {
	prefix := nameKey(dir, "")
	lower := prefix
	if after != "" {
		lower = append(nameKey(dir, after), 0)
	}
	t.walk(lower, behind(prefix), func(key, record []byte) bool {
		n, err := decodeName(record)
		if err != nil {
			t.damaged("name %q in %d: %w", key[len(prefix):], dir, err)
			return false
		}
		return visit(string(key[len(prefix):]), n)
	})
}

// Get is a record of another package; nil when there is none.
func (t *Table) Get(key string) []byte {
	record, closer := t.read(recordKey(key))
	if closer == nil {
		return nil
	}
	value := append([]byte{}, record...)
	if err := closer.Close(); err != nil {
		t.fail(err)
		return nil
	}
	return value
}

// Set keeps a record of another package; nil takes it away.
func (t *Table) Set(key string, value []byte) {
	t.changes++
	if value == nil {
		t.delete(recordKey(key))
		return
	}
	t.write(recordKey(key), value)
}

// Scan visits the records whose keys begin with prefix and come after the key after ("" for all),
// in order, until visit says false. visit may change anything.
func (t *Table) Scan(prefix, after string, visit func(key string, value []byte) bool) {
	lower := recordKey(prefix)
	if from := append(recordKey(after), 0); after != "" && bytes.Compare(from, lower) > 0 {
		lower = from
	}
	t.walk(lower, behind(recordKey(prefix)), func(key, record []byte) bool {
		return visit(string(key[1:]), record)
	})
}

// KeyOf is the key of a record that is about an inode, among those of a prefix.
func KeyOf(prefix string, ino Ino) string { return prefix + strconv.FormatUint(ino, 10) }

// InoOf is the inode that a record of a prefix is about; 0: its key is of no inode.
func InoOf(prefix, key string) Ino {
	ino, _ := strconv.ParseUint(strings.TrimPrefix(key, prefix), 10, 64)
	return ino
}

// InosOf are the inodes that records with a prefix are about.
func InosOf(r interface {
	Scan(prefix, after string, visit func(key string, value []byte) bool)
}, prefix string) (inos []Ino) {
	r.Scan(prefix, "", func(key string, _ []byte) bool {
		if ino := InoOf(prefix, key); ino != 0 {
			inos = append(inos, ino)
		}
		return true
	})
	return inos
}
