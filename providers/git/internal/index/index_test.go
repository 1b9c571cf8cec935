package index

import (
	"bytes"
	"compress/zlib"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
	"pgregory.net/rapid"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/testrun"
	"github.com/wsmount/wsmount/integration/tier"
	"github.com/wsmount/wsmount/providers/git/internal/object"
)

// fileIn is a repository with a tree, and the index of that in it.
type fileIn struct {
	t       *rapid.T
	dir     string
	root    object.ID
	trees   map[object.ID][]byte
	entries *Entries
	f       *os.File
	size    int64
}

func (r *fileIn) git(in string, args ...string) string {
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Stdin = r.dir, strings.NewReader(in)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "HOME="+r.dir, "LC_ALL=C")
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil || errs.Len() > 0 {
		r.t.Fatalf("git %v: %v %s", args, err, errs.String())
	}
	return string(out)
}

// tree makes a tree of random entries and gives its id.
func (r *fileIn) tree(deep int) object.ID {
	names := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "a.b", "a-b", "a0", "b", "ab", "z", "é", ".gitignore", "\xff", strings.Repeat("n", 200)}), 1, 6, rapid.ID).Draw(r.t, "names")
	var list []object.Entry
	for _, name := range names {
		e := object.Entry{Name: name, Mode: rapid.SampledFrom([]object.Mode{object.ModeFile, object.ModeExec, object.ModeLink, object.ModeSubmodule, object.ModeDir, object.ModeDir}).Draw(r.t, "mode")}
		if deep == 0 && e.Mode.IsDir() {
			e.Mode = object.ModeFile
		}
		switch {
		case e.Mode.IsDir():
			e.ID = r.tree(deep - 1)
		default:
			e.ID = object.ID{1, byte(rapid.IntRange(0, 255).Draw(r.t, "id"))}
		}
		list = append(list, e)
	}
	raw := object.EncodeTree(list)
	id := plumbing.ComputeHash(plumbing.TreeObject, raw)
	r.trees[id] = raw
	r.keep(id, raw)
	return id
}

// keep writes a tree as git does, which is started often enough.
func (r *fileIn) keep(id object.ID, raw []byte) {
	name := id.String()
	dir := filepath.Join(r.dir, ".git", "objects", name[:2])
	assert.OK(r.t, os.MkdirAll(dir, 0o700))
	var packed bytes.Buffer
	z := zlib.NewWriter(&packed)
	fmt.Fprintf(z, "tree %d\x00%s", len(raw), raw)
	assert.OK(r.t, z.Close())
	assert.OK(r.t, os.WriteFile(filepath.Join(dir, name[2:]), packed.Bytes(), 0o600))
}

// The git program reads from an index what is in the tree, finds it sound, and takes for changed
// what Except says.
func TestIndexIsGits(t *testing.T) {
	tier.RequireTools(t, "git")
	testrun.WithoutEnv(t, "GIT_")
	dir := t.TempDir()
	out, err := exec.Command("git", "init", "-q", dir).CombinedOutput()
	assert.Must(t, err == nil, err, out)
	if !tier.Soak { // which takes as many as rapid does
		checks := flag.Lookup("rapid.checks").Value
		before := checks.String()
		defer checks.Set(before)
		assert.OK(t, checks.Set("30"))
	}
	tier.Check(t, func(rt *rapid.T) {
		r := &fileIn{t: rt, dir: dir, trees: map[object.ID][]byte{}}
		r.root = r.tree(2)
		var err error
		if r.f, err = os.Create(filepath.Join(r.dir, ".git", "index")); err != nil {
			rt.Fatal(err)
		}
		defer r.f.Close()
		r.entries, err = Write(r.f, Source{Root: r.root, Tree: func(id object.ID) ([]byte, error) { return r.trees[id], nil }, Token: "token", Place: r.dir})
		assert.OK(rt, err)
		r.size, _ = r.f.Seek(0, io.SeekCurrent)
		want := r.git("", "ls-tree", "-r", "-z", r.root.String())
		r.agrees(want, nil)
		paths := pathsOf(want)
		changed := rapid.SliceOfN(rapid.SampledFrom(append(paths, "a/", "a.b/", "a/b/", "none", "none/", "z/\xff/")), 1, 4).Draw(rt, "changed")
		assert.OK(rt, r.entries.Except(r.f, r.size, changed))
		r.agrees(want, changed)
	})
}

func pathsOf(lsTree string) (paths []string) {
	for line := range strings.SplitSeq(strings.TrimSuffix(lsTree, "\x00"), "\x00") {
		_, path, _ := strings.Cut(line, "\t")
		paths = append(paths, path)
	}
	return paths
}

// agrees compares what the git program reads.
func (r *fileIn) agrees(lsTree string, changed []string) {
	var want []string
	for line := range strings.SplitSeq(strings.TrimSuffix(lsTree, "\x00"), "\x00") {
		head, path, _ := strings.Cut(line, "\t")
		f := strings.Fields(head)
		mark := "h"
		if slices.ContainsFunc(changed, func(c string) bool { return c == path || strings.HasSuffix(c, "/") && strings.HasPrefix(path, c) }) {
			mark = "H"
		}
		want = append(want, fmt.Sprintf("%s %s %s 0\t%s", mark, f[0], f[2], path))
	}
	got := strings.Split(strings.TrimSuffix(r.git("", "ls-files", "-s", "-v", "-z"), "\x00"), "\x00")
	assert.Must(r.t, slices.Equal(got, want), "the index has", got, "and the tree", want)
	r.git("", "-c", "core.fsmonitor=true", "ls-files", "--debug")
	out := r.git("", "write-tree", "--missing-ok")
	assert.Must(r.t, strings.TrimSpace(out) == r.root.String(), "the tree of the index is", out, "and not", r.root)
}
