package table

const inodeVersion = 1

// The parts of an inode's record that may be missing.
const (
	inodeLoaded = 1 << iota
	inodeWriting
	inodeSuspect
	inodeOwner
	inodeRdev
	inodeBlocks
	inodeLinks
	inodeHomes
	inodeDir
	inodeFrom
	inodeGens
	inodeState
	inodeOrigin
	inodeSynced
	inodeTarget
	inodeXattrs
	inodeMetadata
	inodeClaim
	inodeVague
	inodeUntold
	inodeTimes // some time does not fit nanoseconds in 64 bits
	inodePulled
	inodeFlags // the number of them, as a bit
)

func inodeParts(n *Inode) uint64 {
	var parts uint64
	for _, p := range [...]struct {
		bit   uint64
		there bool
	}{
		{inodeLoaded, n.Loaded},
		{inodeWriting, n.Writing},
		{inodeSuspect, n.Suspect},
		{inodeOwner, n.UID|n.GID != 0},
		{inodeRdev, n.Rdev != 0},
		{inodeBlocks, n.Blocks != 0},
		{inodeLinks, len(n.Links) > 0},
		{inodeHomes, len(n.RemoteLinks) > 0},
		{inodeDir, n.Subdirs|n.Entries|n.Cookies != 0 || n.Listed != 0},
		{inodeFrom, n.From != ""},
		{inodeGens, n.ContentVersion|n.AttrGen != 0},
		{inodeState, n.State != 0},
		{inodeOrigin, n.Origin != Origin{}},
		{inodeSynced, n.Synced != 0},
		{inodeTarget, n.Target != ""},
		{inodeXattrs, len(n.Xattrs) > 0},
		{inodeMetadata, len(n.Metadata) > 0},
		{inodeClaim, n.LostName != nil},
		{inodeVague, n.AttrsUnknown},
		{inodeUntold, n.Untold != 0},
		{inodeTimes, !n.shortTimes()},
		{inodePulled, n.Pulled},
	} {
		if p.there {
			parts |= p.bit
		}
	}
	return parts
}

// encode appends the record of n.
func (n *Inode) encode(to []byte) []byte {
	parts := inodeParts(n)
	e := encoder(append(to, inodeVersion))
	e.uint(parts)
	e.uint(uint64(n.Mode))
	e.int(n.Size)
	n.encodeTimes(&e)
	n.encodeAttr(&e, parts)
	n.encodeContent(&e, parts)
	n.encodeRare(&e, parts)
	return e
}

// encodeTimes writes them in nanoseconds. Those of a record with inodeTimes are
// written once more after all the rest.
func (n *Inode) encodeTimes(e *encoder) {
	mtime, _ := n.Mtime.nanoseconds()
	atime, _ := n.Atime.nanoseconds()
	ctime, _ := n.Ctime.nanoseconds()
	e.int(mtime)
	e.int(atime - mtime) // they are close together: small numbers
	e.int(ctime - mtime)
	e.int(n.Birth - mtime)
}

// shortTimes reports whether all times fit nanoseconds in 64 bits.
func (n *Inode) shortTimes() bool {
	for _, t := range [...]Time{n.Mtime, n.Atime, n.Ctime} {
		if _, fit := t.nanoseconds(); !fit {
			return false
		}
	}
	return true
}

func (n *Inode) encodeAttr(e *encoder, parts uint64) {
	if parts&inodeOwner != 0 {
		e.uint(uint64(n.UID))
		e.uint(uint64(n.GID))
	}
	if parts&inodeRdev != 0 {
		e.uint(uint64(n.Rdev))
	}
	if parts&inodeBlocks != 0 {
		e.int(n.Blocks)
	}
	if parts&inodeLinks != 0 {
		e.links(n.Links)
	}
	if parts&inodeHomes != 0 {
		e.links(n.RemoteLinks)
	}
	if parts&inodeDir != 0 {
		e.uint(n.Subdirs)
		e.uint(n.Entries)
		e.uint(n.Cookies)
		e.int(n.Listed)
	}
}

