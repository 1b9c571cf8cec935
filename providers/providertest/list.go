package providertest

import (
	"fmt"
	"slices"

	"github.com/wsmount/wsmount/providers"
)

var recursive = providers.Capabilities{RecursiveList: true}

var listChecks = []Check{
	{Name: "list/children", Run: listChildren},
	{Name: "list/agrees-with-stat", Run: listAgrees},
	{Name: "list/absent", Run: listAbsent},
	{Name: "list/paging", Run: listPaging},
	{Name: "list/paging-under-change", Run: listUnderChange},
	{Name: "list/bad-token", Run: listBadToken},
	{Name: "list/recursive", Needs: recursive, Run: listRecursive},
	{Name: "list/recursive-paging", Needs: recursive, Run: listRecursivePaging},
	{Name: "list/recursive-after", Run: listRecursiveAfter},
}

func listChildren(t T, p providers.Provider) {
	for _, name := range []string{"top", "a/one", "a/two", "a/deep/er/file", "b/three"} {
		put(t, p, loc(name), name)
	}
	wantNames(t, list(t, p, loc(""), providers.ListOptions{}), "a", "b", "top")
	wantNames(t, list(t, p, loc("a"), providers.ListOptions{}), "a/deep", "a/one", "a/two")
	wantNames(t, list(t, p, loc("a/deep"), providers.ListOptions{}), "a/deep/er")
	if !p.Capabilities().RecursiveList {
		_, err := p.List(t.Context(), loc(""), providers.ListOptions{Recursive: true})
		wantErr(t, "recursive listing", err, providers.ErrUnsupported)
	}
}

func listAgrees(t T, p providers.Provider) {
	put(t, p, loc("dir/file"), "12345")
	put(t, p, loc("file"), "")
	for _, listed := range list(t, p, loc(""), providers.ListOptions{}) {
		stat, err := p.Stat(t.Context(), listed.Locator)
		wantOK(t, "stat", err)
		if listed.Kind != stat.Kind || listed.Size != stat.Size || !sameVersion(listed, stat) {
			t.Errorf("list says %+v, stat %+v", listed, stat)
		}
		if p.Capabilities().ListComplete && (listed.Attr.Valid != stat.Attr.Valid || !listed.ModTime().Equal(stat.ModTime())) {
			t.Errorf("list says attributes %+v, stat %+v", listed.Attr, stat.Attr)
		}
	}
}

// sameVersion also knows that directories have none.
func sameVersion(a, b providers.Info) bool {
	if a.Kind == providers.KindDir {
		return a.Version.IsZero() && b.Version.IsZero()
	}
	return a.Version.Matches(b.Version)
}

func listAbsent(t T, p providers.Provider) {
	put(t, p, loc("file"), "x")
	for _, name := range []string{"nothing", "no/parent", "file/below"} {
		_, err := p.List(t.Context(), loc(name), providers.ListOptions{})
		wantErr(t, "list of "+name, err, providers.ErrNotExist)
	}
	_, err := p.List(t.Context(), loc("file"), providers.ListOptions{})
	wantErr(t, "list of a file", err, providers.ErrNotDir, providers.ErrNotExist)
}

// fill makes n files in a directory and returns their names in order.
func fill(t T, p providers.Provider, dir string, n int) []string {
	var names []string
	for i := range n {
		names = append(names, fmt.Sprintf("%s/%03d", dir, i))
		put(t, p, loc(names[i]), "x")
	}
	return names
}

func listPaging(t T, p providers.Provider) {
	names := fill(t, p, "dir", 23)
	for _, limit := range []int{1, 4, 22, 23, 24, 0} {
		infos := list(t, p, loc("dir"), providers.ListOptions{Limit: limit})
		wantNames(t, infos, names...)
		page, err := p.List(t.Context(), loc("dir"), providers.ListOptions{Limit: limit})
		wantOK(t, "first page", err)
		if limit > 0 && len(page.Entries) > limit {
			t.Errorf("limit %d: a page of %d", limit, len(page.Entries))
		}
	}
}

// listUnderChange: an entry that exists throughout is listed exactly once, even if others come
// and go beside it.
func listUnderChange(t T, p providers.Provider) {
	appear := func(round int, _ []string) {
		put(t, p, loc(fmt.Sprintf("appear/%03d-new", round)), "x")
	}
	vanish := func(round int, names []string) { // behind the place that the listing has reached
		err := p.Delete(t.Context(), loc(names[round*2]), providers.DeleteOptions{If: providers.Unconditional()})
		wantOK(t, "delete", err)
	}
	for dir, change := range map[string]func(int, []string){"appear": appear, "vanish": vanish} {
		names := fill(t, p, dir, 20)
		seen := listWhile(t, p, loc(dir), func(round int) { change(round, names) })
		for _, left := range list(t, p, loc(dir), providers.ListOptions{}) {
			name := left.Locator.String()
			if slices.Contains(names, name) && seen[name] != 1 {
				t.Errorf("%s was there throughout and listed %d times", name, seen[name])
			}
		}
	}
}

