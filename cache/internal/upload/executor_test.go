package upload

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/wsmount/wsmount/cache/internal/attrs"
	"github.com/wsmount/wsmount/cache/internal/files"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/memory"
)

// bench is a scene whose operations are made, in a store in memory. Content is that of
// symbolic links, which is in the tree.
type bench struct {
	*scene
	x     *Executor
	store *memory.Provider

	mu     sync.Mutex                           // guards calls
	calls  int                                  // of the store
	around func(call int) (before, after error) // nil: no call fails
	unmade map[table.Link]*table.Attempt        // by their names
	told   []string
}

func newBench(t *testing.T, o memory.Options) *bench {
	t.Helper()
	b := &bench{store: memory.New(o), unmade: map[table.Link]*table.Attempt{}}
	b.scene = newSceneWith(t, b.store.Capabilities())
	b.x = NewExecutor(ExecutorOptions{
		Provider: providers.Wrap(b.store, providers.WrapOptions{Around: b.call}), Name: "test", Tree: b.tree,
		Volume: b, Names: b, Content: b, Attributes: attrs.Mapping{Kept: b.store.Capabilities().Attributes},
		NewID: b.newID, Passes: passes, Log: slog.New(slog.DiscardHandler),
	})
	return b
}

func passes(err error) bool { return errors.Is(err, providers.ErrUnavailable) }

// call has a call of the store fail before or after it has happened.
func (b *bench) call(ctx context.Context, _ *providers.Call, next func(context.Context) error) error {
	b.mu.Lock()
	n := b.calls
	b.calls++
	var before, after error
	if b.around != nil {
		before, after = b.around(n)
	}
	b.mu.Unlock()
	if before != nil {
		return before
	}
	if err := next(ctx); err != nil {
		return err
	}
	return after
}

// Update implements Volume.
func (b *bench) Update(do func(Tx) error) error {
	return b.update(true, func(tx *tree.Tx) error { return do(Tx{tx, rest{b, tx}}) })
}

// Retry implements Volume.
func (b *bench) Retry(ctx context.Context, do func(context.Context) error) error { return do(ctx) }

// Report implements Volume.
func (b *bench) Report(op, path string, _ error) { b.told = append(b.told, op+" "+path) }

// List implements Names.
func (b *bench) List(dir table.Ino) error {
	b.does(func(tx *tree.Tx) { tx.Edit(dir).Loaded = true })
	return nil
}

// FetchAttrs implements Names.
func (b *bench) FetchAttrs(context.Context, table.Ino) error { return nil }

// FetchTarget implements Names.
func (b *bench) FetchTarget(context.Context, table.Ino) error { return nil }

// Open implements Content.
func (b *bench) Open(table.Ino) (*files.OpenInode, error) { return nil, ErrMoot }

// Release implements Content.
func (b *bench) Release(*files.OpenInode) {}

// Renamed implements Content.
func (b *bench) Renamed(*tree.View, table.Ino, string, string) {}

// HydrateBeforeDelete implements Content.
func (b *bench) HydrateBeforeDelete(context.Context, table.Link) error { return nil }

// Unsendable implements Content.
func (b *bench) Unsendable(_ context.Context, _ table.Link, cause error) error { return cause }

// rest is the rest of a working copy.
type rest struct {
	b  *bench
	tx *tree.Tx
}

func (r rest) Sending(table.Ino, *table.Attempt) {}

func (r rest) Succeeded(old, dir table.Ino) { r.tx.Succeed(old, dir) }

func (r rest) Resurrected(l table.Link, dir table.Ino) { give(r.tx, l, dir) }

func (r rest) Wake() {}

// give gives a name an inode, or none (0).
func give(tx *tree.Tx, l table.Link, ino table.Ino) { tx.SetLocal(l, ino, false, false) }

// link makes a symbolic link.
func (b *bench) link(ino table.Ino, l table.Link, target string) {
	b.does(func(tx *tree.Tx) {
		tx.Put(ino, &table.Inode{Mode: syscall.S_IFLNK | 0o777, ContentVersion: 1, AttrGen: 1, Target: target, Size: int64(len(target))})
		give(tx, l, ino)
	})
}

