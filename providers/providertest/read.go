package providertest

import (
	"errors"
	"io"
	"slices"

	"github.com/wsmount/wsmount/providers"
)

var readChecks = []Check{
	{Name: "read/ranges", Run: readRanges},
	{Name: "read/pinned", Run: readPinned},
	{Name: "read/absent", Run: readAbsent},
	{Name: "read/directory", Run: readDirectory},
	{Name: "read/open-while-replaced", Run: readWhileReplaced},
}

func readRanges(t T, p providers.Provider) {
	const content = "0123456789"
	put(t, p, loc("a"), content)
	for _, c := range []struct {
		offset, length int64
		want           string
	}{
		{0, 0, content}, {0, 1, "0"}, {0, 10, content}, {0, 99, content}, {3, 0, "3456789"}, {3, 4, "3456"},
		{9, 1, "9"}, {9, 0, "9"}, {9, 5, "9"}, {10, 0, ""}, {10, 1, ""}, {11, 3, ""}, {1 << 40, 0, ""},
	} {
		got, info, err := providers.Fetch(t.Context(), p, loc("a"), providers.ReadOptions{Offset: c.offset, Length: c.length})
		wantOK(t, "read of a range", err)
		if string(got) != c.want || info.Size != int64(len(content)) {
			t.Errorf("range %d+%d: got %q of %d bytes, want %q of %d", c.offset, c.length, got, info.Size, c.want, len(content))
		}
	}
	for _, opts := range []providers.ReadOptions{{Offset: -1}, {Length: -1}} {
		_, err := p.Read(t.Context(), loc("a"), opts)
		wantErr(t, "read of a negative range", err, providers.ErrInvalid)
	}
	put(t, p, loc("empty"), "")
	_, _, err := providers.Fetch(t.Context(), p, loc("empty"), providers.ReadOptions{Offset: 5, Length: 5})
	wantOK(t, "read beyond an empty file", err)
}

func readPinned(t T, p providers.Provider) {
	first := put(t, p, loc("a"), "first")
	got, _, err := providers.Fetch(t.Context(), p, loc("a"), providers.ReadOptions{Version: first.Version, Offset: 1})
	wantOK(t, "read of the present version", err)
	if string(got) != "irst" {
		t.Errorf("read of the present version: got %q", got)
	}
	second := put(t, p, loc("a"), "other")
	_, err = p.Read(t.Context(), loc("a"), providers.ReadOptions{Version: first.Version})
	wantErr(t, "read of a version that is gone", err, providers.ErrConflict)
	readPast(t, p, first, "first")
	wantOK(t, "delete", p.Delete(t.Context(), loc("a"), providers.DeleteOptions{If: providers.IfVersion(second.Version)}))
	_, err = p.Read(t.Context(), loc("a"), providers.ReadOptions{Version: second.Version})
	wantErr(t, "read of a version that was deleted", err, providers.ErrNotExist)
	readPast(t, p, first, "first")
	readPast(t, p, second, "other")
}

// readPast reads a previous version of an entry. A store need not have it.
func readPast(t T, p providers.Provider, was providers.Info, want string) {
	got, _, err := providers.Fetch(t.Context(), p, loc("a"), providers.ReadOptions{Version: was.Version, Past: true})
	if err == nil && string(got) != want {
		t.Errorf("a version of the past: got %q, want %q", got, want)
	}
	may := []error{providers.ErrNotExist, providers.ErrConflict, providers.ErrUnsupported, providers.ErrPermission}
	if err != nil && !slices.ContainsFunc(may, func(kind error) bool { return errors.Is(err, kind) }) {
		t.Errorf("a version of the past: %v", err)
	}
}

func readAbsent(t T, p providers.Provider) {
	put(t, p, loc("file"), "x")
	for _, name := range []string{"nothing", "no/parent", "file/below"} {
		_, err := p.Read(t.Context(), loc(name), providers.ReadOptions{})
		wantErr(t, "read of "+name, err, providers.ErrNotExist)
		_, err = p.Stat(t.Context(), loc(name))
		wantErr(t, "stat of "+name, err, providers.ErrNotExist)
	}
}

func readDirectory(t T, p providers.Provider) {
	put(t, p, loc("dir/file"), "x")
	for _, name := range []string{"", "dir"} {
		_, err := p.Read(t.Context(), loc(name), providers.ReadOptions{})
		wantErr(t, "read of a directory", err, providers.ErrIsDir)
	}
}

// readWhileReplaced: a body is of one version to its end, or ends in an error.
func readWhileReplaced(t T, p providers.Provider) {
	before := pattern(1 << 20)
	put(t, p, loc("a"), before)
	c, err := p.Read(t.Context(), loc("a"), providers.ReadOptions{})
	wantOK(t, "read", err)
	defer c.Body.Close()
	start := make([]byte, 1000)
	_, err = io.ReadFull(c.Body, start)
	wantOK(t, "read of the first bytes", err)
	put(t, p, loc("a"), "short")
	rest, err := io.ReadAll(c.Body)
	if got := string(start) + string(rest); err == nil && got != before {
		t.Errorf("read across a change ended well with %s", brief(got))
	}
	if err != nil {
		wantErr(t, "read across a change", err, providers.ErrConflict, providers.ErrUnavailable)
	}
}
