package fs

import "github.com/hanwen/go-fuse/v2/fuse"

// The kernel operations that we serve are the methods of RawFileSystem in
//
//	node_lookup.go  Lookup Forget
//	node_attr.go    GetAttr SetAttr StatFs
//	node_names.go   Mknod Mkdir Symlink Link Unlink Rmdir Rename Readlink
//	node_xattr.go   GetXAttr ListXAttr SetXAttr RemoveXAttr
//	file_open.go    Open Create Tmpfile Release
//	file_io.go      Read Write CopyFileRange Lseek Flush Fsync Fallocate
//	dir.go          OpenDir ReadDir ReadDirPlus FsyncDir ReleaseDir
//
// The rest are answered by the library's default, ENOSYS, after which the
// kernel does without: Access (the kernel checks permissions itself), locks
// (it keeps them itself, which is right for one host), Ioctl, Statx.
var (
	_ fuse.RawFileSystem = (*front)(nil)
	_ backing            = (*fuse.Server)(nil)
	_ kernel             = (*fuse.Server)(nil)

	_ Volume = (*gapVolume)(nil)
	_ Volume = (*control)(nil)
	_ Volume = (*unavailable)(nil)
	_ Volume = (*aside)(nil)
	_ File   = (*bytesFile)(nil)
	_ Dir    = (*listDir)(nil)
	_ Dir    = (*mergedDir)(nil)
	_ Dir    = (*sidedDir)(nil)
)