// mkdir makes a directory.
func (b *bench) mkdir(ino table.Ino, l table.Link) {
	b.does(func(tx *tree.Tx) {
		tx.Put(ino, &table.Inode{Mode: syscall.S_IFDIR | 0o755, ContentVersion: 1, AttrGen: 1, Loaded: true})
		give(tx, l, ino)
	})
}

// remove takes a name away.
func (b *bench) remove(l table.Link) {
	b.does(func(tx *tree.Tx) {
		ino := tx.Record(l).Ino
		give(tx, l, 0)
		tx.NameLost(ino)
	})
}

// rename gives an inode another name. What has that loses it.
func (b *bench) rename(from, to table.Link) {
	b.does(func(tx *tree.Tx) {
		ino, old := tx.Record(from).Ino, tx.Record(to).Ino
		give(tx, to, ino)
		give(tx, from, 0)
		if old != 0 {
			tx.NameLost(old)
		}
	})
}

// knows has the tree know what the store has under a name, as what an inode is.
func (b *bench) knows(ino table.Ino, l table.Link, path string) {
	info := assert.Of(b.store.Stat(b.Context(), place(b, path))).OK(b)
	b.does(func(tx *tree.Tx) {
		n := tx.Edit(ino)
		tx.SetRemote(l, &table.Remote{Ino: ino, Kind: info.Kind, Version: info.Version, ContentVersion: n.ContentVersion, AttrGen: n.AttrGen})
	})
}

func place(t testing.TB, path string) providers.Locator {
	t.Helper()
	at := assert.Of(providers.ParseLocator(path)).OK(t)
	return at
}

// next is the first operation that can be made.
func (b *bench) next() (found *Operation) {
	v := b.tree.Lock()
	defer b.tree.Unlock()
	v.Dirty(0, func(_ uint64, l table.Link) bool {
		if verdict, s, _ := b.p.Plan(v, l); verdict == Ready {
			found = s
		}
		return found == nil
	})
	return found
}

// make makes an operation.
func (b *bench) make(s *Operation) error {
	unmade := b.unmade[s.Link]
	if unmade == nil {
		unmade = &table.Attempt{}
		b.unmade[s.Link] = unmade
	}
	return b.x.Do(b.Context(), &Try{Operation: s, Unmade: unmade, Sent: func(int) {}})
}

// settle makes operations until none can be made, and tells which. What fails and may
// succeed soon is made again.
func (b *bench) settle() (made []string) {
	b.Helper()
	for range 100 {
		s := b.next()
		if s == nil {
			return made
		}
		err := b.make(s)
		made = append(made, s.String())
		assert.Must(b, err == nil || errors.Is(err, ErrAgain) || passes(err), s, err)
	}
	b.Fatalf("there is no end of it: %q", made)
	return nil
}

// there is what the store has; directories only where they are entries.
func (b *bench) there() string {
	var lines []string
	for info, err := range providers.All(b.Context(), b.store, providers.Locator{}, providers.ListOptions{Recursive: true}) {
		assert.OK(b, err)
		if info.Kind == providers.KindDir {
			if b.store.Capabilities().EmptyDirs {
				lines = append(lines, info.Locator.String()+"/")
			}
			continue
		}
		c := assert.Of(b.store.Read(b.Context(), info.Locator, providers.ReadOptions{})).OK(b)
		data := assert.Of(io.ReadAll(c.Body)).OK(b)
		lines = append(lines, info.Locator.String()+"="+string(data))
	}
	return strings.Join(lines, " ")
}

// agrees says which names differ, or are known to have something else than the store has.
func (b *bench) agrees() error {
	v := b.tree.Lock()
	defer b.tree.Unlock()
	if n := v.DirtyCount(); n > 0 {
		return fmt.Errorf("%d names differ", n)
	}
	for info, err := range providers.All(b.Context(), b.store, providers.Locator{}, providers.ListOptions{Recursive: true}) {
		if err != nil {
			return err
		}
		dir, ok := v.DirAtRemotePath(info.Locator.Parent())
		base := v.Record(at(dir, info.Locator.Name())).Remote
		if !ok || base == nil || base.Kind != providers.KindDir && !base.Version.Matches(info.Version) {
			return fmt.Errorf("%s is not known as it is: %+v", info.Locator, base)
		}
	}
	return nil
}

