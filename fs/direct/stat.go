package direct

import (
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	wsfs "github.com/wsmount/wsmount/fs"
	"golang.org/x/sys/unix"
)

// A stat is a file's attributes, as statx(2) returns them.
type stat struct {
	unix.Statx_t
	asked uint64 // value of changes when it was requested
}

// changes counts the finished changes of inodes by ourselves, in all volumes: see
// inode.overtook.
var changes atomic.Uint64

const (
	statMask  = unix.STATX_BASIC_STATS | unix.STATX_BTIME | unix.STATX_MNT_ID
	statFlags = unix.AT_SYMLINK_NOFOLLOW | unix.AT_NO_AUTOMOUNT
	maxName   = 255
)

// statAt is statx(2) of a name in a directory, or of the descriptor itself when name is "". It
// follows no link and allocates nothing.
func statAt(fd int, name string, st *stat) error {
	if len(name) > maxName {
		return syscall.ENAMETOOLONG
	}
	var path [maxName + 1]byte
	copy(path[:], name)
	flags := statFlags
	if name == "" {
		flags |= unix.AT_EMPTY_PATH
	}
	st.asked = changes.Load()
	_, _, errno := unix.Syscall6(unix.SYS_STATX, uintptr(fd), uintptr(unsafe.Pointer(&path[0])),
		uintptr(flags), statMask, uintptr(unsafe.Pointer(&st.Statx_t)), 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// An ident tells one file from every other that its file system ever has: its
// number, and a hash of device and birth time, because numbers are used again.
type ident struct {
	id    uint64
	birth uint32
}

// A disk identifies files below a root.
type disk struct {
	dev     uint64
	mount   uint64 // the kernel's number of the mount that the root lies in
	noBirth bool   // treat the disk as one without birth times
}

// identOf reads the identity out of one statx answer. Where the file system keeps no birth
// time, the kernel's generation serves as well: see handleHash.
func (d *disk) identOf(fd int, name string, st *stat) ident {
	h := uint64(st.Dev_major)<<32 | uint64(st.Dev_minor)
	if st.Mask&unix.STATX_BTIME != 0 && !d.noBirth {
		h = mix(h ^ mix(uint64(st.Btime.Sec)<<30^uint64(st.Btime.Nsec)))
	} else {
		h = mix(h ^ handleHash(fd, name))
	}
	return ident{st.Ino, uint32(h >> 16)}
}

// handleHash hashes the file handle, which holds the inode's generation. A file system without
// handles gives 0: on it, if a number is used again while the kernel remembers the old file,
// only the attributes distinguish them.
func handleHash(fd int, name string) uint64 {
	flags := 0
	if name == "" {
		flags = unix.AT_EMPTY_PATH
	}
	fh, _, err := unix.NameToHandleAt(fd, name, flags)
	if err != nil {
		return 0
	}
	var h uint64
	for _, b := range fh.Bytes() {
		h = (h ^ uint64(b)) * 0x100000001b3
	}
	return h
}

func (i ident) hash() uint64 { return mix(i.id*0x9e3779b97f4a7c15 ^ uint64(i.birth)<<17) }

// mix is the finalizer of MurmurHash3: every input bit reaches every output bit.
func mix(h uint64) uint64 {
	h ^= h >> 33
	h *= 0xff51afd7ed558ccd
	h ^= h >> 33
	h *= 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}

// signature is 64 bits of (mtime, ctime, size), never 0. Any change of content, owner, mode or
// link count changes ctime. The upper half is of contentSignature.
func signature(st *stat) uint64 {
	c := contentSignature(st)
	h := mix(c ^ uint64(st.Ctime.Sec)<<30 ^ uint64(st.Ctime.Nsec))
	return c>>32<<32 | h>>32 | 1
}

// sameContent reports whether two signatures differ in ctime at most.
func sameContent(a, b uint64) bool { return a>>32 == b>>32 }

// contentSignature is signature without ctime.
func contentSignature(st *stat) uint64 {
	return mix(mix(uint64(st.Mtime.Sec)<<30^uint64(st.Mtime.Nsec)) ^ st.Size)
}

// crosses reports whether a name leads to another mount, whose identities and rules are not
// ours.
func (d *disk) crosses(st *stat) bool {
	if st.Mask&unix.STATX_MNT_ID != 0 {
		return st.Mnt_id != d.mount
	}
	return unix.Mkdev(st.Dev_major, st.Dev_minor) != d.dev
}

// leads reports whether a name in a directory leads to a file now.
func (d *disk) leads(dir *handle, name string, id ident) bool {
	var st stat
	return statAt(dir.fd, name, &st) == nil && !d.crosses(&st) && d.identOf(dir.fd, name, &st) == id
}

// fold makes a 48-bit number of the disk's inode number.
func (d *disk) fold(st *stat) wsfs.Ino {
	id := st.Ino
	if dev := unix.Mkdev(st.Dev_major, st.Dev_minor); dev != d.dev {
		id ^= mix(dev) << 32
	}
	return foldIno(id)
}

func foldIno(id uint64) wsfs.Ino { return wsfs.Ino((id ^ id>>48<<24) & uint64(wsfs.MaxIno)) }

func (d *disk) attr(st *stat, ttl time.Duration) wsfs.Attr {
	return wsfs.Attr{
		Ino:     d.fold(st),
		Size:    st.Size,
		Blocks:  st.Blocks,
		Atime:   timeOf(st.Atime),
		Mtime:   timeOf(st.Mtime),
		Ctime:   timeOf(st.Ctime),
		Mode:    uint32(st.Mode),
		Nlink:   st.Nlink,
		UID:     st.Uid,
		GID:     st.Gid,
		Rdev:    encodeDev(st.Rdev_major, st.Rdev_minor),
		Blksize: st.Blksize,
		TTL:     ttl,
	}
}

func timeOf(t unix.StatxTimestamp) time.Time { return time.Unix(t.Sec, int64(t.Nsec)) }

// encodeDev is the kernel's new_encode_dev.
func encodeDev(major, minor uint32) uint32 {
	return minor&0xff | major<<8 | (minor&^0xff)<<12
}

// decodeDev makes the device number for mknod(2) of it.
func decodeDev(rdev uint32) uint64 {
	return unix.Mkdev(rdev>>8&0xfff, rdev&0xff|rdev>>12&0xfff00)
}
