package providertest

import (
	"slices"

	"github.com/wsmount/wsmount/providers"
)

// changeSetChecks are the rules of providers.ChangeSet.
var changeSetChecks = []Check{
	{Name: "set/rename-file", Needs: able(providers.AbilityCommit), Run: setRenameFile},
	{Name: "set/rename-directory", Needs: able(providers.AbilityCommit), Run: setRenameDirectory},
	{Name: "set/copy", Needs: able(providers.AbilityCommit), Run: setCopy},
	{Name: "set/exchange", Needs: able(providers.AbilityCommit), Run: setExchange},
	{Name: "set/rename-and-write", Needs: able(providers.AbilityCommit), Run: setRenameAndWrite},
	{Name: "set/rename-and-delete", Needs: able(providers.AbilityCommit), Run: setRenameAndDelete},
	{Name: "set/rename-of-rename", Needs: able(providers.AbilityCommit), Run: setRenameOfRename},
	{Name: "set/file-and-directory", Needs: able(providers.AbilityCommit), Run: setFileAndDirectory},
	{Name: "set/attributes", Needs: providers.Capabilities{Abilities: providers.AbilityCommit, Attributes: providers.AttrExec}, Run: setExec},
	{Name: "set/attributes-kept", Needs: providers.Capabilities{Abilities: providers.AbilityCommit, Attributes: providers.AttrMode}, Run: setAttributes},
	{Name: "set/links", Needs: providers.Capabilities{Abilities: providers.AbilityCommit, Symlinks: true}, Run: setLinks},
	{Name: "set/empty-directories", Needs: providers.Capabilities{Abilities: providers.AbilityCommit, EmptyDirs: true}, Run: setEmptyDirectories},
	{Name: "set/refused", Needs: able(providers.AbilityCommit), Run: setRefused},
	{Name: "set/conditions", Needs: able(providers.AbilityCommit), Run: setConditions},
	{Name: "set/order-decides-nothing", Needs: able(providers.AbilityCommit), Run: setOrder},
	{Name: "set/random-folds", Needs: able(providers.AbilityCommit), Heavy: true, Run: setFolds},
}

// from is a change that takes a file or link.
func from(to, source string, cond providers.Condition) providers.Change {
	return providers.Change{Locator: loc(to), From: loc(source), If: cond}
}

// fromDir is a change that takes a directory.
func fromDir(to, source string, cond providers.Condition) providers.Change {
	return providers.Change{Locator: loc(to), From: loc(source), Dir: true, If: cond}
}

func without(name string, cond providers.Condition) providers.Change {
	return providers.Change{Locator: loc(name), Delete: true, If: cond}
}

func withoutDir(name string) providers.Change {
	return providers.Change{Locator: loc(name), Delete: true, Dir: true, If: providers.IfDir()}
}

var (
	absent = providers.IfAbsent()
	isDir  = providers.IfDir()
)

func isVersion(i providers.Info) providers.Condition { return providers.IfVersion(i.Version) }

// commit commits and fails the check if that fails.
func commit(t T, p providers.Provider, changes ...providers.Change) providers.CommitResult {
	t.Helper()
	result, err := must[providers.Committer](t, p).Commit(t.Context(), providers.ChangeSet{Changes: changes})
	wantOK(t, "commit", err)
	return result
}

// wantTree compares all files and links below a directory.
func wantTree(t T, p providers.Provider, dir string, want map[string]string) {
	t.Helper()
	var names []string
	var walk func(l providers.Locator)
	walk = func(l providers.Locator) {
		for _, info := range list(t, p, l, providers.ListOptions{}) {
			if info.Kind == providers.KindDir {
				walk(info.Locator)
				continue
			}
			name := info.Locator.String()
			names = append(names, name)
			if content, ok := want[name]; ok {
				wantContent(t, p, info.Locator, content)
			}
		}
	}
	walk(loc(dir))
	var wanted []string
	for name := range want {
		wanted = append(wanted, name)
	}
	slices.Sort(names)
	slices.Sort(wanted)
	if !slices.Equal(names, wanted) {
		t.Errorf("the tree has %q, want %q", names, wanted)
	}
}

