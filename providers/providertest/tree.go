package providertest

import (
	"errors"
	"strings"

	"github.com/wsmount/wsmount/providers"
)

var (
	emptyDirs  = providers.Capabilities{EmptyDirs: true}
	strictTree = providers.Capabilities{StrictTree: true}
)

var treeChecks = []Check{
	{Name: "tree/root", Run: treeRoot},
	{Name: "tree/parents", Run: treeParents},
	{Name: "tree/failed-writes-leave-no-parents", Run: treeNoParents},
	{Name: "tree/below-a-file", Needs: strictTree, Run: treeBelowFile},
	{Name: "tree/no-write-over-a-directory", Run: treeOverDirectory},
	{Name: "tree/mkdir", Needs: emptyDirs, Run: treeMkdir},
	{Name: "tree/mkdir-over-a-file", Needs: emptyDirs, Run: treeMkdirOverFile},
	{Name: "tree/made-by-write", Needs: emptyDirs, Run: treeMadeByWrite},
	{Name: "tree/delete-directory", Run: treeDeleteDirectory},
	{Name: "tree/delete-empty-directory", Needs: emptyDirs, Run: treeDeleteEmpty},
	{Name: "tree/symlink", Needs: providers.Capabilities{Symlinks: true}, Run: treeSymlink},
	{Name: "tree/kind", Run: treeKind},
}

func treeRoot(t T, p providers.Provider) {
	info, err := p.Stat(t.Context(), loc(""))
	wantOK(t, "stat of the root", err)
	if info.Kind != providers.KindDir || !info.Version.IsZero() {
		t.Errorf("root: got %v, version %v", info.Kind, info.Version)
	}
	wantNames(t, list(t, p, loc(""), providers.ListOptions{}))
	_, err = p.Write(t.Context(), loc(""), providers.String("x"), unconditional)
	wantErr(t, "write of the root", err, providers.ErrInvalid)
	for _, cond := range []providers.Condition{providers.Unconditional(), providers.IfDir()} {
		err = p.Delete(t.Context(), loc(""), providers.DeleteOptions{If: cond})
		wantErr(t, "delete of the root", err, providers.ErrInvalid)
	}
}

func treeParents(t T, p providers.Provider) {
	put(t, p, loc("a/b/c/file"), "x")
	for _, name := range []string{"a", "a/b", "a/b/c"} {
		info, err := p.Stat(t.Context(), loc(name))
		wantOK(t, "stat of a parent", err)
		if info.Kind != providers.KindDir || info.Size != 0 || !info.Version.IsZero() || info.Locator != loc(name) {
			t.Errorf("parent %q: got %+v", name, info)
		}
	}
}

func treeNoParents(t T, p providers.Provider) {
	stale := put(t, p, loc("other"), "x")
	broken := providers.Body{Reader: failing{strings.NewReader("half"), errors.New("gone")}, Size: 10}
	for what, x := range map[string]struct {
		body providers.Body
		cond providers.Condition
		want error
	}{
		"a body that fails":      {broken, providers.IfAbsent(), providers.ErrBody},
		"a body of another size": {providers.Body{Reader: strings.NewReader("x"), Size: 5}, providers.Unconditional(), providers.ErrInvalid},
		"a version of nothing":   {providers.String("x"), providers.IfVersion(stale.Version), providers.ErrConflict},
		"no condition":           {providers.String("x"), providers.Condition{}, providers.ErrInvalid},
	} {
		_, err := p.Write(t.Context(), loc("new/dir/file"), x.body, providers.WriteOptions{If: x.cond})
		wantErr(t, "write with "+what, err, x.want)
		wantGone(t, p, loc("new"))
	}
}

func treeBelowFile(t T, p providers.Provider) {
	put(t, p, loc("file"), "x")
	_, err := p.Write(t.Context(), loc("file/a"), providers.String("y"), unconditional)
	wantErr(t, "write below a file", err, providers.ErrNotDir)
	_, err = p.Write(t.Context(), loc("file/a/b"), providers.String("y"), unconditional)
	wantErr(t, "write far below a file", err, providers.ErrNotDir)
	if p.Capabilities().EmptyDirs {
		_, err = p.Mkdir(t.Context(), loc("file/a"), providers.MkdirOptions{})
		wantErr(t, "mkdir below a file", err, providers.ErrNotDir)
	}
	wantContent(t, p, loc("file"), "x")
}