// stores are stores of less and less ability.
var stores = map[string]memory.Options{
	"moves":  {},
	"copies": {Without: providers.Capabilities{Abilities: providers.AbilityMove}},
	"no ids": {Without: providers.Capabilities{OperationIDs: true}},
	"keys": {Without: providers.Capabilities{EmptyDirs: true, OperationIDs: true, Attributes: providers.AttrModTime,
		Abilities: providers.AbilityMove | providers.AbilityCopy | providers.AbilityAttr}},
}

// changes are made where the store has a -> A, b -> B and d/x -> X. They are of inodes 10,
// 11, 12 (d) and 13.
var changes = map[string]struct {
	make func(b *bench)
	want string
}{
	"made": {func(b *bench) { b.mkdir(20, root("e")); b.link(21, at(20, "y"), "Y") }, "a=A b=B d/ d/x=X e/ e/y=Y"},
	"changed": {func(b *bench) {
		b.does(func(tx *tree.Tx) { tx.Edit(10).Target = "changed"; tx.ContentChanged(10, 7, table.Time{}) })
	}, "a=changed b=B d/ d/x=X"},
	"removed":              {func(b *bench) { b.remove(root("a")); b.remove(root("b")) }, "d/ d/x=X"},
	"removed and made":     {func(b *bench) { b.remove(root("a")); b.link(20, root("a"), "new") }, "a=new b=B d/ d/x=X"},
	"a directory removed":  {func(b *bench) { b.remove(at(12, "x")); b.remove(root("d")) }, "a=A b=B"},
	"renamed":              {func(b *bench) { b.rename(root("a"), root("c")) }, "b=B c=A d/ d/x=X"},
	"renamed to another's": {func(b *bench) { b.rename(root("a"), root("b")) }, "b=A d/ d/x=X"},
	"renamed and changed":  {func(b *bench) { b.rename(root("a"), root("c")); b.link(20, root("a"), "new") }, "a=new b=B c=A d/ d/x=X"},
	"exchanged": {func(b *bench) {
		b.rename(root("a"), root("t"))
		b.rename(root("b"), root("a"))
		b.rename(root("t"), root("b"))
	}, "a=B b=A d/ d/x=X"},
	"a directory renamed":    {func(b *bench) { b.rename(root("d"), root("e")) }, "a=A b=B e/ e/x=X"},
	"a directory in another": {func(b *bench) { b.mkdir(20, root("e")); b.rename(root("d"), at(20, "d")) }, "a=A b=B e/ e/d/ e/d/x=X"},
	"a second name":          {func(b *bench) { b.does(func(tx *tree.Tx) { give(tx, root("c"), 10) }) }, "a=A b=B c=A d/ d/x=X"},
	"attributes": {func(b *bench) {
		b.does(func(tx *tree.Tx) {
			tx.Edit(10).Mtime = table.TimeOf(time.Unix(5, 0))
			tx.AttrChanged(10)
			tx.AttrChanged(12)
		})
	}, "a=A b=B d/ d/x=X"},
}

// changed is a bench in which a change was made and not sent yet.
func changed(t *testing.T, o memory.Options, change string) *bench {
	b := newBench(t, o)
	b.link(10, root("a"), "A")
	b.link(11, root("b"), "B")
	b.mkdir(12, root("d"))
	b.link(13, at(12, "x"), "X")
	b.settle()
	changes[change].make(b)
	b.calls, b.unmade = 0, map[table.Link]*table.Attempt{}
	return b
}

// check sends everything and compares.
func (b *bench) check(change string) {
	b.Helper()
	made := b.settle()
	want := changes[change].want
	if !b.store.Capabilities().EmptyDirs {
		want = strings.Join(slices.DeleteFunc(strings.Fields(want), func(line string) bool { return strings.HasSuffix(line, "/") }), " ")
	}
	assert.Equal(b, b.there(), want, made)
	assert.OK(b, b.agrees(), made)
}