// wantMoved checks that the entry at a place is old, in the same version.
func wantMoved(t T, p providers.Provider, place string, old providers.Info) {
	t.Helper()
	info, err := p.Stat(t.Context(), loc(place))
	wantOK(t, "stat of "+place, err)
	if !info.Version.Matches(old.Version) {
		t.Errorf("%s has version %+v, was %+v", place, info.Version, old.Version)
	}
}

func setRenameFile(t T, p providers.Provider) {
	a := put(t, p, loc("a"), "content")
	put(t, p, loc("dir/other"), "x")
	result := commit(t, p, without("a", isVersion(a)), from("dir/b", "a", absent))
	wantStats(t, p, result, "", "dir/b")
	wantTree(t, p, "", map[string]string{"dir/b": "content", "dir/other": "x"})
	b, err := p.Stat(t.Context(), loc("dir/b"))
	wantOK(t, "stat", err)
	over := put(t, p, loc("over"), "overwritten")
	commit(t, p, from("over", "dir/b", isVersion(over)), without("dir/b", isVersion(b)))
	wantTree(t, p, "", map[string]string{"over": "content", "dir/other": "x"})
}

func setRenameDirectory(t T, p providers.Provider) {
	top := put(t, p, loc("d/top"), "1")
	deep := put(t, p, loc("d/x/y/deep"), "2")
	put(t, p, loc("d2/neighbour"), "3")
	before := head(t, must[providers.Committer](t, p))
	result := commit(t, p, fromDir("new/e", "d", absent), withoutDir("d"))
	wantStats(t, p, result, "new/e", "")
	if !result.Committed || result.Revision == before {
		t.Errorf("the rename of a directory made no revision: %+v", result)
	}
	wantGone(t, p, loc("d"))
	wantTree(t, p, "", map[string]string{"new/e/top": "1", "new/e/x/y/deep": "2", "d2/neighbour": "3"})
	wantMoved(t, p, "new/e/top", top)
	wantMoved(t, p, "new/e/x/y/deep", deep)
	commit(t, p, fromDir("new/e/sub", "new/e", absent), withoutDir("new/e"))
	wantTree(t, p, "new", map[string]string{"new/e/sub/top": "1", "new/e/sub/x/y/deep": "2"})
}

func setCopy(t T, p providers.Provider) {
	a := put(t, p, loc("a"), "content")
	put(t, p, loc("d/x"), "1")
	put(t, p, loc("d/y"), "2")
	copied := from("b", "a", absent)
	copied.FromVersion = a.Version
	result := commit(t, p, copied, fromDir("d/e", "d", absent), change("a", "changed", isVersion(a)), without("d/y", providers.Unconditional()))
	wantStats(t, p, result, "b", "d/e", "a", "")
	wantTree(t, p, "", map[string]string{"a": "changed", "b": "content", "d/x": "1", "d/e/x": "1"})
	put(t, p, loc("d/e/x"), "changed")
	wantContent(t, p, loc("d/x"), "1")
}

func setExchange(t T, p providers.Provider) {
	a, b := put(t, p, loc("a"), "1"), put(t, p, loc("b"), "22")
	put(t, p, loc("d/x"), "dx")
	put(t, p, loc("e/y"), "ey")
	result := commit(t, p,
		from("a", "b", isVersion(a)), from("b", "a", isVersion(b)),
		fromDir("d", "e", isDir), fromDir("e", "d", isDir), change("d/new", "n", absent))
	wantStats(t, p, result, "a", "b", "d", "e", "d/new")
	wantTree(t, p, "", map[string]string{"a": "22", "b": "1", "d/y": "ey", "e/x": "dx", "d/new": "n"})
	now, err := p.Stat(t.Context(), loc("a"))
	wantOK(t, "stat", err)
	commit(t, p, fromDir("a", "d", isVersion(now)), from("d", "a", isDir)) // a file and a directory
	wantTree(t, p, "", map[string]string{"d": "22", "b": "1", "a/y": "ey", "a/new": "n", "e/x": "dx"})
}