// listWhile calls change between the pages, and counts the listed entries.
func listWhile(t T, p providers.Provider, l providers.Locator, change func(round int)) map[string]int {
	t.Helper()
	seen := map[string]int{}
	opts := providers.ListOptions{Limit: 3}
	for round := 0; ; round++ {
		page, err := p.List(t.Context(), l, opts)
		wantOK(t, "list", err)
		for _, info := range page.Entries {
			seen[info.Locator.String()]++
		}
		if page.Next == "" || round > 100 {
			return seen
		}
		opts.Token = page.Next
		change(min(round, 9))
	}
}

func listBadToken(t T, p providers.Provider) {
	fill(t, p, "dir", 2)
	_, err := p.List(t.Context(), loc("dir"), providers.ListOptions{Token: "not one of yours"})
	wantErr(t, "list with a foreign token", err, providers.ErrInvalid)
}

var deepTree = []string{"a/1", "a/b/2", "a/b/c/3", "a.x", "b", "d/4"}

func listRecursive(t T, p providers.Provider) {
	for _, name := range deepTree {
		put(t, p, loc(name), name)
	}
	wantFiles(t, list(t, p, loc(""), providers.ListOptions{Recursive: true}), deepTree...)
	wantFiles(t, list(t, p, loc("a"), providers.ListOptions{Recursive: true}), deepTree[:3]...)
	wantFiles(t, list(t, p, loc("a/b/c"), providers.ListOptions{Recursive: true}), deepTree[2])
}

// wantFiles compares a recursive listing. Directories that exist only because of their entries
// need not be listed.
func wantFiles(t T, infos []providers.Info, want ...string) {
	t.Helper()
	files := slices.DeleteFunc(infos, func(i providers.Info) bool { return i.Kind == providers.KindDir })
	wantNames(t, files, want...)
}

func listRecursivePaging(t T, p providers.Provider) {
	for _, name := range deepTree {
		put(t, p, loc(name), name)
	}
	for limit := 1; limit < 10; limit++ {
		wantFiles(t, list(t, p, loc(""), providers.ListOptions{Recursive: true, Limit: limit}), deepTree...)
	}
	for token, more := "", true; more; more = token != "" {
		var ahead []string
		page, err := p.List(t.Context(), loc(""), providers.ListOptions{Recursive: true, Limit: 3, Token: token,
			Ahead: func(next string) { ahead = append(ahead, next) }})
		wantOK(t, "list", err)
		if token = page.Next; len(ahead) > 1 || len(ahead) == 1 && ahead[0] != token {
			t.Errorf("told %q ahead of the page, which says %q", ahead, token)
		}
	}
}

// listRecursiveAfter: a listing that begins after a directory is the end of the whole one, from
// the directory's own entries on.
func listRecursiveAfter(t T, p providers.Provider) {
	names := append([]string{"a-b/5", "a/b-c/6", "d/e/f/7"}, deepTree...)
	for _, name := range names {
		put(t, p, loc(name), name)
	}
	if !p.Capabilities().ListAfter {
		_, err := p.List(t.Context(), loc(""), providers.ListOptions{Recursive: true, After: loc("a")})
		wantErr(t, "listing after a directory", err, providers.ErrUnsupported)
		return
	}
	for _, at := range []string{"", "a"} {
		for _, after := range []string{"a", "a/b", "a/b-c", "a/b/c", "a-b", "d", "d/e/f"} {
			o := providers.ListOptions{Recursive: true, After: loc(after)}
			if at == after || !loc(at).Contains(loc(after)) {
				_, err := p.List(t.Context(), loc(at), o)
				wantErr(t, fmt.Sprintf("listing of %q after %q", at, after), err, providers.ErrInvalid)
				continue
			}
			all := files(t, p, loc(at), providers.ListOptions{Recursive: true})
			first := slices.IndexFunc(all, func(name string) bool { return loc(after).Contains(loc(name)) })
			for _, o.Limit = range []int{0, 1, 2} {
				if got := files(t, p, loc(at), o); !slices.Equal(got, all[first:]) {
					t.Errorf("%q after %q, pages of %d: %q, want %q", at, after, o.Limit, got, all[first:])
				}
			}
		}
	}
	_, err := p.List(t.Context(), loc(""), providers.ListOptions{After: loc("a")})
	wantErr(t, "listing of one directory after another", err, providers.ErrUnsupported)
}

// files are the files of a listing, in its order.
func files(t T, p providers.Provider, l providers.Locator, o providers.ListOptions) (names []string) {
	t.Helper()
	for info, err := range providers.All(t.Context(), p, l, o) {
		wantOK(t, "list", err)
		if info.Kind != providers.KindDir {
			names = append(names, info.Locator.String())
		}
	}
	return names
}
