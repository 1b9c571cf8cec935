package model

import (
	"fmt"
	"slices"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"
)

type kind int

const (
	nothing kind = iota // what shrinking makes of an operation that does not matter
	openFile
	closeFile
	readFile
	writeFile
	truncateFile
	statFile
	syncFile
	allocate
	copyRange
	mapStore
	putFile
	getFile
	truncatePath
	mkdir
	rmdir
	unlink
	rename
	link
	symlink
	mkfifo
	chmod
	utimes
	setXattr
	removeXattr
	list
	lookup
	tmpfile
	behind
	remount
)

var kindNames = map[kind]string{
	nothing: "-", behind: "behind the mount:", remount: "remount",
	openFile: "open", closeFile: "close", readFile: "read", writeFile: "write", truncateFile: "ftruncate",
	statFile: "fstat", syncFile: "fsync", allocate: "fallocate", copyRange: "copy_file_range", mapStore: "mmap store",
	putFile: "put", getFile: "get", truncatePath: "truncate", mkdir: "mkdir", rmdir: "rmdir", unlink: "unlink",
	rename: "rename", link: "link", symlink: "symlink", mkfifo: "mkfifo", chmod: "chmod", utimes: "utimes",
	setXattr: "setxattr", removeXattr: "removexattr", list: "list", lookup: "stat", tmpfile: "tmpfile",
}

// An op is one operation with all arguments that any kind may need.
type op struct {
	Kind   kind
	Behind kind   // what a change behind the mount does
	A, B   string // paths in the tree
	FD, To int    // slots of open files
	Off    int64
	Len    int
	Flags  int
	Byte   byte
}

func (o op) String() string {
	name := kindNames[o.Kind]
	switch o.Kind {
	case nothing, remount:
		return name
	case behind:
		o.Kind = o.Behind
		return name + " " + o.String()
	case closeFile, statFile, syncFile:
		return fmt.Sprintf("%s fd %d", name, o.FD)
	case readFile, writeFile, truncateFile, allocate:
		return fmt.Sprintf("%s fd %d off %d len %d flags %#x byte %q", name, o.FD, o.Off, o.Len, o.Flags, o.Byte)
	case copyRange:
		return fmt.Sprintf("%s fd %d off %d to fd %d off %d len %d", name, o.FD, o.Off, o.To, o.Byte, o.Len)
	case openFile:
		return fmt.Sprintf("%s %q flags %#x as fd %d", name, o.A, o.Flags, o.FD)
	case rename, link, symlink:
		return fmt.Sprintf("%s %q %q flags %#x", name, o.A, o.B, o.Flags)
	}
	return fmt.Sprintf("%s %q off %d len %d flags %#x byte %q", name, o.A, o.Off, o.Len, o.Flags, o.Byte)
}

// GoString is for the list of operations that a failure prints.
func (o op) GoString() string { return "\n" + o.String() }

// needsName are the operations whose first path should exist.
var needsName = map[kind]bool{
	openFile: true, mapStore: true, getFile: true, truncatePath: true, rmdir: true, unlink: true, rename: true, link: true,
	chmod: true, utimes: true, setXattr: true, removeXattr: true, list: true, lookup: true,
}

// wantedType is the type of file that an operation makes sense for; 0 is any.
func wantedType(o op) uint32 {
	switch o.Kind {
	case rmdir, list:
		return unix.S_IFDIR
	case openFile, mapStore, getFile, truncatePath, link:
		return unix.S_IFREG
	}
	return 0
}

// slots is how many files are open at most in a tree.
const slots = 3

var names = []string{"a", "b", "a long name with blanks \u00e9"}

// openFlags are the flags that files are opened with.
var openFlags = []int{
	unix.O_RDONLY, unix.O_RDWR, unix.O_WRONLY, unix.O_RDWR | unix.O_CREAT, unix.O_RDWR | unix.O_CREAT | unix.O_EXCL,
	unix.O_RDWR | unix.O_APPEND, unix.O_WRONLY | unix.O_CREAT | unix.O_TRUNC, unix.O_RDONLY | unix.O_NOFOLLOW,
}

// Modes that a file is given keep the owner in, so that an ordinary user can
// clean up.
var modes = []int{0o644, 0o755, 0o700, 0o4711, 0o666, 0o1777}

var renameFlags = []int{0, 0, unix.RENAME_NOREPLACE, unix.RENAME_EXCHANGE}

// allocations are the modes of fallocate(2) that every local disk knows.
var allocations = []int{0, unix.FALLOC_FL_KEEP_SIZE, unix.FALLOC_FL_PUNCH_HOLE | unix.FALLOC_FL_KEEP_SIZE, unix.FALLOC_FL_ZERO_RANGE}

// kindsFor is the mix of operations, each as often as it stands here.
func kindsFor(s Subject) []kind {
	var mix []kind
	for range 24 {
		for k := openFile; k <= tmpfile; k++ {
			mix = append(mix, k)
		}
		mix = append(mix, writeFile, readFile, openFile, putFile, mkdir, rename, rename, link)
	}
	// The generator prefers both ends of a list, so what is dear stands in the
	// middle.
	middle := len(mix) / 2
	if s.Behind != "" {
		mix = slices.Insert(mix, middle, slices.Repeat([]kind{behind}, 12)...)
	}
	if s.Remount != nil {
		mix = slices.Insert(mix, middle, remount, remount)
	}
	return append([]kind{nothing}, mix...)
}

// operation draws one operation; its simplest value is nothing.
func operation(kinds []kind) *rapid.Generator[op] {
	path := rapid.Custom(func(t *rapid.T) string {
		p := rapid.SampledFrom(names).Draw(t, "name")
		for range rapid.SampledFrom([]int{0, 0, 1, 1, 2}).Draw(t, "depth") {
			p += "/" + rapid.SampledFrom(names).Draw(t, "name")
		}
		return p
	})
	return rapid.Custom(func(t *rapid.T) op {
		o := op{
			Kind:   rapid.SampledFrom(kinds).Draw(t, "kind"),
			Behind: rapid.SampledFrom([]kind{putFile, mkdir, unlink, rename, rmdir, chmod, symlink}).Draw(t, "behind"),
			A:      path.Draw(t, "a"),
			B:      path.Draw(t, "b"),
			FD:     rapid.IntRange(0, slots-1).Draw(t, "fd"),
			To:     rapid.IntRange(0, slots-1).Draw(t, "to"),
			Off:    rapid.OneOf(rapid.Int64Range(0, 10), rapid.Int64Range(4000, 4200), rapid.Int64Range(0, 200_000)).Draw(t, "off"),
			Len:    rapid.OneOf(rapid.IntRange(0, 20), rapid.IntRange(4000, 9000), rapid.IntRange(0, 150_000)).Draw(t, "len"),
			Byte:   rapid.ByteRange('A', 'Z').Draw(t, "byte"),
		}
		o.Flags = flagsFor(o.Kind, rapid.IntRange(0, 100).Draw(t, "flags"))
		return o
	})
}

func flagsFor(k kind, n int) int {
	switch k {
	case openFile:
		return openFlags[n%len(openFlags)]
	case chmod, behind, mkdir, tmpfile, putFile:
		return modes[n%len(modes)]
	case rename:
		return renameFlags[n%len(renameFlags)]
	case allocate:
		return allocations[n%len(allocations)]
	}
	return n
}