func treeOverDirectory(t T, p providers.Provider) {
	put(t, p, loc("dir/file"), "x")
	_, err := p.Write(t.Context(), loc("dir"), providers.String("y"), unconditional)
	if err == nil && !p.Capabilities().StrictTree {
		treeBeside(t, p)
		return
	}
	wantErr(t, "write over a directory", err, providers.ErrIsDir)
	_, err = p.Write(t.Context(), loc("dir"), providers.String("y"), providers.WriteOptions{If: providers.IfAbsent()})
	wantErr(t, "creation over a directory", err, providers.ErrExist)
	wantContent(t, p, loc("dir/file"), "x")
}

// treeBeside: where a file can be beside a directory of its name, both exist, and a listing has
// them under names that lead to them.
func treeBeside(t T, p providers.Provider) {
	wantContent(t, p, loc("dir"), "y")
	wantContent(t, p, loc("dir/file"), "x")
	entries := list(t, p, loc(""), providers.ListOptions{})
	if len(entries) != 2 || entries[0].Locator != loc("dir") || entries[0].Kind != providers.KindFile || entries[1].Kind != providers.KindDir {
		t.Fatalf("a file beside a directory is listed as %+v", entries)
	}
	below := list(t, p, entries[1].Locator, providers.ListOptions{})
	if len(below) != 1 {
		t.Fatalf("the directory beside a file has %+v", below)
	}
	wantContent(t, p, below[0].Locator, "x")
	opts := providers.DeleteOptions{If: providers.IfVersion(below[0].Version)}
	wantOK(t, "delete in a directory beside a file", p.Delete(t.Context(), below[0].Locator, opts))
	wantContent(t, p, loc("dir"), "y")
}

// treeMadeByWrite: a directory that was only made by a Write stays or goes as the provider's
// Capabilities say.
func treeMadeByWrite(t T, p providers.Provider) {
	put(t, p, loc("dir/file"), "x")
	wantOK(t, "delete", p.Delete(t.Context(), loc("dir/file"), providers.DeleteOptions{If: providers.Unconditional()}))
	if p.Capabilities().ImpliedDirs {
		wantGone(t, p, loc("dir"))
		return
	}
	info, err := p.Stat(t.Context(), loc("dir"))
	if wantOK(t, "stat of a directory that lost its last entry", err); info.Kind != providers.KindDir {
		t.Errorf("a directory that lost its last entry is a %v", info.Kind)
	}
}

func treeMkdir(t T, p providers.Provider) {
	for range 2 { // the second time it is there already
		info, err := p.Mkdir(t.Context(), loc("a/b"), providers.MkdirOptions{})
		wantOK(t, "mkdir", err)
		if info.Kind != providers.KindDir || info.Locator != loc("a/b") {
			t.Errorf("mkdir says %+v", info)
		}
	}
	wantNames(t, list(t, p, loc(""), providers.ListOptions{}), "a")
	wantNames(t, list(t, p, loc("a"), providers.ListOptions{}), "a/b")
	wantNames(t, list(t, p, loc("a/b"), providers.ListOptions{}))
	file := put(t, p, loc("a/b/file"), "x")
	_, err := p.Mkdir(t.Context(), loc("a/b"), providers.MkdirOptions{})
	wantOK(t, "mkdir of a directory with entries", err)
	wantContent(t, p, loc("a/b/file"), "x")
	err = p.Delete(t.Context(), loc("a/b/file"), providers.DeleteOptions{If: providers.IfVersion(file.Version)})
	wantOK(t, "delete", err)
	wantNames(t, list(t, p, loc("a"), providers.ListOptions{}), "a/b")
	_, err = p.Mkdir(t.Context(), loc(""), providers.MkdirOptions{})
	wantOK(t, "mkdir of the root", err)
}

func treeMkdirOverFile(t T, p providers.Provider) {
	put(t, p, loc("file"), "x")
	_, err := p.Mkdir(t.Context(), loc("file"), providers.MkdirOptions{})
	wantErr(t, "mkdir over a file", err, providers.ErrExist)
	wantContent(t, p, loc("file"), "x")
}

