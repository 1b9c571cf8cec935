package providertest

import (
	"fmt"

	"github.com/wsmount/wsmount/providers"
)

// setRefused: a set that makes no sense changes nothing.
func setRefused(t T, p providers.Provider) {
	old := put(t, p, loc("a"), "1")
	put(t, p, loc("a"), "2")
	put(t, p, loc("b"), "3")
	put(t, p, loc("d/x"), "4")
	put(t, p, loc("e/y"), "5")
	put(t, p, loc("d2/x"), "6")
	put(t, p, loc("d2/x"), "6")
	both := from("n", "a", absent)
	both.Body = providers.String("body")
	stale := from("n", "a", absent)
	stale.FromVersion = old.Version
	for what, x := range map[string]struct {
		want    error
		changes []providers.Change
	}{
		"from nothing":               {providers.ErrNotExist, []providers.Change{from("n", "no", absent)}},
		"from below a file":          {providers.ErrNotExist, []providers.Change{from("n", "a/no", absent)}},
		"a directory as a file":      {providers.ErrIsDir, []providers.Change{from("n", "d", absent)}},
		"a file as a directory":      {providers.ErrNotDir, []providers.Change{fromDir("n", "a", absent)}},
		"from another version":       {providers.ErrConflict, []providers.Change{stale}},
		"from and content":           {providers.ErrInvalid, []providers.Change{both}},
		"over something":             {providers.ErrExist, []providers.Change{from("b", "a", absent)}},
		"over another version":       {providers.ErrConflict, []providers.Change{from("b", "a", isVersion(old))}},
		"a file over a directory":    {providers.ErrIsDir, []providers.Change{from("d", "a", providers.Unconditional())}},
		"a directory over another":   {providers.ErrExist, []providers.Change{fromDir("e", "d", absent), withoutDir("d")}},
		"a directory in its place":   {providers.ErrInvalid, []providers.Change{fromDir("e", "d", isDir), withoutDir("d")}},
		"over a directory with more": {providers.ErrNotEmpty, []providers.Change{fromDir("e", "d", absent), withoutDir("d"), withoutDir("e")}},
		"without a condition":        {providers.ErrInvalid, []providers.Change{fromDir("n", "d", providers.Condition{})}},
		"below a file":               {providers.ErrNotDir, []providers.Change{from("b/n", "a", absent)}},
		"of the root":                {providers.ErrInvalid, []providers.Change{fromDir("", "d", isDir)}},
		"twice to one place":         {providers.ErrInvalid, []providers.Change{from("n", "a", absent), from("n", "b", absent)}},
		"two deletions":              {providers.ErrInvalid, []providers.Change{without("a", providers.Unconditional()), without("a", providers.Unconditional())}},
		"deleted in another version": {providers.ErrConflict, []providers.Change{from("n", "a", absent), without("a", isVersion(old))}},
		"a directory that only lost a part": {providers.ErrNotEmpty, []providers.Change{
			from("n", "d/x", absent), withoutDir("d")}},
	} {
		changes := append([]providers.Change{change("good", "good", absent)}, x.changes...)
		_, err := must[providers.Committer](t, p).Commit(t.Context(), providers.ChangeSet{Changes: changes})
		wantErr(t, "a set with a change "+what, err, x.want)
	}
	wantTree(t, p, "", map[string]string{"a": "2", "b": "3", "d/x": "4", "e/y": "5", "d2/x": "6"})
}

// setConditions: conditions apply to the tree before the set, even if the set changes the same
// places.
func setConditions(t T, p providers.Provider) {
	a, b := put(t, p, loc("a"), "1"), put(t, p, loc("b"), "22")
	dx, ex := put(t, p, loc("d/x"), "dx"), put(t, p, loc("e/x"), "exx")
	for what, x := range map[string]struct {
		want    error
		changes []providers.Change
	}{
		"exchange, one version is another": {providers.ErrConflict, []providers.Change{
			from("a", "b", isVersion(b)), from("b", "a", isVersion(b))}},
		"exchange, as if the first were made": {providers.ErrExist, []providers.Change{
			from("a", "b", isVersion(a)), from("b", "a", absent)}},
		"a file in an exchanged directory, as it was there": {providers.ErrConflict, []providers.Change{
			fromDir("d", "e", isDir), fromDir("e", "d", isDir), change("d/x", "new", isVersion(dx))}},
		"a deletion in a directory, by its new place": {providers.ErrNotExist, []providers.Change{
			fromDir("n", "d", absent), withoutDir("d"), without("n/x", isVersion(dx))}},
	} {
		_, err := must[providers.Committer](t, p).Commit(t.Context(), providers.ChangeSet{Changes: x.changes})
		wantErr(t, what, err, x.want)
	}
	commit(t, p, fromDir("d", "e", isDir), fromDir("e", "d", isDir), change("d/x", "new", isVersion(ex)), without("a", isVersion(a)), change("a", "again", absent))
	wantTree(t, p, "", map[string]string{"a": "again", "b": "22", "d/x": "new", "e/x": "dx"})
}

// setOrder: the same changes in any order make the same tree, and are answered in their order.
func setOrder(t T, p providers.Provider) {
	for round, order := range [][]int{{0, 1, 2, 3, 4, 5, 6}, {6, 5, 4, 3, 2, 1, 0}, {3, 0, 6, 1, 5, 2, 4}, {2, 4, 1, 6, 0, 3, 5}} {
		dir := fmt.Sprintf("run%d/", round)
		x := put(t, p, loc(dir+"d/x"), "x")
		y := put(t, p, loc(dir+"d/sub/y"), "yy")
		file := put(t, p, loc(dir+"file"), "f")
		set := []providers.Change{
			fromDir(dir+"e", dir+"d", absent), withoutDir(dir + "d"),
			change(dir+"e/x", "new", isVersion(x)), without(dir+"d/sub/y", isVersion(y)),
			change(dir+"file/below", "b", absent), without(dir+"file", isVersion(file)),
			from(dir+"e/copy", dir+"d/sub/y", absent),
		}
		places := []string{dir + "e", "", dir + "e/x", "", dir + "file/below", "", dir + "e/copy"}
		var ordered []providers.Change
		var answers []string
		for _, i := range order {
			ordered, answers = append(ordered, set[i]), append(answers, places[i])
		}
		wantStats(t, p, commit(t, p, ordered...), answers...)
		wantTree(t, p, dir, map[string]string{dir + "e/x": "new", dir + "file/below": "b", dir + "e/copy": "yy"})
	}
}