// Whatever was changed, and whichever call fails, or has its answer lost, or is the last
// one of a process: in the end the store has what is local, and the tree knows it.
func TestEachCallMayFail(t *testing.T) {
	for name, o := range stores {
		for change := range changes {
			t.Run(name+"/"+change, func(t *testing.T) {
				b := changed(t, o, change)
				b.check(change)
				for call := range b.calls {
					for _, how := range []string{"refused", "lost", "killed"} {
						b := changed(t, o, change)
						b.around = func(n int) (before, after error) {
							switch {
							case n != call:
							case how == "refused":
								before = providers.ErrUnavailable
							default:
								after = providers.ErrUnavailable
							}
							if n > call && how == "killed" && len(b.unmade) > 0 { // what only memory knew
								for _, a := range b.unmade {
									*a = table.Attempt{}
								}
							}
							return before, after
						}
						b.check(change)
					}
				}
			})
		}
	}
}

// A change that is known not to have happened leaves no attempt, and one of which that is
// not known does.
func TestAttemptsOfWhatFailed(t *testing.T) {
	for _, c := range []struct {
		err   error
		stays bool
	}{
		{providers.ErrConflict, false}, {providers.ErrPermission, false}, {providers.ErrUnavailable, true},
		{context.Canceled, true}, {context.DeadlineExceeded, true},
	} {
		for change, l := range map[string]table.Link{"changed": root("a"), "removed": root("a"), "a second name": root("c"), "renamed": root("c"), "attributes": root("a")} {
			b := changed(t, memory.Options{}, change)
			b.around = func(int) (before, after error) { return c.err, nil }
			assert.Is(t, b.make(b.next()), c.err, change)
			v := b.tree.Lock()
			assert.Equal(t, v.Record(l).Attempt != nil, c.stays, change, c.err)
			b.tree.Unlock()
		}
	}
}

// What did not happen is made again under its id, so that it happens once if it comes late;
// other content gets another.
func TestWhatDidNotHappenKeepsItsID(t *testing.T) {
	b := changed(t, memory.Options{}, "changed")
	b.around = func(n int) (before, after error) {
		if n == 0 {
			before = providers.ErrUnavailable
		}
		return before, nil
	}
	attempt := func() (op string) {
		v := b.tree.Lock()
		defer b.tree.Unlock()
		if a := v.Record(root("a")).Attempt; a != nil {
			op = a.Op
		}
		return op
	}
	assert.Is(t, b.make(b.next()), providers.ErrUnavailable)
	first := attempt()
	assert.Is(t, b.make(b.next()), ErrAgain) // it did not happen
	assert.Equal(t, attempt(), "")
	assert.Equal(t, b.unmade[root("a")].Op, first)
	b.around = func(int) (before, after error) {
		assert.Equal(t, attempt(), first)
		return nil, nil
	}
	assert.OK(t, b.make(b.next()))
	b.does(func(tx *tree.Tx) { tx.Edit(10).Target = "again"; tx.ContentChanged(10, 5, table.Time{}) })
	b.around = func(int) (before, after error) {
		assert.True(t, attempt() != first, "other content is the same operation")
		return nil, nil
	}
	assert.OK(t, b.make(b.next()))
	assert.OK(t, b.agrees())
}

