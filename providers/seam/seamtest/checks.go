package seamtest

import (
	"context"
	"errors"
	"strings"
	"sync"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/providertest"
	"github.com/wsmount/wsmount/providers/seam"
)

// Checks are all checks.
func Checks() []Check {
	return []Check{
		{"resolve/normalises", resolveNormalises},
		{"resolve/refuses", resolveRefuses},
		{"write/read", writeRead},
		{"write/exact", writeExact},
		{"write/replaces", writeReplaces},
		{"write/parents", writeParents},
		{"write/over-directory", writeOverDirectory},
		{"write/below-file", writeBelowFile},
		{"write/text", writeText},
		{"write/whole", writeWhole},
		{"write-if/unchanged", writeIfUnchanged},
		{"write-if/changed", writeIfChanged},
		{"write-if/counted", writeIfCounted},
		{"read/absent", readAbsent},
		{"read/directory", readDirectory},
		{"exists", exists},
		{"info/file", infoFile},
		{"info/time", infoTime},
		{"info/directory", infoDirectory},
		{"info/absent", infoAbsent},
		{"mkdir/idempotent", mkdirIdempotent},
		{"mkdir/parents", mkdirParents},
		{"mkdir/over-file", mkdirOverFile},
		{"list/immediate", listImmediate},
		{"list/hidden", listHidden},
		{"list/empty", listEmpty},
		{"routing/repos", routingRepos},
		{"routing/counted", routingCounted},
		{"routing/state", routingState},
		{"context/ended", contextEnded},
		{"capabilities/constant", capabilitiesConstant},
		{"capabilities/concurrent-writers", promisesWriters},
		{"capabilities/conflict-files", promisesCopies},
		{"capabilities/sync", promisesSync},
		{"capabilities/encryption", promisesEncryption},
	}
}

// at is a name that is known to be good.
func at(t providertest.T, b seam.Backend, parts ...string) seam.Locator {
	t.Helper()
	l, err := b.Resolve(parts...)
	assert.OK(t, err, "resolve", parts)
	return l
}

func write(t providertest.T, b seam.Backend, l seam.Locator, content string) {
	t.Helper()
	got, err := b.Write(t.Context(), l, content)
	assert.OK(t, err, "write", l)
	assert.Equal(t, got, l, "what write returns")
}

func holds(t providertest.T, b seam.Backend, l seam.Locator, want string) {
	t.Helper()
	got, err := b.Read(t.Context(), l)
	assert.OK(t, err, "read", l)
	assert.Equal(t, got, want, "content of", l)
}

func mkdir(t providertest.T, b seam.Backend, l seam.Locator) {
	t.Helper()
	got, err := b.Mkdir(t.Context(), l)
	assert.OK(t, err, "mkdir", l)
	assert.Equal(t, got, l, "what mkdir returns")
}

func isThere(t providertest.T, b seam.Backend, l seam.Locator, want bool) {
	t.Helper()
	got, err := b.Exists(t.Context(), l)
	assert.OK(t, err, "exists", l)
	assert.Equal(t, got, want, "exists", l)
}

func lists(t providertest.T, b seam.Backend, l seam.Locator, want ...string) {
	t.Helper()
	children, err := b.List(t.Context(), l)
	assert.OK(t, err, "list", l)
	var got []string
	for _, child := range children {
		got = append(got, child.Key())
	}
	assert.Slice(t, got, want, "children of", l)
}

func isDir(t providertest.T, b seam.Backend, l seam.Locator) {
	t.Helper()
	info, err := b.Info(t.Context(), l)
	assert.OK(t, err, "info", l)
	assert.Equal(t, info, seam.Info{Locator: l, IsDir: true, ModTime: info.ModTime}, "info")
}

// resolveNormalises: a key has one form, however it is spelt.
func resolveNormalises(t providertest.T, b seam.Backend) {
	for _, c := range []struct {
		parts []string
		want  string
	}{
		{nil, ""}, {[]string{""}, ""}, {[]string{"/"}, ""}, {[]string{"."}, ""},
		{[]string{"a", "b"}, "a/b"}, {[]string{"a/b"}, "a/b"}, {[]string{"/a"}, "a"}, {[]string{"a", "/b"}, "a/b"},
		{[]string{"a//./b/"}, "a/b"}, {[]string{"./a"}, "a"}, {[]string{"", "a", ""}, "a"},
		{[]string{"...", ".a", "a.."}, ".../.a/a.."}, {[]string{"ä ö", "漢"}, "ä ö/漢"},
	} {
		l, err := b.Resolve(c.parts...)
		assert.OK(t, err, "resolve", c.parts)
		assert.Equal(t, l.Key(), c.want, "resolve", c.parts)
		child, err := at(t, b).Child(c.parts...)
		assert.OK(t, err, "child", c.parts)
		assert.Equal(t, child, l, "child and resolve of", c.parts)
	}
}