func setRenameAndWrite(t T, p providers.Provider) {
	old := put(t, p, loc("d/x"), "old")
	put(t, p, loc("d/keep"), "k")
	now := put(t, p, loc("d/x"), "now")
	rename := []providers.Change{fromDir("e", "d", absent), withoutDir("d")}
	for what, x := range map[string]struct {
		bad  providers.Change
		want error
	}{
		"over an old version":           {change("e/x", "new", isVersion(old)), providers.ErrConflict},
		"over what the directory has":   {change("e/x", "new", absent), providers.ErrExist},
		"over what it does not have":    {change("e/no", "new", isVersion(now)), providers.ErrConflict},
		"where the directory was":       {change("d/x", "new", isVersion(now)), providers.ErrConflict},
		"over an old version, by From":  {from("e/x", "d/keep", isVersion(old)), providers.ErrConflict},
		"below a file of the directory": {change("e/x/below", "new", absent), providers.ErrNotDir},
	} {
		_, err := must[providers.Committer](t, p).Commit(t.Context(), providers.ChangeSet{Changes: append(slices.Clone(rename), x.bad)})
		wantErr(t, "rename and write "+what, err, x.want)
		wantTree(t, p, "", map[string]string{"d/x": "now", "d/keep": "k"})
	}
	result := commit(t, p, append(rename, change("e/x", "new", isVersion(now)), change("d/x", "begun", absent), change("e/more", "m", absent))...)
	wantStats(t, p, result, "e", "", "e/x", "d/x", "e/more")
	wantTree(t, p, "", map[string]string{"e/x": "new", "e/keep": "k", "e/more": "m", "d/x": "begun"})
}

func setRenameAndDelete(t T, p providers.Provider) {
	x := put(t, p, loc("d/x"), "1")
	put(t, p, loc("d/sub/y"), "2")
	put(t, p, loc("d/keep"), "3")
	commit(t, p, fromDir("e", "d", absent), withoutDir("d"), without("d/x", isVersion(x)))
	wantTree(t, p, "", map[string]string{"e/sub/y": "2", "e/keep": "3"})
	commit(t, p, fromDir("f", "e", absent), withoutDir("e"), withoutDir("e/sub"), without("e/sub/y", providers.Unconditional()))
	wantGone(t, p, loc("f/sub"))
	wantTree(t, p, "", map[string]string{"f/keep": "3"})
	keep, err := p.Stat(t.Context(), loc("f/keep"))
	wantOK(t, "stat", err)
	// An entry that is deleted in the directory can be made anew in it.
	commit(t, p, fromDir("g", "f", absent), withoutDir("f"), without("f/keep", isVersion(keep)), change("g/keep", "4", absent))
	wantTree(t, p, "", map[string]string{"g/keep": "4"})
	// Nothing is left to be moved.
	result := commit(t, p, fromDir("h", "g", absent), withoutDir("g"), without("g/keep", providers.Unconditional()))
	wantGone(t, p, loc("g"))
	if p.Capabilities().EmptyDirs {
		wantStats(t, p, result, "h", "", "")
		return
	}
	wantEntries(t, "the rename of what is deleted", result, providers.Info{}, providers.Info{}, providers.Info{})
	wantGone(t, p, loc("h"))
	var over providers.Info
	x, over = put(t, p, loc("d/x"), "1"), put(t, p, loc("over"), "2")
	result = commit(t, p, fromDir("over", "d", isVersion(over)), withoutDir("d"), without("d/x", isVersion(x)))
	wantEntries(t, "the rename of nothing over a file", result, providers.Info{}, providers.Info{}, providers.Info{})
	wantTree(t, p, "", nil)
}

// setRenameOfRename: a source is named by its path before the set, however its parents move.
func setRenameOfRename(t T, p providers.Provider) {
	put(t, p, loc("d/sub/x"), "1")
	put(t, p, loc("d/y"), "2")
	put(t, p, loc("g/z"), "3")
	result := commit(t, p,
		fromDir("e", "d", absent), withoutDir("d"),
		fromDir("f", "d/sub", absent), withoutDir("d/sub"),
		fromDir("e/sub", "g", absent), withoutDir("g"),
		from("g", "d/y", absent), without("d/y", providers.Unconditional()))
	wantStats(t, p, result, "e", "", "f", "", "e/sub", "", "g", "")
	wantTree(t, p, "", map[string]string{"f/x": "1", "e/sub/z": "3", "g": "2"})
}

func setFileAndDirectory(t T, p providers.Provider) {
	a := put(t, p, loc("a"), "file")
	put(t, p, loc("d/x"), "1")
	put(t, p, loc("d/sub/y"), "2")
	changes := []providers.Change{
		change("a/below", "new", absent), without("a", isVersion(a)),
		change("d", "file", absent), withoutDir("d"), without("d/x", providers.Unconditional()), without("d/sub/y", providers.Unconditional()),
	}
	if p.Capabilities().EmptyDirs {
		changes = append(changes, withoutDir("d/sub"))
	}
	commit(t, p, changes...)
	wantTree(t, p, "", map[string]string{"a/below": "new", "d": "file"})
}

