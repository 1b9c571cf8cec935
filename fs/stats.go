package fs

import (
	"sync/atomic"
	"syscall"
	"time"
)

// opKind is a kernel operation, as metrics name it.
type opKind uint8

const (
	opLookup opKind = iota
	opGetattr
	opSetattr
	opReadlink
	opMknod
	opMkdir
	opSymlink
	opLink
	opUnlink
	opRmdir
	opRename
	opGetxattr
	opSetxattr
	opListxattr
	opRemovexattr
	opOpen
	opCreate
	opTmpfile
	opRead
	opWrite
	opCopy
	opLseek
	opFlush
	opFsync
	opFallocate
	opRelease
	opOpendir
	opReaddir
	opReaddirplus
	opFsyncdir
	opReleasedir
	opStatfs
	opCount
)

var opNames = [opCount]string{"lookup", "getattr", "setattr", "readlink", "mknod", "mkdir",
	"symlink", "link", "unlink", "rmdir", "rename", "getxattr", "setxattr", "listxattr",
	"removexattr", "open", "create", "tmpfile", "read", "write", "copy_file_range", "lseek",
	"flush", "fsync", "fallocate", "release", "opendir", "readdir", "readdirplus", "fsyncdir",
	"releasedir", "statfs"}

func (o opKind) String() string { return opNames[o] }

// Buckets are the upper bounds of the histogram of an operation's duration; one more bucket
// counts longer operations.
var Buckets = [...]time.Duration{
	10 * time.Microsecond, 50 * time.Microsecond, 100 * time.Microsecond, 500 * time.Microsecond,
	time.Millisecond, 5 * time.Millisecond, 10 * time.Millisecond, 50 * time.Millisecond,
	100 * time.Millisecond, time.Second, 10 * time.Second,
}

const maxErrno = 134

type opStats struct {
	errnos  [maxErrno]atomic.Uint64 // by errno; 0 is success
	buckets [len(Buckets) + 1]atomic.Uint64
	nanos   atomic.Uint64
}

type stats struct {
	ops                     [opCount]opStats
	readBytes, writtenBytes atomic.Uint64
	panics, notified        atomic.Uint64
	failed                  atomic.Uint64
}

func (s *stats) done(k opKind, e syscall.Errno, d time.Duration) {
	o := &s.ops[k]
	if int(e) >= maxErrno {
		e = syscall.EIO
	}
	o.errnos[e].Add(1)
	o.nanos.Add(uint64(d))
	for i, bound := range Buckets {
		if d <= bound {
			o.buckets[i].Add(1)
			return
		}
	}
	o.buckets[len(Buckets)].Add(1)
}

// Stats are the counters of a mount since it began.
type Stats struct {
	Ops                     []OpStats // of operations that happened
	ReadBytes, WrittenBytes uint64    // that passed through the daemon; the kernel's own I/O is not seen
	Panics, Notified        uint64
	Failed                  uint64            // failures that volumes found after the reply
	Refused                 map[string]uint64 // changes refused because a part is read-only, by part
}

// OpStats is one kernel operation's count and time.
type OpStats struct {
	Op      string
	Errnos  map[syscall.Errno]uint64 // 0 is success
	Count   uint64
	Seconds float64
	Buckets []uint64 // by Buckets, not cumulative, then the rest
}

func (s *stats) snapshot(parts []*part) Stats {
	out := Stats{ReadBytes: s.readBytes.Load(), WrittenBytes: s.writtenBytes.Load(),
		Panics: s.panics.Load(), Notified: s.notified.Load(), Failed: s.failed.Load(), Refused: make(map[string]uint64)}
	for k := range s.ops {
		if o := s.ops[k].snapshot(opKind(k)); o.Count > 0 {
			out.Ops = append(out.Ops, o)
		}
	}
	for _, p := range parts {
		if n := p.refused.Load(); n > 0 {
			out.Refused[p.Name] += n
		}
	}
	return out
}

func (o *opStats) snapshot(k opKind) OpStats {
	out := OpStats{Op: k.String(), Errnos: make(map[syscall.Errno]uint64), Seconds: float64(o.nanos.Load()) / 1e9}
	for e := range o.errnos {
		if n := o.errnos[e].Load(); n > 0 {
			out.Errnos[syscall.Errno(e)] = n
			out.Count += n
		}
	}
	for i := range o.buckets {
		out.Buckets = append(out.Buckets, o.buckets[i].Load())
	}
	return out
}