// resolveRefuses: a key that leads upwards, or is another one for some backend, is a mistake of
// the caller, and not a missing entry.
func resolveRefuses(t providertest.T, b seam.Backend) {
	for _, key := range []string{"..", "a/..", "a/../b", "/..", "../../etc/passwd", `a\b`, "a\x00b", "a\xffb", strings.Repeat("n", providers.MaxName+1)} {
		l, err := b.Resolve(key)
		var invalid *seam.InvalidLocatorError
		assert.True(t, errors.As(err, &invalid) && errors.Is(err, providers.ErrInvalid) && !errors.Is(err, providers.ErrNotExist),
			"resolve", key, "got", l, "error", err)
	}
}

// writeRead: written content is read with the locator that Write returned.
func writeRead(t providertest.T, b seam.Backend) {
	got, err := b.Write(t.Context(), at(t, b, "note.md"), "# Note\n")
	assert.OK(t, err, "write")
	assert.Equal(t, got, at(t, b, "note.md"), "what write returns")
	holds(t, b, got, "# Note\n")
}

// writeExact: every byte stays, and no text is special.
func writeExact(t providertest.T, b seam.Backend) {
	for _, content := range []string{
		"", "no end of line", "a\r\nb\rc\n", "é ä 漢 🙂\n", "\ufeffbom\n", "nul\x00\n", " \n\t\n", strings.Repeat("line\n", 20000),
	} {
		l := at(t, b, "exact.md")
		write(t, b, l, content)
		holds(t, b, l, content)
	}
}

// writeReplaces: nothing stays of longer old content.
func writeReplaces(t providertest.T, b seam.Backend) {
	l := at(t, b, "a.md")
	write(t, b, l, "long content\n")
	write(t, b, l, "x")
	holds(t, b, l, "x")
}

// writeParents: missing directories are made, and others stay.
func writeParents(t providertest.T, b seam.Backend) {
	write(t, b, at(t, b, "p", "q", "one.md"), "1")
	write(t, b, at(t, b, "p", "q", "two.md"), "2")
	isDir(t, b, at(t, b, "p"))
	isDir(t, b, at(t, b, "p", "q"))
	holds(t, b, at(t, b, "p", "q", "one.md"), "1")
}

// writeOverDirectory: no directory gives way to a file, the root neither.
func writeOverDirectory(t providertest.T, b seam.Backend) {
	write(t, b, at(t, b, "d", "inside.md"), "1")
	mkdir(t, b, at(t, b, "empty"))
	for _, key := range []string{"d", "empty", ""} {
		l := at(t, b, key)
		assert.Is(t, assert.ErrOf(b.Write(t.Context(), l, "x")), providers.ErrIsDir, "write over the directory", key)
		isDir(t, b, l)
	}
	holds(t, b, at(t, b, "d", "inside.md"), "1")
}

// writeBelowFile: a file does not become a directory. A flat store may have both.
func writeBelowFile(t providertest.T, b seam.Backend) {
	write(t, b, at(t, b, "f"), "1")
	if _, err := b.Write(t.Context(), at(t, b, "f", "below"), "2"); err == nil {
		holds(t, b, at(t, b, "f", "below"), "2")
	} else {
		isThere(t, b, at(t, b, "f", "below"), false)
	}
	holds(t, b, at(t, b, "f"), "1")
}

// writeText: content that is no text is refused before anything happens.
func writeText(t providertest.T, b seam.Backend) {
	old, new := at(t, b, "old.md"), at(t, b, "new.md")
	write(t, b, old, "text")
	for _, l := range []seam.Locator{old, new} {
		_, err := b.Write(t.Context(), l, "text, then \xff")
		var text *seam.TextError
		if assert.True(t, errors.As(err, &text), "write of what is no text:", err); text != nil {
			assert.Equal(t, *text, seam.TextError{Locator: l, Offset: 11}, "error")
		}
	}
	holds(t, b, old, "text")
	isThere(t, b, new, false)
}

// writeWhole: among readers and writers, each reader gets the content of one writer.
func writeWhole(t providertest.T, b seam.Backend) {
	l := at(t, b, "shared.md")
	contents := map[string]bool{}
	for _, word := range []string{"one ", "second ", "the third "} {
		contents[strings.Repeat(word, 3000)] = true
	}
	var writers, readers sync.WaitGroup
	for content := range contents {
		write(t, b, l, content)
		writers.Go(func() {
			for range 8 {
				if _, err := b.Write(t.Context(), l, content); err != nil {
					t.Errorf("write among others: %v", err)
				}
			}
		})
	}
	done := make(chan struct{})
	for range 2 {
		readers.Go(func() {
			for {
				got, err := b.Read(t.Context(), l)
				if err != nil || !contents[got] {
					t.Errorf("read among writers: %d bytes of no writer, error %v", len(got), err)
					return
				}
				select {
				case <-done:
					return
				default:
				}
			}
		})
	}
	writers.Wait()
	close(done)
	readers.Wait()
}