func setExec(t T, p providers.Provider) {
	plain := put(t, p, loc("a"), "content")
	on := from("a", "a", isVersion(plain))
	on.Attr = providers.Attr{Valid: providers.AttrMode, Mode: 0o700}
	result := commit(t, p, on)
	if got := result.Entries[0].Attr.Mode; !result.Committed || got != 0o755 {
		t.Errorf("to be executed: %+v", result)
	}
	executable := result.Entries[0]
	if executable.Version.Matches(plain.Version) {
		t.Errorf("the version %+v says nothing of being executable", executable.Version)
	}
	wantContent(t, p, loc("a"), "content")
	result = commit(t, p, from("b", "a", absent), without("a", isVersion(executable)))
	if got := result.Entries[0].Attr.Mode; got != 0o755 {
		t.Errorf("renamed: mode %o", got)
	}
}

func setAttributes(t T, p providers.Provider) {
	want := sampleAttr(p, 0o640, 1_111_111_111)
	made := change("a", "content", absent)
	made.Attr = want
	a := commit(t, p, made).Entries[0]
	wantAttr(t, "written", a, want)
	moved := commit(t, p, from("b", "a", absent), without("a", isVersion(a))).Entries[0]
	wantAttr(t, "renamed", moved, want)
	again := from("b", "b", isVersion(moved))
	again.Attr = sampleAttr(p, 0o600, 1_222_222_222)
	set := commit(t, p, again).Entries[0]
	wantAttr(t, "set", set, again.Attr)
	if p.Capabilities().UniqueVersions && set.Version.Matches(moved.Version) {
		t.Errorf("other attributes left the version %+v", set.Version)
	}
	wantContent(t, p, loc("b"), "content")
	if !p.Capabilities().EmptyDirs {
		return
	}
	put(t, p, loc("d/x"), "1")
	dir := fromDir("d", "d", isDir)
	dir.Attr = sampleAttr(p, 0o750, 1_333_333_333)
	wantAttr(t, "set of a directory", commit(t, p, dir).Entries[0], dir.Attr)
	wantContent(t, p, loc("d/x"), "1")
}

func setLinks(t T, p providers.Provider) {
	link := providers.Change{Locator: loc("link"), Kind: providers.KindSymlink, Body: providers.String("d/x"), If: absent}
	made := commit(t, p, change("d/x", "1", absent), link).Entries[1]
	if made.Kind != providers.KindSymlink {
		t.Errorf("link: %+v", made)
	}
	commit(t, p, from("moved", "link", absent), without("link", isVersion(made)))
	if info := wantContent(t, p, loc("moved"), "d/x"); info.Kind != providers.KindSymlink {
		t.Errorf("renamed link: %v", info.Kind)
	}
	wantContent(t, p, loc("d/x"), "1")
}

func setEmptyDirectories(t T, p providers.Provider) {
	commit(t, p, providers.Change{Locator: loc("a/b"), Dir: true})
	commit(t, p, fromDir("c", "a", absent), withoutDir("a"), providers.Change{Locator: loc("c/b/d"), Dir: true})
	wantNames(t, list(t, p, loc("c/b"), providers.ListOptions{}), "c/b/d")
	file := put(t, p, loc("f"), "x")
	_, err := must[providers.Committer](t, p).Commit(t.Context(), providers.ChangeSet{Changes: []providers.Change{{Locator: loc("f"), Dir: true}}})
	wantErr(t, "a directory over a file", err, providers.ErrExist)
	// A rename over an empty directory.
	commit(t, p, providers.Change{Locator: loc("f"), Dir: true}, without("f", isVersion(file)), withoutDir("c/b/d"))
	commit(t, p, fromDir("f", "c", absent), withoutDir("c"), withoutDir("f"))
	wantNames(t, list(t, p, loc(""), providers.ListOptions{}), "f")
	wantNames(t, list(t, p, loc("f"), providers.ListOptions{}), "f/b")
	wantNames(t, list(t, p, loc("f/b"), providers.ListOptions{}))
}
