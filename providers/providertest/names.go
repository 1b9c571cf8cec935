package providertest

import (
	"errors"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/wsmount/wsmount/providers"
)

var nameChecks = []Check{
	{Name: "names/odd", Run: namesOdd},
	{Name: "names/neighbours", Run: namesNeighbours},
	{Name: "names/errors-name-them-once", Run: namesInErrors},
}

// oddNames are names that POSIX allows and other software may trip over.
func oddNames() []string {
	names := []string{
		" ", "-", "-rf", "~", "*", "?", "[a]", `back\slash`, `\`, "a b", " lead", "trail ", "trail.", "...", ".hidden",
		"new\nline", "tab\t", "\x01", "\x7f", "quote\"'", "a:b", "a|b<c>", "%", "%2f", "100%", "%00", "+", "&=#?",
		"caf\u00e9", "cafe\u0301", "\u6f22\u5b57", "\xff\xfe", "UPPER", "upper", "CON", "nul.txt", "a.tmp", ".git", "$(id)",
		strings.Repeat("n", providers.MaxName), strings.Repeat("\u00fc", 127),
	}
	for _, key := range []providers.Key{"", ".", "..", "a\x00b", "%~.", "%~%25~."} {
		names = append(names, key.Locator().Name())
	}
	return names
}

// mayRefuse reports whether p may refuse a name as invalid.
func mayRefuse(p providers.Provider, name string) bool {
	limits := p.Capabilities().Names
	key, err := loc(name).Key()
	isOther := limits.DotGit && providers.IsDotGit(name) || limits.Slashes && !providers.KeepsInURL(loc(name))
	plain := err == nil && string(key) == name && !isOther && utf8.ValidString(name) && strings.IndexFunc(name, unicode.IsControl) < 0
	return !plain && !p.Capabilities().AnyNames
}

func namesOdd(t T, p providers.Provider) {
	names := oddNames()
	dir := loc("odd")
	names = slices.DeleteFunc(names, func(name string) bool {
		l, err := dir.Child(name)
		wantOK(t, "locator", err)
		_, err = p.Write(t.Context(), l, providers.String("of "+name), unconditional)
		if mayRefuse(p, name) && errors.Is(err, providers.ErrInvalid) {
			if p.Capabilities().Names.Check(l) == nil {
				t.Errorf("%s is refused, and Capabilities did not say so", brief(name))
			}
			return true
		}
		wantOK(t, "write of "+brief(name), err)
		return false
	})
	var got []string
	for _, info := range list(t, p, dir, providers.ListOptions{}) {
		got = append(got, info.Locator.Name())
		wantContent(t, p, info.Locator, "of "+info.Locator.Name())
	}
	slices.Sort(names)
	if !slices.Equal(got, names) {
		t.Errorf("listing: got %q, want %q", got, names)
	}
	for _, name := range names {
		l, _ := dir.Child(name)
		wantOK(t, "delete", p.Delete(t.Context(), l, providers.DeleteOptions{If: providers.Unconditional()}))
		wantGone(t, p, l)
	}
}

// namesNeighbours: a name that is the beginning of another does not include it.
func namesNeighbours(t T, p providers.Provider) {
	for _, name := range []string{"a", "ab", "a.b", "a-b", "dir/x", "dir-2/y", "dir.z", "d"} {
		put(t, p, loc(name), name)
	}
	wantNames(t, list(t, p, loc(""), providers.ListOptions{}), "a", "a-b", "a.b", "ab", "d", "dir", "dir-2", "dir.z")
	wantNames(t, list(t, p, loc("dir"), providers.ListOptions{}), "dir/x")
	wantOK(t, "delete", p.Delete(t.Context(), loc("dir/x"), providers.DeleteOptions{If: providers.Unconditional()}))
	wantContent(t, p, loc("dir-2/y"), "dir-2/y")
	wantContent(t, p, loc("dir.z"), "dir.z")
}

func namesInErrors(t T, p providers.Provider) {
	l := loc("no such/entry")
	check := func(op providers.Method, err error) {
		wantErr(t, string(op), err, providers.ErrNotExist)
		if err == nil {
			return
		}
		var e *providers.Error
		if errors.As(err, &e) && e.Op != op {
			t.Errorf("%s: the operation of error %v is %q", op, err, e.Op)
		}
		if strings.Count(err.Error(), `"no such/entry"`) != 1 {
			t.Errorf("%s: error %q does not name the entry exactly once", op, err)
		}
	}
	_, err := p.Stat(t.Context(), l)
	check(providers.MethodStat, err)
	_, err = p.Read(t.Context(), l, providers.ReadOptions{})
	check(providers.MethodRead, err)
	_, err = p.List(t.Context(), l, providers.ListOptions{})
	check(providers.MethodList, err)
	check(providers.MethodDelete, p.Delete(t.Context(), l, providers.DeleteOptions{If: providers.IfDir()}))
}
