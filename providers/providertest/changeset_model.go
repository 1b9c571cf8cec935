package providertest

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/wsmount/wsmount/integration/tier"
	"github.com/wsmount/wsmount/providers"
)

// stays is a file that no step changes, so that the tree is never empty.
const stays = "stays"

// setFolds makes random renames, exchanges, writes and removals on a tree of inodes, as a
// working copy has it, folds them into one set in random order, and compares the result of the
// set with the tree. A difference names the seed.
func setFolds(t T, p providers.Provider) {
	seed := tier.NewSeed()
	f := &fold{T: t, p: p, random: rand.New(rand.NewPCG(seed, 1)), dir: "fold"}
	for _, name := range []string{"a/x", "a/y/z", "b/x", "b/y", "c", stays} {
		put(t, p, loc(f.dir+"/"+name), name)
	}
	for round := range tier.Pick(25, 75) {
		f.where = fmt.Sprintf("WSMOUNT_SEED=%d, set %d", seed, round)
		f.begin()
		for range 1 + f.random.IntN(8) {
			f.step()
		}
		f.commit()
	}
}

// inode is an entry of the tree. origin is its path before the set, or "".
type inode struct {
	origin  string
	version providers.Version
	content string
	dirty   bool
	entries map[string]*inode // of a directory
}

func (i *inode) isDir() bool { return i.entries != nil }

// fold is a tree, and the set that leads to it.
type fold struct {
	T
	p      providers.Provider
	random *rand.Rand
	dir    string // everything is below it
	where  string // for messages
	writes int
	did    []string

	root   *inode
	before map[string]*inode // by origin
	set    []providers.Change
	kept   map[string]bool // origins that another entry replaces, instead of a deletion
}

// begin reads the tree from the provider.
func (f *fold) begin() {
	f.did, f.before = nil, map[string]*inode{}
	f.root = f.read(loc(f.dir))
}

func (f *fold) read(l providers.Locator) *inode {
	dir := &inode{origin: l.String(), entries: map[string]*inode{}}
	f.before[dir.origin] = dir
	for _, info := range list(f.T, f.p, l, providers.ListOptions{}) {
		if info.Kind == providers.KindDir {
			dir.entries[info.Locator.Name()] = f.read(info.Locator)
			continue
		}
		content, _, err := providers.Fetch(f.Context(), f.p, info.Locator, providers.ReadOptions{})
		wantOK(f.T, "read", err)
		file := &inode{origin: info.Locator.String(), version: info.Version, content: string(content)}
		f.before[file.origin], dir.entries[info.Locator.Name()] = file, file
	}
	return dir
}

// pick returns a random directory and a name in it, often an existing one.
func (f *fold) pick() (path string, dir *inode, name string) {
	path, dir = f.dir, f.root
	for {
		names := slices.DeleteFunc(slices.Sorted(maps.Keys(dir.entries)), func(name string) bool { return name == stays })
		name = string(rune('a' + f.random.IntN(5)))
		if len(names) > 0 && f.random.IntN(4) > 0 {
			name = names[f.random.IntN(len(names))]
		}
		next := dir.entries[name]
		if next == nil || !next.isDir() || f.random.IntN(2) == 0 {
			return path + "/" + name, dir, name
		}
		path, dir = path+"/"+name, next
	}
}

// step makes one change as a program would, if it is allowed.
func (f *fold) step() {
	from, dir, name := f.pick()
	entry := dir.entries[name]
	to, dir2, name2 := f.pick()
	other := dir2.entries[name2]
	related := strings.HasPrefix(to+"/", from+"/") || strings.HasPrefix(from+"/", to+"/")
	verb := f.random.IntN(6)
	f.did = append(f.did, fmt.Sprintf("%d %s %s", verb, from, to))
	switch {
	case verb <= 1 && entry != nil && !related && (other == nil || !entry.isDir() && !other.isDir() || entry.isDir() && other.isDir() && len(other.entries) == 0):
		delete(dir.entries, name)
		dir2.entries[name2] = entry
	case verb == 2 && entry != nil && other != nil && !related:
		dir.entries[name], dir2.entries[name2] = other, entry
	case verb == 3 && entry == nil:
		f.writes++
		dir.entries[name] = &inode{content: fmt.Sprintf("new %d", f.writes)}
		if f.random.IntN(3) == 0 {
			dir.entries[name] = &inode{entries: map[string]*inode{}}
		}
	case verb == 4 && entry != nil && !entry.isDir():
		f.writes++
		entry.content, entry.dirty = fmt.Sprintf("written %d", f.writes), true
	case verb == 5 && entry != nil && len(entry.entries) == 0:
		delete(dir.entries, name)
	}
}