// A directory into which others have put something comes back, as another inode, with the
// directories above it.
func TestResurrect(t *testing.T) {
	b := newBench(t, memory.Options{})
	b.mkdir(10, root("d"))
	b.mkdir(11, at(10, "in"))
	b.settle()
	b.remove(at(10, "in"))
	b.remove(root("d"))
	assert.OK(t, assert.ErrOf(b.store.Write(b.Context(), place(t, "d/in/theirs"), providers.String("x"), providers.WriteOptions{If: providers.IfAbsent()})))
	s := b.next()
	assert.Equal(t, s.String(), "delete d/in")
	cause := b.make(s)
	assert.Is(t, cause, providers.ErrNotEmpty)
	assert.Is(t, b.x.Resurrect(s.Link, cause), ErrAgain)
	assert.Slice(t, b.told, []string{"delete d/in"})
	b.settle()
	v := b.tree.Lock()
	defer b.tree.Unlock()
	d := v.Record(root("d"))
	in := v.Record(at(d.Ino, "in"))
	assert.False(t, d.Ino == 0 || d.Ino == 10 || in.Ino == 0 || in.Ino == 11, d, in)
	assert.Equal(t, d.Remote.Ino, d.Ino)
	assert.Equal(t, in.Remote.Ino, in.Ino)
	assert.False(t, v.Inode(in.Ino).Loaded, "what they did is known")
	assert.Equal(t, v.DirtyCount(), 0)
}

// The names of a large directory are handed over in pieces, and can be changed meanwhile.
func TestHandOverInPieces(t *testing.T) {
	b := newBench(t, stores["copies"])
	b.mkdir(10, root("d"))
	for i := range table.Ino(handPiece + 10) {
		b.link(100+i, at(10, "f"+strconv.Itoa(int(i))), "x")
	}
	for b.next() != nil {
		assert.OK(t, b.make(b.next()))
	}
	b.rename(root("d"), root("e"))
	s := b.next()
	assert.Equal(t, s.Verb, VerbPart)
	assert.Is(t, b.make(s), ErrAgain)
	b.link(20, at(10, "new"), "n")
	b.remove(at(10, "f3"))
	s = b.next()
	assert.Equal(t, s.Verb, VerbPart, "there is another piece")
	assert.Is(t, b.make(s), ErrAgain)
	for s = b.next(); s != nil; s = b.next() {
		assert.False(t, s.Verb == VerbPart, "there is a third piece")
		assert.OK(t, b.make(s))
	}
	assert.OK(t, b.agrees())
	there := " " + b.there()
	assert.Equal(t, strings.Count(there, " e/"), handPiece+10+1, "with the directory")
	assert.False(t, strings.Contains(there, " d/") || strings.Contains(there, " e/f3=") || !strings.Contains(there, " e/new=n"), there)
}

// A directory that was only there because of what was in it is made for itself.
func TestImpliedDirectory(t *testing.T) {
	b := newBench(t, memory.Options{ImpliedDirs: true})
	_, err := b.store.Write(b.Context(), place(t, "d/x"), providers.String("X"), providers.WriteOptions{If: providers.IfAbsent(), Kind: providers.KindSymlink})
	assert.OK(t, err)
	b.mkdir(12, root("d"))
	b.link(13, at(12, "x"), "X")
	b.knows(12, root("d"), "d")
	b.knows(13, at(12, "x"), "d/x")
	b.remove(at(12, "x"))
	assert.Slice(t, b.settle(), []string{"delete d/x", "settle d", "mkdir d"})
	assert.Equal(t, b.there(), "d/")
}

// What takes the place of an entry is served as that was, where the store copies.
func TestMetadataInPlaceOfAnother(t *testing.T) {
	b := newBench(t, stores["copies"])
	page := map[string]string{"header:content-type": "text/html", "header:content-encoding": "gzip", "colour": "red"}
	for ino, path := range map[table.Ino]string{10: "page", 11: "page.new"} {
		o := providers.WriteOptions{If: providers.IfAbsent()}
		if path == "page" {
			o.Metadata = page
		}
		assert.OK(t, assert.ErrOf(b.store.Write(b.Context(), place(t, path), providers.String(path), o)))
		b.has(ino, file, root(path), none)
		b.does(func(tx *tree.Tx) { tx.Edit(ino).Metadata = o.Metadata })
		b.knows(ino, root(path), path)
	}
	b.rename(root("page.new"), root("page"))
	assert.Slice(t, b.settle(), []string{"copy page", "delete page.new"})
	info := assert.Of(b.store.Stat(t.Context(), place(t, "page"))).OK(t)
	assert.Equal(t, fmt.Sprint(info.Metadata), "map[header:content-type:text/html]")
}
