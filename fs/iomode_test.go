package fs

import (
	"log/slog"
	"syscall"
	"testing"

	"github.com/hanwen/go-fuse/v2/fuse"

	"github.com/wsmount/wsmount/integration/assert"
)

// fakeBacking numbers registrations and knows which are still there.
type fakeBacking struct {
	next  int32
	live  map[int32]bool
	errno syscall.Errno
}

func (b *fakeBacking) RegisterBackingFd(*fuse.BackingMap) (int32, syscall.Errno) {
	if b.errno != 0 {
		return 0, b.errno
	}
	b.next++
	b.live[b.next] = true
	return b.next, 0
}

func (b *fakeBacking) UnregisterBackingFd(id int32) syscall.Errno {
	if !b.live[id] {
		return syscall.ENOENT
	}
	delete(b.live, id)
	return 0
}

func newTestModes() (*ioModes, *fakeBacking, *[]uint64) {
	b := &fakeBacking{live: make(map[int32]bool)}
	m := newIOModes(slog.New(slog.DiscardHandler))
	m.backing, m.mapped = b, true
	var told []uint64
	m.notify = func(node uint64) { told = append(told, node) }
	return m, b, &told
}

const testNode = 7

var (
	both     = Opened{PassRead: true, PassWrite: true, KeepCache: true}
	readOnly = Opened{PassRead: true, KeepCache: true} // as for a set-user-id file
	neither  = Opened{KeepCache: true}
	resized  = Opened{KeepCache: true, NewAttr: true} // the kernel may believe in another size
	shorter  = Opened{PassRead: true, KeepCache: true, NewAttr: true}
)

func open(m *ioModes, o Opened, writable bool) fuse.OpenOut {
	var out fuse.OpenOut
	m.opened(testNode, &o, writable, &out)
	return out
}

// The kernel answers EIO to a program when two opens of one inode do not agree,
// so every row here is a program that would fail.
func TestIOModeIsOnePerInode(t *testing.T) {
	const (
		pass   = fuse.FOPEN_PASSTHROUGH
		direct = fuse.FOPEN_PASSTHROUGH | fuse.FOPEN_DIRECT_IO
		keep   = fuse.FOPEN_KEEP_CACHE
	)
	type step struct {
		o        Opened
		writable bool
		want     uint32
	}
	for _, tt := range []struct {
		name  string
		steps []step
	}{
		{"all in passthrough", []step{{both, false, pass}, {both, true, pass}}},
		{"writer through the daemon beside passthrough readers", []step{{readOnly, false, pass}, {readOnly, true, direct}}},
		{"reader after a cached writer stays cached", []step{{readOnly, true, keep}, {readOnly, false, keep}}},
		{"cached open after passthrough", []step{{both, false, pass}, {neither, false, direct}}},
		{"passthrough wish after cached", []step{{neither, false, keep}, {both, true, keep}}},
		{"no pages beside a size that may be another's", []step{{resized, true, fuse.FOPEN_DIRECT_IO}, {shorter, false, fuse.FOPEN_DIRECT_IO}}},
		{"passthrough needs none", []step{{shorter, false, pass}, {shorter, true, direct}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m, b, _ := newTestModes()
			var id int32
			for i, s := range tt.steps {
				out := open(m, s.o, s.writable)
				assert.Equal(t, out.OpenFlags, s.want, "open", i, "flags")
				assert.False(t, i > 0 && out.BackingID != id, "open", i, "backing", out.BackingID, "the first had", id)
				id = out.BackingID
			}
			for _, s := range tt.steps {
				m.released(testNode, s.writable)
			}
			assert.Equal(t, len(b.live), 0, "backing files left after the last release:", b.live)
			assert.Equal(t, len(m.open), 0, "open nodes left:", m.open)
		})
	}
}

func TestIOModeIsChosenAnewAfterTheLastRelease(t *testing.T) {
	m, _, _ := newTestModes()
	open(m, neither, false)
	m.released(testNode, false)
	out := open(m, both, true)
	assert.True(t, out.OpenFlags&fuse.FOPEN_PASSTHROUGH != 0, "not passthrough though nobody else has the file open")
}

// Where programs could not share a mapping of it, the file has pages, but none of before.
func TestIOModeOfAnotherSizeWhereDirectFilesAreNotMapped(t *testing.T) {
	m, _, _ := newTestModes()
	m.mapped = false
	assert.Equal(t, open(m, resized, true).OpenFlags, 0, "flags")
}

func TestPagesAreDroppedAfterWritingAroundThem(t *testing.T) {
	m, _, told := newTestModes()
	open(m, neither, false) // pages come to the kernel
	m.released(testNode, false)
	open(m, both, true) // the kernel writes at the backing file
	m.released(testNode, true)
	if len(*told) != 1 || (*told)[0] != testNode {
		t.Errorf("told the kernel about %v, want [%d]", *told, testNode)
	}
	open(m, both, true)
	m.released(testNode, true)
	assert.Equal(t, len(*told), 1, "told again though no pages can be there")
	open(m, neither, false)
	m.released(testNode, false)
	open(m, both, true)
	open(m, both, false) // who reads beside the writer
	m.released(testNode, true)
	m.released(testNode, false)
	assert.Equal(t, len(*told), 2, "times that the kernel was told, with a reader beside the writer")
}

func TestPassthroughRefused(t *testing.T) {
	for _, tt := range []struct {
		errno syscall.Errno
		off   bool // for the whole mount
	}{{syscall.ELOOP, true}, {syscall.EPERM, true}, {syscall.EMFILE, false}} {
		t.Run(tt.errno.Error(), func(t *testing.T) {
			m, b, _ := newTestModes()
			b.errno = tt.errno
			assert.Equal(t, open(m, both, true).OpenFlags, fuse.FOPEN_KEEP_CACHE, "flags")
			off := m.disabled.Load() != nil
			assert.True(t, off == tt.off, "off for the mount =", off, "want", tt.off)
		})
	}
}
