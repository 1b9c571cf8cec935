package table

import "github.com/wsmount/wsmount/providers"

const (
	nameVersion  = 1
	entryVersion = 1
	linkVersion  = 1
)

// The parts of a name's record that may be missing.
const (
	nameHere = 1 << iota
	nameBase
	nameSeq
	nameLocal
	nameAttempt
	nameHeld
	nameConflict
	nameFlags // the number of them, as a bit
)

func nameParts(n *Name) uint64 {
	var parts uint64
	for _, p := range [...]struct {
		bit   uint64
		there bool
	}{
		{nameHere, n.Ino != 0},
		{nameBase, n.Remote != nil},
		{nameSeq, n.Seq != 0},
		{nameLocal, n.Local},
		{nameAttempt, n.Attempt != nil},
		{nameHeld, n.Held != nil},
		{nameConflict, n.Held != nil && n.Held.Conflict},
	} {
		if p.there {
			parts |= p.bit
		}
	}
	return parts
}

// encode appends the record of n.
func (n *Name) encode(to []byte) []byte {
	parts := nameParts(n)
	e := encoder(append(to, nameVersion))
	e.uint(parts)
	if n.Ino != 0 {
		e.uint(n.Ino)
		e.uint(n.Cookie)
	}
	if b := n.Remote; b != nil {
		e.uint(b.Ino)
		e.uint(uint64(b.Kind))
		e.version(b.Version)
		e.text(b.Digest)
		e.uint(b.ContentVersion)
		e.uint(b.AttrGen)
	}
	if n.Seq != 0 {
		e.uint(n.Seq)
	}
	if a := n.Attempt; a != nil {
		e.text(a.Op)
		e.uint(a.ContentVersion)
		e.uint(a.AttrGen)
		e.uint(uint64(a.Kind))
		e.text(a.Other)
	}
	if n.Held != nil {
		e.text(n.Held.Reason)
		e.text(string(n.Held.Remote))
	}
	return e
}

// decodeName is the inverse of encode. Its result shares no memory with record.
func decodeName(record []byte) (Name, error) {
	d := decode(record, nameVersion)
	parts := d.uint()
	if parts >= nameFlags {
		d.fail(errFlags)
	}
	n := Name{Local: parts&nameLocal != 0}
	if parts&nameHere != 0 {
		n.Ino, n.Cookie = d.uint(), d.uint()
	}
	if parts&nameBase != 0 {
		n.Remote = &Remote{
			Ino: d.uint(), Kind: providers.Kind(d.byte()), Version: d.version(),
			Digest: d.text(), ContentVersion: d.uint(), AttrGen: d.uint(),
		}
	}
	if parts&nameSeq != 0 {
		n.Seq = d.uint()
	}
	if parts&nameAttempt != 0 {
		n.Attempt = &Attempt{Op: d.text(), ContentVersion: d.uint(), AttrGen: d.uint(), Kind: d.byte(), Other: d.text()}
	}
	if parts&nameHeld != 0 {
		n.Held = &Held{Reason: d.text(), Conflict: parts&nameConflict != 0, Remote: []byte(d.text())}
	}
	return n, d.end()
}

// An entry is a name as the order of readdir has it: its inode, and the name.

func encodeEntry(ino Ino, name string) []byte {
	e := encoder{entryVersion}
	e.uint(ino)
	return append(e, name...)
}

func decodeEntry(record []byte) (ino Ino, name string, err error) {
	d := decode(record, entryVersion)
	ino = d.uint()
	return ino, d.rest, d.err
}

// A link is the name at a place in the dirty order.

func encodeLink(l Link) []byte {
	e := encoder{linkVersion}
	e.uint(l.Dir)
	return append(e, l.Name...)
}

func decodeLink(record []byte) (Link, error) {
	dir, name, err := decodeEntry(record) // the same shape
	return Link{Dir: dir, Name: name}, err
}