func (n *Inode) encodeContent(e *encoder, parts uint64) {
	if parts&inodeGens != 0 {
		e.uint(n.ContentVersion)
		e.uint(n.AttrGen)
	}
	if parts&inodeState != 0 {
		e.uint(uint64(n.State))
	}
	if parts&inodeOrigin != 0 {
		e.version(n.Origin.Version)
		e.text(n.Origin.Digest)
		e.uint(n.Origin.ContentVersion)
	}
	if parts&inodeSynced != 0 {
		e.uint(n.Synced)
	}
}

func (n *Inode) encodeRare(e *encoder, parts uint64) {
	if parts&inodeFrom != 0 {
		e.text(n.From)
	}
	if parts&inodeTarget != 0 {
		e.text(n.Target)
	}
	if parts&inodeXattrs != 0 {
		encodeMap(e, n.Xattrs)
	}
	if parts&inodeMetadata != 0 {
		encodeMap(e, n.Metadata)
	}
	if parts&inodeClaim != 0 {
		e.link(*n.LostName)
	}
	if parts&inodeUntold != 0 {
		e.uint(uint64(n.Untold))
	}
	if parts&inodeTimes != 0 {
		e.time(n.Mtime)
		e.time(n.Atime)
		e.time(n.Ctime)
	}
}

// decodeInode is the inverse of encode. Its result shares no memory with record.
func decodeInode(record []byte) (*Inode, error) {
	d := decode(record, inodeVersion)
	parts := d.uint()
	if parts >= inodeFlags {
		d.fail(errFlags)
	}
	n := &Inode{Mode: d.uint32(), Size: d.int()}
	mtime := d.int()
	n.Mtime = Stamp(mtime)
	n.Atime = Stamp(mtime + d.int())
	n.Ctime = Stamp(mtime + d.int())
	n.Birth = mtime + d.int()
	n.Loaded = parts&inodeLoaded != 0
	n.Writing = parts&inodeWriting != 0
	n.Suspect = parts&inodeSuspect != 0
	n.AttrsUnknown = parts&inodeVague != 0
	n.Pulled = parts&inodePulled != 0
	n.decodeAttr(&d, parts)
	n.decodeContent(&d, parts)
	n.decodeRare(&d, parts)
	return n, d.end()
}

func (n *Inode) decodeAttr(d *decoder, parts uint64) {
	if parts&inodeOwner != 0 {
		n.UID, n.GID = d.uint32(), d.uint32()
	}
	if parts&inodeRdev != 0 {
		n.Rdev = d.uint32()
	}
	if parts&inodeBlocks != 0 {
		n.Blocks = d.int()
	}
	if parts&inodeLinks != 0 {
		n.Links = d.links()
	}
	if parts&inodeHomes != 0 {
		n.RemoteLinks = d.links()
	}
	if parts&inodeDir != 0 {
		n.Subdirs, n.Entries, n.Cookies, n.Listed = d.uint(), d.uint(), d.uint(), d.int()
	}
}

func (n *Inode) decodeContent(d *decoder, parts uint64) {
	if parts&inodeGens != 0 {
		n.ContentVersion, n.AttrGen = d.uint(), d.uint()
	}
	if parts&inodeState != 0 {
		n.State = State(d.byte())
	}
	if parts&inodeOrigin != 0 {
		n.Origin = Origin{Version: d.version(), Digest: d.text(), ContentVersion: d.uint()}
	}
	if parts&inodeSynced != 0 {
		n.Synced = d.uint()
	}
}

func (n *Inode) decodeRare(d *decoder, parts uint64) {
	if parts&inodeFrom != 0 {
		n.From = d.text()
	}
	if parts&inodeTarget != 0 {
		n.Target = d.text()
	}
	if parts&inodeXattrs != 0 {
		n.Xattrs = decodeMap[[]byte](d)
	}
	if parts&inodeMetadata != 0 {
		n.Metadata = decodeMap[string](d)
	}
	if parts&inodeClaim != 0 {
		l := d.link()
		n.LostName = &l
	}
	if parts&inodeUntold != 0 {
		n.Untold = d.uint32()
	}
	if parts&inodeTimes != 0 {
		n.Mtime, n.Atime, n.Ctime = d.time(), d.time(), d.time()
	}
}
