package providertest

import (
	"maps"
	"slices"

	"github.com/wsmount/wsmount/providers"
)

// differences are those between two revisions, by path: ["was", "is"], each "" for no entry,
// "dir", or say of the entry.
func differences(t T, p providers.Provider, from, to providers.Revision) map[string][2]string {
	t.Helper()
	all, err := must[providers.Differ](t, p).Differences(t.Context(), from, to)
	wantOK(t, "differences", err)
	got := map[string][2]string{}
	side := func(l providers.Locator, info *providers.Info) string {
		switch {
		case info == nil:
			return ""
		case info.Locator != l:
			t.Errorf("%s: the entry is of %s", l, info.Locator)
		case info.Kind == providers.KindDir:
			return "dir"
		}
		return say(*info)
	}
	for i, d := range all {
		if i > 0 && all[i-1].Locator.Compare(d.Locator) >= 0 {
			t.Errorf("%s does not come before %s", all[i-1].Locator, d.Locator)
		}
		got[d.Locator.String()] = [2]string{side(d.Locator, d.Was), side(d.Locator, d.Is)}
	}
	return got
}

// say describes an entry that is no directory, by all that matters of it.
func say(info providers.Info) string {
	return info.Kind.String() + " " + info.Version.ETag
}

// listed has all entries of a revision by List, in the form of differences.
func listed(t T, p providers.Provider, r providers.Revision) map[string]string {
	t.Helper()
	all := map[string]string{}
	var walk func(l providers.Locator)
	past := at(t, p, r)
	walk = func(l providers.Locator) {
		for info, err := range providers.All(t.Context(), past, l, providers.ListOptions{}) {
			wantOK(t, "list", err)
			if info.Kind == providers.KindDir {
				all[info.Locator.String()] = "dir"
				walk(info.Locator)
			} else {
				all[info.Locator.String()] = say(info)
			}
		}
	}
	walk(providers.Locator{})
	return all
}

// wantDifferences compares the differences of two revisions with their listings.
func wantDifferences(t T, p providers.Provider, from, to providers.Revision) {
	t.Helper()
	was, is, want := listed(t, p, from), listed(t, p, to), map[string][2]string{}
	for path := range was {
		want[path] = [2]string{was[path], is[path]}
	}
	for path := range is {
		want[path] = [2]string{was[path], is[path]}
	}
	maps.DeleteFunc(want, func(_ string, sides [2]string) bool { return sides[0] == sides[1] })
	got := differences(t, p, from, to)
	for _, path := range slices.Sorted(maps.Keys(want)) {
		if got[path] != want[path] {
			t.Errorf("%s: %q, and the listings say %q", path, got[path], want[path])
		}
		delete(got, path)
	}
	if len(got) > 0 {
		t.Errorf("told as different, and are not: %v", got)
	}
}

// differPaths: new, removed and changed entries, both ways, near the root and deep below.
func differPaths(t T, c Clones) {
	save(t, c.A, "a", "1")
	save(t, c.A, "dir/b", "1")
	save(t, c.A, "dir/below/c", "1")
	from := save(t, c.A, "gone/all/of/it", "1")
	save(t, c.A, "a", "2")
	save(t, c.A, "dir/below/c", "2")
	save(t, c.A, "dir/new", "1")
	save(t, c.A, "made/all/of/it", "1")
	commit(t, c.A, providers.Change{Locator: loc("gone/all/of/it"), Delete: true, If: providers.Unconditional()})
	to := headOf(t, c.A)
	wantDifferences(t, c.A, from, to)
	wantDifferences(t, c.A, to, from)
	if got := differences(t, c.A, to, to); len(got) > 0 {
		t.Errorf("of one revision: %v", got)
	}
	if got := differences(t, c.A, from, to)["a"]; got[0] == "" || got[1] == "" || got[0] == got[1] {
		t.Errorf("what changed: %q", got)
	}
}

// differKinds: one kind in place of another, with the entries below, and names that sort
// differently with a slash behind them.
func differKinds(t T, c Clones) {
	save(t, c.A, "x", "1")
	save(t, c.A, "x-y", "1")
	from := save(t, c.A, "z/deep/er", "1")
	commit(t, c.A, providers.Change{Locator: loc("x"), Delete: true, If: providers.Unconditional()},
		change("x/in", "1", providers.IfAbsent()))
	commit(t, c.A, providers.Change{Locator: loc("z/deep/er"), Delete: true, If: providers.Unconditional()})
	to := save(t, c.A, "z", "1")
	wantDifferences(t, c.A, from, to)
	wantDifferences(t, c.A, to, from)
}

func differUnknown(t T, c Clones) {
	ours := shared(t, c)
	theirs := save(t, c.B, "b", "x")
	d := must[providers.Differ](t, c.A)
	for _, r := range []providers.Revision{"no such", theirs} {
		for _, pair := range [][2]providers.Revision{{ours, r}, {r, ours}} {
			_, err := d.Differences(t.Context(), pair[0], pair[1])
			wantErr(t, "differences with "+string(r), err, providers.ErrNotExist)
		}
	}
}
