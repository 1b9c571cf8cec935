package seamtest

import (
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/providertest"
	"github.com/wsmount/wsmount/providers/seam"
)

// exists: files and directories exist from their creation on.
func exists(t providertest.T, b seam.Backend) {
	isThere(t, b, at(t, b), true)
	for _, key := range []string{"d/f", "d", "e"} {
		isThere(t, b, at(t, b, key), false)
	}
	write(t, b, at(t, b, "d", "f"), "1")
	mkdir(t, b, at(t, b, "e"))
	for _, key := range []string{"d/f", "d", "e"} {
		isThere(t, b, at(t, b, key), true)
	}
	isThere(t, b, at(t, b, "d", "f", "below"), false)
}

// infoFile: the size is in bytes.
func infoFile(t providertest.T, b seam.Backend) {
	l := at(t, b, "d", "f.md")
	write(t, b, l, "é漢\r\n")
	info, err := b.Info(t.Context(), l)
	assert.OK(t, err, "info")
	assert.Equal(t, info, seam.Info{Locator: l, Size: 7, ModTime: info.ModTime}, "info")
	write(t, b, l, "")
	info, err = b.Info(t.Context(), l)
	assert.OK(t, err, "info")
	assert.Equal(t, info.Size, 0, "size of an empty file")
}

// infoTime: a time is told, and is one of today's world.
func infoTime(t providertest.T, b seam.Backend) {
	l := at(t, b, "f.md")
	write(t, b, l, "text")
	info, err := b.Info(t.Context(), l)
	assert.OK(t, err, "info")
	assert.True(t, info.ModTime.Unix() > 0, "time of a file:", info.ModTime)
}

func infoDirectory(t providertest.T, b seam.Backend) {
	isDir(t, b, at(t, b))
	write(t, b, at(t, b, "d", "f"), "content")
	isDir(t, b, at(t, b, "d"))
}

func infoAbsent(t providertest.T, b seam.Backend) {
	write(t, b, at(t, b, "f"), "1")
	for _, key := range []string{"absent", "absent/below", "f/below"} {
		assert.Is(t, assert.ErrOf(b.Info(t.Context(), at(t, b, key))), providers.ErrNotExist, "info of", key)
	}
}

// mkdirIdempotent: an existing directory stays, with its content.
func mkdirIdempotent(t providertest.T, b seam.Backend) {
	l := at(t, b, "d")
	mkdir(t, b, l)
	isDir(t, b, l)
	write(t, b, at(t, b, "d", "f"), "1")
	mkdir(t, b, l)
	holds(t, b, at(t, b, "d", "f"), "1")
	mkdir(t, b, at(t, b))
}

func mkdirParents(t providertest.T, b seam.Backend) {
	mkdir(t, b, at(t, b, "a", "b", "c"))
	isDir(t, b, at(t, b, "a"))
	isDir(t, b, at(t, b, "a", "b"))
	isDir(t, b, at(t, b, "a", "b", "c"))
	lists(t, b, at(t, b, "a"), "a/b")
}

// mkdirOverFile: the file stays.
func mkdirOverFile(t providertest.T, b seam.Backend) {
	l := at(t, b, "f")
	write(t, b, l, "1")
	assert.Is(t, assert.ErrOf(b.Mkdir(t.Context(), l)), providers.ErrExist, "mkdir over a file")
	holds(t, b, l, "1")
}

// listImmediate: children without their own children, once each, sorted.
func listImmediate(t providertest.T, b seam.Backend) {
	for _, key := range []string{"z.md", "d/f", "d/g/h", "d/e/i", "dd/x", "a.md"} {
		write(t, b, at(t, b, key), key)
	}
	mkdir(t, b, at(t, b, "d", "made"))
	lists(t, b, at(t, b), "a.md", "d", "dd", "z.md")
	lists(t, b, at(t, b, "d"), "d/e", "d/f", "d/g", "d/made")
	children, err := b.List(t.Context(), at(t, b, "d", "e"))
	assert.OK(t, err, "list")
	assert.Slice(t, children, []seam.Locator{at(t, b, "d", "e", "i")}, "children")
	holds(t, b, at(t, b, "d", "e", "i"), "d/e/i")
}

// listHidden: a dot in front hides nothing.
func listHidden(t providertest.T, b seam.Backend) {
	write(t, b, at(t, b, ".hidden"), "1")
	write(t, b, at(t, b, ".dir", "f~"), "1")
	lists(t, b, at(t, b), ".dir", ".hidden")
	lists(t, b, at(t, b, ".dir"), ".dir/f~")
}

// listEmpty: an empty directory, a file, and a missing entry have no children, and that is no
// error.
func listEmpty(t providertest.T, b seam.Backend) {
	lists(t, b, at(t, b))
	mkdir(t, b, at(t, b, "empty"))
	write(t, b, at(t, b, "f"), "1")
	for _, key := range []string{"empty", "f", "absent", "absent/below", "f/below"} {
		lists(t, b, at(t, b, key))
	}
}
