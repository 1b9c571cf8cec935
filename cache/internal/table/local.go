package table

import (
	"encoding/binary"
	"errors"
)

// setLocal keeps the list of the names that are Local.
func (t *Table) setLocal(l Link, old, now bool) {
	switch key := localKey(l.Dir, l.Name); {
	case now && !old:
		t.write(key, []byte{})
	case old && !now:
		t.delete(key)
	}
}

// Local visits the names that are Local, by directory, until visit says false. It skips
// directories for which into says false.
func (t *Table) Local(into func(dir Ino) bool, visit func(l Link) bool) {
	at := []byte{keyLocal}
	for goOn := true; goOn; {
		goOn = false
		var last Ino
		t.walk(at, behind([]byte{keyLocal}), func(key, _ []byte) bool {
			l := Link{Dir: binary.BigEndian.Uint64(key[1:]), Name: string(key[9:])}
			if l.Dir != last && !into(l.Dir) {
				at, goOn = behind(localKey(l.Dir, "")), true // past a directory with perhaps many names
				return false
			}
			last = l.Dir
			return visit(l)
		})
	}
}

// listLocal makes the list for a table of a version that did not keep it. It is not part of
// the caller's changes.
func (t *Table) listLocal() error {
	if t.has(keyListed) || t.Err() != nil {
		return t.Err()
	}
	b := t.db.NewBatch()
	err := b.Set(keyListed, nil, nil)
	t.walk([]byte{keyName}, behind([]byte{keyName}), func(key, record []byte) bool {
		n, wrong := decodeName(record)
		if wrong != nil {
			t.damaged("a name in %d: %w", binary.BigEndian.Uint64(key[1:]), wrong)
			return false
		}
		if n.Local {
			err = errors.Join(err, b.Set(localKey(binary.BigEndian.Uint64(key[1:]), string(key[9:])), nil, nil))
		}
		return true
	})
	if err = errors.Join(err, t.Err()); err != nil {
		return errors.Join(err, b.Close())
	}
	return t.apply(b)
}