func treeDeleteDirectory(t T, p providers.Provider) {
	file := put(t, p, loc("dir/file"), "x")
	err := p.Delete(t.Context(), loc("dir"), providers.DeleteOptions{If: providers.IfDir()})
	wantErr(t, "delete of a directory with entries", err, providers.ErrNotEmpty)
	err = p.Delete(t.Context(), loc("dir"), providers.DeleteOptions{If: providers.Unconditional()})
	wantErr(t, "delete of a directory without IfDir", err, providers.ErrIsDir)
	err = p.Delete(t.Context(), loc("dir"), providers.DeleteOptions{If: providers.IfVersion(file.Version)})
	wantErr(t, "delete of a directory by version", err, providers.ErrConflict)
	wantContent(t, p, loc("dir/file"), "x")
	err = p.Delete(t.Context(), loc("dir/file"), providers.DeleteOptions{If: providers.IfDir()})
	wantErr(t, "delete of a file with IfDir", err, providers.ErrNotDir)
	wantContent(t, p, loc("dir/file"), "x")
}

func treeDeleteEmpty(t T, p providers.Provider) {
	_, err := p.Mkdir(t.Context(), loc("a/b"), providers.MkdirOptions{})
	wantOK(t, "mkdir", err)
	for _, name := range []string{"a/b", "a"} {
		wantOK(t, "delete", p.Delete(t.Context(), loc(name), providers.DeleteOptions{If: providers.IfDir()}))
		wantGone(t, p, loc(name))
	}
	err = p.Delete(t.Context(), loc("a"), providers.DeleteOptions{If: providers.IfDir()})
	wantErr(t, "second delete", err, providers.ErrNotExist)
}

func treeSymlink(t T, p providers.Provider) {
	put(t, p, loc("dir/file"), "behind the link")
	for name, target := range map[string]string{
		"to-file": "dir/file", "to-dir": "dir", "dangling": "/no/such", "upwards": "../../etc/passwd",
	} {
		opts := providers.WriteOptions{If: providers.IfAbsent(), Kind: providers.KindSymlink}
		info, err := p.Write(t.Context(), loc(name), providers.String(target), opts)
		wantOK(t, "write of a link", err)
		if info.Kind != providers.KindSymlink || info.Size != int64(len(target)) {
			t.Errorf("link %s: got %v of %d bytes", name, info.Kind, info.Size)
		}
		if info := wantContent(t, p, loc(name), target); info.Kind != providers.KindSymlink {
			t.Errorf("read of link %s says %v", name, info.Kind)
		}
	}
	wantGone(t, p, loc("to-dir/file"))
	_, err := p.Write(t.Context(), loc("to-dir/new"), providers.String("x"), unconditional)
	if p.Capabilities().StrictTree {
		wantErr(t, "write through a link", err, providers.ErrNotDir)
	}
	wantNames(t, list(t, p, loc("dir"), providers.ListOptions{}), "dir/file")
	put(t, p, loc("to-file"), "in place of the link")
	wantContent(t, p, loc("dir/file"), "behind the link")
	wantOK(t, "delete", p.Delete(t.Context(), loc("dangling"), providers.DeleteOptions{If: providers.Unconditional()}))
	_, err = p.Write(t.Context(), loc("empty"), providers.Body{}, providers.WriteOptions{If: providers.IfAbsent(), Kind: providers.KindSymlink})
	wantErr(t, "write of a link without target", err, providers.ErrInvalid)
}

func treeKind(t T, p providers.Provider) {
	for _, kind := range []providers.Kind{providers.KindDir, providers.KindSymlink + 1} {
		_, err := p.Write(t.Context(), loc("a"), providers.String("x"), providers.WriteOptions{If: providers.IfAbsent(), Kind: kind})
		wantErr(t, "write of kind "+kind.String(), err, providers.ErrInvalid)
	}
	if !p.Capabilities().Symlinks {
		_, err := p.Write(t.Context(), loc("a"), providers.String("x"), providers.WriteOptions{If: providers.IfAbsent(), Kind: providers.KindSymlink})
		wantErr(t, "write of a link", err, providers.ErrUnsupported)
	}
	if !p.Capabilities().EmptyDirs {
		_, err := p.Mkdir(t.Context(), loc("a"), providers.MkdirOptions{})
		wantErr(t, "mkdir", err, providers.ErrUnsupported)
	}
	wantGone(t, p, loc("a"))
}
