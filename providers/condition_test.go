package providers_test

import (
	"errors"
	"testing"
	"time"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
)

func TestVersionMatches(t *testing.T) {
	v := providers.Version{ETag: "e", Modified: 5, Size: 3}
	for _, c := range []struct {
		name string
		w    providers.Version
		want bool
	}{
		{"same", v, true},
		{"time not told", providers.Version{ETag: "e", Size: 3}, true},
		{"other time", providers.Version{ETag: "e", Modified: 6, Size: 3}, false},
		{"other size", providers.Version{ETag: "e", Modified: 5, Size: 4}, false},
		{"other tag", providers.Version{ETag: "f", Modified: 5, Size: 3}, false},
		{"no tag", providers.Version{Modified: 5, Size: 3}, false},
		{"nothing", providers.Version{}, false},
	} {
		if v.Matches(c.w) != c.want || c.w.Matches(v) != c.want {
			t.Errorf("%s: got %v and %v, want %v", c.name, v.Matches(c.w), c.w.Matches(v), c.want)
		}
	}
	assert.False(t, (providers.Version{}).Matches(providers.Version{}), "nothing matches nothing")
}

func TestConditionAllows(t *testing.T) {
	v := providers.Version{ETag: "e", Modified: 5, Size: 3}
	other := providers.Version{ETag: "f", Modified: 6, Size: 3}
	file := &providers.Info{Kind: providers.KindFile, Version: v}
	dir := &providers.Info{Kind: providers.KindDir}
	const write, del, attr = providers.MethodWrite, providers.MethodDelete, providers.MethodSetAttr
	for _, c := range []struct {
		name    string
		cond    providers.Condition
		verb    providers.Method
		current *providers.Info
		want    error
	}{
		{"forgotten", providers.Condition{}, write, nil, providers.ErrInvalid},
		{"unknown", providers.Condition{Kind: 77}, del, file, providers.ErrInvalid},
		{"absent, nothing", providers.IfAbsent(), write, nil, nil},
		{"absent, file", providers.IfAbsent(), write, file, providers.ErrExist},
		{"absent, directory", providers.IfAbsent(), write, dir, providers.ErrExist},
		{"absent, delete", providers.IfAbsent(), del, nil, providers.ErrInvalid},
		{"version, same", providers.IfVersion(v), write, file, nil},
		{"version, other", providers.IfVersion(other), write, file, providers.ErrConflict},
		{"version, nothing to replace", providers.IfVersion(v), write, nil, providers.ErrConflict},
		{"version, nothing to delete", providers.IfVersion(v), del, nil, providers.ErrNotExist},
		{"version, directory", providers.IfVersion(v), del, dir, providers.ErrConflict},
		{"version, empty", providers.IfVersion(providers.Version{}), write, file, providers.ErrInvalid},
		{"dir, directory", providers.IfDir(), del, dir, nil},
		{"dir, file", providers.IfDir(), del, file, providers.ErrNotDir},
		{"dir, nothing", providers.IfDir(), del, nil, providers.ErrNotExist},
		{"dir, write", providers.IfDir(), write, dir, providers.ErrInvalid},
		{"none, file", providers.Unconditional(), write, file, nil},
		{"none, nothing", providers.Unconditional(), del, nil, nil},
		{"none, write over directory", providers.Unconditional(), write, dir, providers.ErrIsDir},
		{"none, delete of directory", providers.Unconditional(), del, dir, providers.ErrIsDir},
		{"none, attributes of directory", providers.Unconditional(), attr, dir, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := c.cond.Allows(c.verb, c.current)
			assert.True(t, errors.Is(err, c.want) && (c.want == nil) == (err == nil), c.want, err)
		})
	}
}

func TestInfoModTime(t *testing.T) {
	stored := time.Unix(100, 0)
	told := providers.Version{Modified: 7}
	for _, c := range []struct {
		name string
		info providers.Info
		want time.Time
	}{
		{"stored", providers.Info{Version: told, Attr: providers.Attr{Valid: providers.AttrModTime, ModTime: stored}}, stored},
		{"told", providers.Info{Version: told, Attr: providers.Attr{ModTime: stored}}, time.Unix(0, 7)},
		{"unknown", providers.Info{}, time.Time{}},
	} {
		got := c.info.ModTime()
		assert.True(t, got.Equal(c.want), c.name, got, c.want)
	}
}