// commit folds, commits and compares.
func (f *fold) commit() {
	f.set, f.kept = nil, map[string]bool{}
	f.make(f.root, f.dir, f.dir)
	f.remove(f.root)
	f.random.Shuffle(len(f.set), func(i, j int) { f.set[i], f.set[j] = f.set[j], f.set[i] })
	result, err := must[providers.Committer](f.T, f.p).Commit(f.Context(), providers.ChangeSet{Changes: f.set})
	if err != nil {
		f.Fatalf("%s: after %q, the set %s: %v", f.where, f.did, f.describe(), err)
	}
	want := map[string]string{}
	f.root.files(f.dir, want)
	got := map[string]string{}
	f.begin()
	f.root.files(f.dir, got)
	if !maps.Equal(got, want) {
		f.Fatalf("%s: the set %s makes %q, want %q", f.where, f.describe(), got, want)
	}
	f.answered(result)
}

// answered compares the answer of the commit with the tree.
func (f *fold) answered(result providers.CommitResult) {
	for i, c := range f.set {
		info, err := f.p.Stat(f.Context(), c.Locator)
		if c.Delete || err != nil {
			info = providers.Info{}
		}
		if got := result.Entries[i]; got.Locator != info.Locator || !sameVersion(got, info) && info.Kind != providers.KindUnknown {
			f.Fatalf("%s: of %s the commit says %+v, there is %+v", f.where, c.Locator, got, info)
		}
	}
}

// files collects the content of all files.
func (i *inode) files(place string, into map[string]string) {
	for name, entry := range i.entries {
		if entry.isDir() {
			entry.files(place+"/"+name, into)
		} else {
			into[place+"/"+name] = entry.content
		}
	}
}

// make adds the changes that make the entries of dir, which is at place. origin is the
// directory that its own entries come from, "" if it has none.
func (f *fold) make(dir *inode, place, origin string) {
	for name, entry := range dir.entries {
		at, by := place+"/"+name, ""
		if origin != "" {
			by = origin + "/" + name
		}
		here := entry.origin != "" && entry.origin == by
		c := providers.Change{Locator: loc(at), If: f.ask(entry, by, here)}
		switch {
		case entry.isDir() && here:
		case entry.isDir() && entry.origin != "":
			c.Dir, c.From = true, loc(entry.origin)
			f.set = append(f.set, c)
		case entry.isDir():
			if f.p.Capabilities().EmptyDirs {
				f.set = append(f.set, providers.Change{Locator: loc(at), Dir: true})
			}
		case entry.origin == "" || entry.dirty:
			c.Body = providers.String(entry.content)
			f.set = append(f.set, c)
		case !here:
			c.From = loc(entry.origin)
			f.set = append(f.set, c)
		}
		if entry.isDir() {
			f.make(entry, at, entry.origin)
		}
	}
}

// ask is the condition of a change that puts entry at a place that otherwise has the entry by.
// That entry may be deleted, or be replaced on a condition.
func (f *fold) ask(entry *inode, by string, here bool) providers.Condition {
	old := f.before[by]
	switch {
	case here:
		return providers.IfVersion(entry.version)
	case old == nil || f.random.IntN(2) == 0 || entry.isDir() && entry.origin == "":
		return providers.IfAbsent()
	case !old.isDir():
		f.kept[by] = true
		return providers.IfVersion(old.version)
	case f.alive(old) && entry.origin != "" && !entry.dirty:
		f.kept[by] = true
		return providers.IfDir()
	}
	return providers.IfAbsent()
}

// alive reports whether an inode is still somewhere in the tree.
func (f *fold) alive(i *inode) bool { return f.root.holds(i) }

func (i *inode) holds(other *inode) bool {
	if i == other {
		return true
	}
	for _, entry := range i.entries {
		if entry.holds(other) {
			return true
		}
	}
	return false
}

// remove adds the deletions of entries that have left their name or directory.
func (f *fold) remove(root *inode) {
	for origin, entry := range f.before {
		if entry == root || f.kept[origin] {
			continue
		}
		l := loc(origin)
		parent := f.before[l.Parent().String()]
		if f.alive(parent) && parent.entries[l.Name()] == entry {
			continue
		}
		if entry.isDir() {
			f.set = append(f.set, withoutDir(origin))
		} else {
			f.set = append(f.set, without(origin, providers.IfVersion(entry.version)))
		}
	}
}

// describe is the set for a person.
func (f *fold) describe() string {
	var b strings.Builder
	for _, c := range f.set {
		fmt.Fprintf(&b, "{%s delete=%v dir=%v from=%q if=%d} ", c.Locator, c.Delete, c.Dir, c.From, c.If.Kind)
	}
	return b.String()
}