// writeIf runs check if the backend's writes can have conditions; else there is nothing to check.
func writeIf(b seam.Backend, check func(seam.Conditional)) {
	if c, ok := b.(seam.Conditional); ok {
		check(c)
	}
}

// writeIfUnchanged: unchanged content is replaced, and a missing file is made.
func writeIfUnchanged(t providertest.T, b seam.Backend) {
	writeIf(b, func(c seam.Conditional) {
		l, was := at(t, b, "d", "plan.md"), seam.None
		for _, content := range []string{"one", "two", "", "two"} {
			got, err := c.WriteIf(t.Context(), l, was, content)
			assert.OK(t, err, "write what is unchanged")
			assert.Equal(t, got, l, "what it returns")
			holds(t, b, l, content)
			was = seam.ETagOf(content)
		}
	})
}

// writeIfChanged: content that differs from the condition stays, whether it changed, came or
// went.
func writeIfChanged(t providertest.T, b seam.Backend) {
	writeIf(b, func(c seam.Conditional) {
		there, gone := at(t, b, "there.md"), at(t, b, "gone.md")
		write(t, b, there, "new")
		for _, old := range []seam.ETag{seam.None, seam.ETagOf("old"), seam.ETagOf("")} {
			assert.Is(t, assert.ErrOf(c.WriteIf(t.Context(), there, old, "mine")), providers.ErrConflict, "write what has changed, which was", old)
			holds(t, b, there, "new")
		}
		assert.Is(t, assert.ErrOf(c.WriteIf(t.Context(), gone, seam.ETagOf("old"), "mine")), providers.ErrConflict, "write what is gone")
		isThere(t, b, gone, false)
	})
}

// writeIfCounted: of several that count in one file, each is counted.
func writeIfCounted(t providertest.T, b seam.Backend) {
	writeIf(b, func(seam.Conditional) {
		const writers, each = 4, 5
		l := at(t, b, "count")
		var all sync.WaitGroup
		for range writers {
			all.Go(func() {
				for range each {
					err := seam.Update(t.Context(), b, l, func(text string, _ bool) (string, bool, error) { return text + "x", true, nil })
					if err != nil {
						t.Errorf("count: %v", err)
					}
				}
			})
		}
		all.Wait()
		holds(t, b, l, strings.Repeat("x", writers*each))
	})
}

// readAbsent: a missing entry is no mistake in the name.
func readAbsent(t providertest.T, b seam.Backend) {
	write(t, b, at(t, b, "f"), "1")
	for _, key := range []string{"absent", "absent/below", "f/below"} {
		_, err := b.Read(t.Context(), at(t, b, key))
		var invalid *seam.InvalidLocatorError
		assert.Is(t, err, providers.ErrNotExist, "read", key)
		assert.False(t, errors.As(err, &invalid), "read of", key, "is a mistake in the name:", err)
	}
}

func readDirectory(t providertest.T, b seam.Backend) {
	write(t, b, at(t, b, "d", "f"), "1")
	mkdir(t, b, at(t, b, "empty"))
	for _, key := range []string{"d", "empty", ""} {
		assert.Is(t, assert.ErrOf(b.Read(t.Context(), at(t, b, key))), providers.ErrIsDir, "read of the directory", key)
	}
}

// contextEnded: nothing is done for a caller that gave up.
func contextEnded(t providertest.T, b seam.Backend) {
	l := at(t, b, "f")
	write(t, b, l, "old")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for verb, err := range map[string]error{
		"read": assert.ErrOf(b.Read(ctx, l)), "write": assert.ErrOf(b.Write(ctx, l, "new")), "list": assert.ErrOf(b.List(ctx, at(t, b))),
		"exists": assert.ErrOf(b.Exists(ctx, l)), "info": assert.ErrOf(b.Info(ctx, l)), "mkdir": assert.ErrOf(b.Mkdir(ctx, at(t, b, "d"))),
	} {
		assert.Is(t, err, context.Canceled, verb)
	}
	holds(t, b, l, "old")
	isThere(t, b, at(t, b, "d"), false)
}

func capabilitiesConstant(t providertest.T, b seam.Backend) {
	before := b.Capabilities()
	write(t, b, at(t, b, "f"), "1")
	assert.Equal(t, b.Capabilities(), before, "capabilities")
}
