package providertest

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/memoryrepo"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/memory"
)

// broken is a provider with one fault each, which a mistake puts in the place of what
// newBroken puts there.
type broken struct {
	*memory.Provider
	caps    func(providers.Capabilities) providers.Capabilities
	stat    func(context.Context, providers.Locator) (providers.Info, error)
	list    func(context.Context, providers.Locator, providers.ListOptions) (providers.Page, error)
	read    func(context.Context, providers.Locator, providers.ReadOptions) (providers.Content, error)
	write   func(context.Context, providers.Locator, providers.Body, providers.WriteOptions) (providers.Info, error)
	remove  func(context.Context, providers.Locator, providers.DeleteOptions) error
	mkdir   func(context.Context, providers.Locator, providers.MkdirOptions) (providers.Info, error)
	close   func() error
	copy    func(context.Context, providers.Locator, providers.Locator, providers.CopyOptions) (providers.Info, error)
	move    func(context.Context, providers.Locator, providers.Locator, providers.MoveOptions) (providers.Info, error)
	setAttr func(context.Context, providers.Locator, providers.SetAttrOptions) (providers.Info, error)
	commit  func(context.Context, providers.ChangeSet) (providers.CommitResult, error)
	start   func(context.Context, providers.Locator, providers.WriteOptions) (providers.Upload, error)
	abort   func(context.Context, time.Time) (int, error)
}

// newBroken makes a provider with no fault yet.
func newBroken() *broken {
	p := memory.New(memory.Options{})
	return &broken{
		Provider: p, caps: func(c providers.Capabilities) providers.Capabilities { return c },
		stat: p.Stat, list: p.List, read: p.Read, write: p.Write, remove: p.Delete, mkdir: p.Mkdir, close: p.Close,
		copy: p.Copy, move: p.Move, setAttr: p.SetAttr, start: p.StartParts, abort: p.AbortParts, commit: p.Commit,
	}
}

func (b *broken) Capabilities() providers.Capabilities { return b.caps(b.Provider.Capabilities()) }
func (b *broken) Stat(ctx context.Context, l providers.Locator) (providers.Info, error) {
	return b.stat(ctx, l)
}

func (b *broken) List(ctx context.Context, l providers.Locator, o providers.ListOptions) (providers.Page, error) {
	return b.list(ctx, l, o)
}

func (b *broken) Read(ctx context.Context, l providers.Locator, o providers.ReadOptions) (providers.Content, error) {
	return b.read(ctx, l, o)
}

func (b *broken) Write(ctx context.Context, l providers.Locator, body providers.Body, o providers.WriteOptions) (providers.Info, error) {
	return b.write(ctx, l, body, o)
}

func (b *broken) Delete(ctx context.Context, l providers.Locator, o providers.DeleteOptions) error {
	return b.remove(ctx, l, o)
}

func (b *broken) Mkdir(ctx context.Context, l providers.Locator, o providers.MkdirOptions) (providers.Info, error) {
	return b.mkdir(ctx, l, o)
}

func (b *broken) Close() error { return b.close() }

func (b *broken) Copy(ctx context.Context, from, to providers.Locator, o providers.CopyOptions) (providers.Info, error) {
	return b.copy(ctx, from, to, o)
}

func (b *broken) Move(ctx context.Context, from, to providers.Locator, o providers.MoveOptions) (providers.Info, error) {
	return b.move(ctx, from, to, o)
}

func (b *broken) SetAttr(ctx context.Context, l providers.Locator, o providers.SetAttrOptions) (providers.Info, error) {
	return b.setAttr(ctx, l, o)
}

func (b *broken) StartParts(ctx context.Context, l providers.Locator, o providers.WriteOptions) (providers.Upload, error) {
	return b.start(ctx, l, o)
}

func (b *broken) AbortParts(ctx context.Context, before time.Time) (int, error) {
	return b.abort(ctx, before)
}

func (b *broken) Commit(ctx context.Context, set providers.ChangeSet) (providers.CommitResult, error) {
	return b.commit(ctx, set)
}

// all reads a body whatever it is worth.
func all(body providers.Body) []byte {
	if body.Reader == nil {
		return nil
	}
	b, _ := io.ReadAll(body.Reader)
	return b
}

// withContent changes what a Read delivers.
func withContent(p *memory.Provider, change func(string) string) func(context.Context, providers.Locator, providers.ReadOptions) (providers.Content, error) {
	return func(ctx context.Context, l providers.Locator, o providers.ReadOptions) (providers.Content, error) {
		c, err := p.Read(ctx, l, o)
		if err == nil {
			b, _ := io.ReadAll(c.Body)
			c.Body = io.NopCloser(strings.NewReader(change(string(b))))
		}
		return c, err
	}
}

// withOpts changes what a Write is asked for.
func withOpts(p *memory.Provider, change func(*providers.WriteOptions)) func(context.Context, providers.Locator, providers.Body, providers.WriteOptions) (providers.Info, error) {
	return func(ctx context.Context, l providers.Locator, b providers.Body, o providers.WriteOptions) (providers.Info, error) {
		change(&o)
		return p.Write(ctx, l, b, o)
	}
}

// withInfo changes what Stat says.
func withInfo(p *memory.Provider, change func(*providers.Info)) func(context.Context, providers.Locator) (providers.Info, error) {
	return func(ctx context.Context, l providers.Locator) (providers.Info, error) {
		info, err := p.Stat(ctx, l)
		change(&info)
		return info, err
	}
}

// withPage changes what List says.
func withPage(p *memory.Provider, change func(*providers.Page)) func(context.Context, providers.Locator, providers.ListOptions) (providers.Page, error) {
	return func(ctx context.Context, l providers.Locator, o providers.ListOptions) (providers.Page, error) {
		page, err := p.List(ctx, l, o)
		change(&page)
		return page, err
	}
}

func unguarded(o *providers.WriteOptions) {
	if o.If.Kind == providers.ConditionVersion || o.If.Kind == providers.ConditionAbsent {
		o.If = providers.Unconditional()
	}
}

// withSet changes what a Commit is asked for.
func withSet(p *memory.Provider, change func(*providers.ChangeSet)) func(context.Context, providers.ChangeSet) (providers.CommitResult, error) {
	return func(ctx context.Context, set providers.ChangeSet) (providers.CommitResult, error) {
		set.Changes = slices.Clone(set.Changes)
		change(&set)
		return p.Commit(ctx, set)
	}
}

// taken are the places that a set takes from.
func taken(set *providers.ChangeSet) []providers.Locator {
	var places []providers.Locator
	for _, c := range set.Changes {
		if !c.From.IsRoot() {
			places = append(places, c.From)
		}
	}
	return places
}

// mistakes are providers that real bugs would make, and the checks that must
// notice.
var mistakes = []struct {
	name   string
	breaks func(b *broken, p *memory.Provider)
	checks []string
}{
	{"reading translates line ends", func(b *broken, p *memory.Provider) {
		b.read = withContent(p, func(s string) string { return strings.ReplaceAll(s, "\r\n", "\n") })
	}, []string{"content/exact"}},
	{"writing adds to what is there", func(b *broken, p *memory.Provider) {
		b.write = func(ctx context.Context, l providers.Locator, body providers.Body, o providers.WriteOptions) (providers.Info, error) {
			old, _, _ := providers.Fetch(ctx, p, l, providers.ReadOptions{})
			return p.Write(ctx, l, providers.Bytes(append(all(body), old...)), o)
		}
	}, []string{"content/replaced"}},
	{"a body of unknown size is empty", func(b *broken, p *memory.Provider) {
		b.write = func(ctx context.Context, l providers.Locator, body providers.Body, o providers.WriteOptions) (providers.Info, error) {
			if body.Size == providers.SizeUnknown {
				body = providers.Body{}
			}
			return p.Write(ctx, l, body, o)
		}
	}, []string{"content/size-unknown"}},
	{"what arrives is stored, whatever was promised", func(b *broken, p *memory.Provider) {
		b.write = func(ctx context.Context, l providers.Locator, body providers.Body, o providers.WriteOptions) (providers.Info, error) {
			return p.Write(ctx, l, providers.Bytes(all(body)), o)
		}
	}, []string{"content/size-wrong", "content/body-fails", "fault/half-upload"}},
	{"large content is cut", func(b *broken, p *memory.Provider) {
		b.read = withContent(p, func(s string) string { return s[:min(len(s), 1<<20)] })
	}, []string{"content/large"}},
	{"the caller's buffer is kept", func(b *broken, p *memory.Provider) {
		kept := map[providers.Locator]providers.Body{}
		b.write = func(ctx context.Context, l providers.Locator, body providers.Body, o providers.WriteOptions) (providers.Info, error) {
			content := all(body)
			body.Reader.(io.Seeker).Seek(0, io.SeekStart)
			kept[l] = body
			return p.Write(ctx, l, providers.Bytes(content), o)
		}
		b.read = func(ctx context.Context, l providers.Locator, o providers.ReadOptions) (providers.Content, error) {
			c, err := p.Read(ctx, l, o)
			c.Body = io.NopCloser(bytes.NewReader(all(kept[l])))
			return c, err
		}
	}, []string{"content/arguments-are-the-callers"}},
	{"ranges are one byte off", func(b *broken, p *memory.Provider) {
		b.read = func(ctx context.Context, l providers.Locator, o providers.ReadOptions) (providers.Content, error) {
			if o.Length > 1 {
				o.Length--
			}
			return p.Read(ctx, l, o)
		}
	}, []string{"read/ranges"}},
	{"reads are not pinned", func(b *broken, p *memory.Provider) {
		b.read = func(ctx context.Context, l providers.Locator, o providers.ReadOptions) (providers.Content, error) {
			o.Version = providers.Version{}
			return p.Read(ctx, l, o)
		}
	}, []string{"read/pinned"}},
	{"nothing reads as empty", func(b *broken, p *memory.Provider) {
		b.read = func(ctx context.Context, l providers.Locator, o providers.ReadOptions) (providers.Content, error) {
			c, err := p.Read(ctx, l, o)
			if errors.Is(err, providers.ErrNotExist) {
				return providers.Content{Body: io.NopCloser(strings.NewReader(""))}, nil
			}
			return c, err
		}
	}, []string{"read/absent", "names/errors-name-them-once"}},
	{"a directory reads as nothing", func(b *broken, p *memory.Provider) {
		b.read = func(ctx context.Context, l providers.Locator, o providers.ReadOptions) (providers.Content, error) {
			c, err := p.Read(ctx, l, o)
			if errors.Is(err, providers.ErrIsDir) {
				err = &providers.Error{Op: providers.MethodRead, Locator: l, Kind: providers.ErrNotExist}
			}
			return c, err
		}
	}, []string{"read/directory"}},
	{"a body goes on in the version of the day", func(b *broken, p *memory.Provider) {
		b.read = func(ctx context.Context, l providers.Locator, o providers.ReadOptions) (providers.Content, error) {
			c, err := p.Read(ctx, l, o)
			c.Body = io.NopCloser(&following{p, l, 0})
			return c, err
		}
	}, []string{"read/open-while-replaced"}},
	{"backslashes become slashes", func(b *broken, p *memory.Provider) {
		b.write = func(ctx context.Context, l providers.Locator, body providers.Body, o providers.WriteOptions) (providers.Info, error) {
			return p.Write(ctx, loc(strings.ReplaceAll(l.String(), `\`, "/")), body, o)
		}
	}, []string{"names/odd"}},
	{"prefixes do not end at names", func(b *broken, p *memory.Provider) {
		b.list = func(ctx context.Context, l providers.Locator, o providers.ListOptions) (providers.Page, error) {
			page, err := p.List(ctx, l, o)
			more, _ := p.List(ctx, loc(l.String()+"-2"), o)
			page.Entries = append(page.Entries, more.Entries...)
			return page, err
		}
	}, []string{"names/neighbours"}},
	{"errors say no name", func(b *broken, p *memory.Provider) {
		b.stat = func(ctx context.Context, l providers.Locator) (providers.Info, error) {
			info, err := p.Stat(ctx, l)
			if err != nil {
				err = &providers.Error{Op: providers.MethodStat, Kind: providers.KindOf(err).Err}
			}
			return info, err
		}
	}, []string{"names/errors-name-them-once"}},
	{"there is no root", func(b *broken, p *memory.Provider) {
		b.stat = func(ctx context.Context, l providers.Locator) (providers.Info, error) {
			if l.IsRoot() {
				return providers.Info{}, &providers.Error{Op: providers.MethodStat, Kind: providers.ErrNotExist}
			}
			return p.Stat(ctx, l)
		}
	}, []string{"tree/root"}},
	{"parents are made first", func(b *broken, p *memory.Provider) {
		b.write = func(ctx context.Context, l providers.Locator, body providers.Body, o providers.WriteOptions) (providers.Info, error) {
			p.Mkdir(ctx, l.Parent(), providers.MkdirOptions{})
			return p.Write(ctx, l, body, o)
		}
	}, []string{"tree/failed-writes-leave-no-parents"}},
	{"a file in the way is removed", func(b *broken, p *memory.Provider) {
		b.write = func(ctx context.Context, l providers.Locator, body providers.Body, o providers.WriteOptions) (providers.Info, error) {
			for up := l.Parent(); !up.IsRoot(); up = up.Parent() {
				p.Delete(ctx, up, providers.DeleteOptions{If: providers.Unconditional()})
			}
			return p.Write(ctx, l, body, o)
		}
	}, []string{"tree/below-a-file", "tree/symlink"}},
	{"a directory in the way is removed", func(b *broken, p *memory.Provider) {
		b.write = func(ctx context.Context, l providers.Locator, body providers.Body, o providers.WriteOptions) (providers.Info, error) {
			if info, err := p.Stat(ctx, l); err == nil && info.Kind == providers.KindDir && !l.IsRoot() {
				p.Tamper(l, nil)
			}
			return p.Write(ctx, l, body, o)
		}
	}, []string{"tree/no-write-over-a-directory"}},
	{"a file comes in place of a directory, where it may come beside", func(b *broken, p *memory.Provider) {
		b.caps = func(c providers.Capabilities) providers.Capabilities { c.StrictTree = false; return c }
		b.write = func(ctx context.Context, l providers.Locator, body providers.Body, o providers.WriteOptions) (providers.Info, error) {
			if info, err := p.Stat(ctx, l); err == nil && info.Kind == providers.KindDir && !l.IsRoot() {
				p.Tamper(l, nil)
			}
			return p.Write(ctx, l, body, o)
		}
	}, []string{"tree/no-write-over-a-directory"}},
	{"a directory is announced to go with its last entry, and stays", func(b *broken, p *memory.Provider) {
		b.caps = func(c providers.Capabilities) providers.Capabilities { c.ImpliedDirs = true; return c }
	}, []string{"tree/made-by-write"}},
	{"parts have the order in which they come", partNumbersAreIgnored, []string{"parts/content"}},
	{"parts can be seen before they are complete", partsCanBeSeen, []string{"parts/content"}},
	{"parts are copied of any version", partsOfAnyVersion, []string{"parts/copied"}},
	{"parts overwrite whatever is there", partsWithoutCondition, []string{"parts/conditions"}},
	{"uploads that nobody completes stay", leftPartsStay, []string{"parts/aborted"}},
	{"an upload that is complete is not so again", completeOnce, []string{"parts/operation-id"}},
	{"mkdir removes what is in the way", func(b *broken, p *memory.Provider) {
		b.mkdir = func(ctx context.Context, l providers.Locator, o providers.MkdirOptions) (providers.Info, error) {
			p.Delete(ctx, l, providers.DeleteOptions{If: providers.Unconditional()})
			return p.Mkdir(ctx, l, o)
		}
	}, []string{"tree/mkdir-over-a-file"}},
	{"a directory goes with all its entries", func(b *broken, p *memory.Provider) {
		b.remove = func(ctx context.Context, l providers.Locator, o providers.DeleteOptions) error {
			err := p.Delete(ctx, l, o)
			if errors.Is(err, providers.ErrNotEmpty) {
				err = p.Tamper(l, nil)
			}
			return err
		}
	}, []string{"tree/delete-directory"}},
	{"directories without entries stay", func(b *broken, p *memory.Provider) {
		b.remove = func(ctx context.Context, l providers.Locator, o providers.DeleteOptions) error {
			if o.If.Kind == providers.ConditionDir {
				return assert.ErrOf(p.Stat(ctx, l))
			}
			return p.Delete(ctx, l, o)
		}
	}, []string{"tree/delete-empty-directory"}},
	{"links are files", func(b *broken, p *memory.Provider) {
		b.write = withOpts(p, func(o *providers.WriteOptions) { o.Kind = providers.KindFile })
	}, []string{"tree/symlink", "tree/kind"}},
	{"listings are recursive", func(b *broken, p *memory.Provider) {
		b.list = func(ctx context.Context, l providers.Locator, o providers.ListOptions) (providers.Page, error) {
			o.Recursive = true
			return p.List(ctx, l, o)
		}
	}, []string{"list/children", "tree/mkdir"}},
	{"nothing lists as an empty directory", func(b *broken, p *memory.Provider) {
		b.list = func(ctx context.Context, l providers.Locator, o providers.ListOptions) (providers.Page, error) {
			page, err := p.List(ctx, l, o)
			if errors.Is(err, providers.ErrNotExist) || errors.Is(err, providers.ErrNotDir) {
				err = nil
			}
			return page, err
		}
	}, []string{"list/absent"}},
	{"each page but the last loses an entry", func(b *broken, p *memory.Provider) {
		b.list = withPage(p, func(page *providers.Page) {
			if page.Next != "" {
				page.Entries = page.Entries[1:]
			}
		})
	}, []string{"list/paging", "list/recursive-paging"}},
	{"pages go on by number", func(b *broken, p *memory.Provider) {
		b.list = func(ctx context.Context, l providers.Locator, o providers.ListOptions) (providers.Page, error) {
			var from int
			fmt.Sscanf(o.Token, "%d", &from)
			whole, err := p.List(ctx, l, providers.ListOptions{Recursive: o.Recursive})
			n := len(whole.Entries)
			to := min(from+cmp.Or(o.Limit, n), n)
			page := providers.Page{Entries: whole.Entries[min(from, n):to]}
			if to < n {
				page.Next = fmt.Sprint(to)
			}
			return page, err
		}
	}, []string{"list/paging-under-change", "list/bad-token"}},
	{"recursive listings are not", func(b *broken, p *memory.Provider) {
		b.list = func(ctx context.Context, l providers.Locator, o providers.ListOptions) (providers.Page, error) {
			o.Recursive = false
			return p.List(ctx, l, o)
		}
	}, []string{"list/recursive", "list/recursive-paging"}},
	{"a listing after a directory leaves out what is in it", func(b *broken, p *memory.Provider) {
		b.list = func(ctx context.Context, l providers.Locator, o providers.ListOptions) (providers.Page, error) {
			page, err := p.List(ctx, l, o)
			if !o.After.IsRoot() && o.Token == "" {
				page.Entries = slices.DeleteFunc(page.Entries, func(e providers.Info) bool { return o.After.Contains(e.Locator) })
			}
			return page, err
		}
	}, []string{"list/recursive-after"}},
	{"versions are hashes of the content", func(b *broken, p *memory.Provider) {
		hash := func(info *providers.Info) {
			if info.Kind != providers.KindDir {
				info.Version.ETag, info.Version.Modified = info.Digest, 0
			}
		}
		b.stat = withInfo(p, hash)
		b.write = func(ctx context.Context, l providers.Locator, body providers.Body, o providers.WriteOptions) (providers.Info, error) {
			info, err := p.Write(ctx, l, body, o)
			hash(&info)
			return info, err
		}
	}, []string{"version/never-comes-back"}},
	{"versions are sizes", func(b *broken, p *memory.Provider) {
		b.write = func(ctx context.Context, l providers.Locator, body providers.Body, o providers.WriteOptions) (providers.Info, error) {
			info, err := p.Write(ctx, l, body, o)
			info.Version.ETag, info.Version.Modified = "size", 0
			return info, err
		}
	}, []string{"version/other-content-has-another"}},
	{"stat has versions of its own", func(b *broken, p *memory.Provider) {
		b.stat = withInfo(p, func(i *providers.Info) { i.Version.ETag += "-weak" })
	}, []string{"version/all-verbs-agree", "list/agrees-with-stat", "tree/parents"}},
	{"reading makes a new version", func(b *broken, p *memory.Provider) {
		b.list = func(ctx context.Context, l providers.Locator, o providers.ListOptions) (providers.Page, error) {
			page, err := p.List(ctx, l, o)
			for _, info := range page.Entries {
				p.SetAttr(ctx, info.Locator, providers.SetAttrOptions{If: providers.Unconditional()})
			}
			return page, err
		}
	}, []string{"version/reading-changes-nothing"}},
	{"operation ids are ignored", func(b *broken, p *memory.Provider) {
		b.write = withOpts(p, func(o *providers.WriteOptions) { o.Op = "" })
	}, []string{"version/operation-id", "fault/lost-answer-with-operation-id"}},
	{"a forgotten condition is none", func(b *broken, p *memory.Provider) {
		b.write = withOpts(p, func(o *providers.WriteOptions) {
			if o.If.Kind == providers.ConditionMissing {
				o.If = providers.Unconditional()
			}
		})
	}, []string{"condition/required"}},
	{"writes are unconditional", func(b *broken, p *memory.Provider) {
		b.write = withOpts(p, unguarded)
	}, []string{"condition/create", "condition/replace", "race/create", "race/replace", "race/delete", "model/random-calls"}},
	{"deletions are unconditional", func(b *broken, p *memory.Provider) {
		b.remove = func(ctx context.Context, l providers.Locator, o providers.DeleteOptions) error {
			if o.If.Kind == providers.ConditionVersion {
				o.If = providers.Unconditional()
			}
			return p.Delete(ctx, l, o)
		}
	}, []string{"condition/delete", "condition/delete-absent"}},
	{"attributes are dropped", func(b *broken, p *memory.Provider) {
		b.write = withOpts(p, func(o *providers.WriteOptions) { o.Attr, o.Metadata = providers.Attr{}, nil })
		b.mkdir = func(ctx context.Context, l providers.Locator, o providers.MkdirOptions) (providers.Info, error) {
			return p.Mkdir(ctx, l, providers.MkdirOptions{})
		}
	}, []string{"attr/kept", "attr/metadata", "attr/directory", "attr/xattrs"}},
	{"times are nanoseconds in 64 bits", func(b *broken, p *memory.Provider) {
		b.write = withOpts(p, func(o *providers.WriteOptions) { o.Attr.ModTime = time.Unix(0, o.Attr.ModTime.UnixNano()) })
	}, []string{"attr/times"}},
	{"setattr writes the content anew, empty", func(b *broken, p *memory.Provider) {
		b.setAttr = func(ctx context.Context, l providers.Locator, o providers.SetAttrOptions) (providers.Info, error) {
			info, err := p.SetAttr(ctx, l, o)
			if err == nil && info.Kind == providers.KindFile {
				return p.Write(ctx, l, providers.Body{}, providers.WriteOptions{If: providers.Unconditional(), Attr: info.Attr})
			}
			return info, err
		}
	}, []string{"attr/set"}},
	{"setattr adds to extended attributes", func(b *broken, p *memory.Provider) {
		b.setAttr = func(ctx context.Context, l providers.Locator, o providers.SetAttrOptions) (providers.Info, error) {
			if len(o.Attr.Xattrs) == 0 {
				o.Attr.Valid &^= providers.AttrXattrs
			}
			return p.SetAttr(ctx, l, o)
		}
	}, []string{"attr/set-xattrs"}},
	{"setattr asks no condition", func(b *broken, p *memory.Provider) {
		b.setAttr = func(ctx context.Context, l providers.Locator, o providers.SetAttrOptions) (providers.Info, error) {
			o.If = providers.Unconditional()
			return p.SetAttr(ctx, l, o)
		}
	}, []string{"attr/set-conditions"}},
	{"an ability is announced and not there", func(b *broken, p *memory.Provider) {
		b.caps = func(c providers.Capabilities) providers.Capabilities {
			c.Abilities |= providers.AbilityPush
			return c
		}
	}, []string{"ability/announced-is-there"}},
	{"an ability is there and not announced", func(b *broken, p *memory.Provider) {
		b.caps = func(c providers.Capabilities) providers.Capabilities {
			c.Abilities &^= providers.AbilityCopy
			return c
		}
	}, []string{"ability/not-announced-is-refused"}},
	{"capabilities come and go", func(b *broken, p *memory.Provider) {
		calls := 0
		b.caps = func(c providers.Capabilities) providers.Capabilities {
			calls++
			c.MaxSize = int64(calls)
			return c
		}
	}, []string{"ability/capabilities-are-constant"}},
	{"a copy goes to the wrong place", func(b *broken, p *memory.Provider) {
		b.copy = func(ctx context.Context, from, to providers.Locator, o providers.CopyOptions) (providers.Info, error) {
			return p.Copy(ctx, from, loc(to.Name()), o)
		}
	}, []string{"copy/content"}},
	{"copies are unconditional", func(b *broken, p *memory.Provider) {
		b.copy = func(ctx context.Context, from, to providers.Locator, o providers.CopyOptions) (providers.Info, error) {
			return p.Copy(ctx, from, to, providers.CopyOptions{If: providers.Unconditional()})
		}
	}, []string{"copy/conditions"}},
	{"a move leaves the source", func(b *broken, p *memory.Provider) {
		b.move = func(ctx context.Context, from, to providers.Locator, o providers.MoveOptions) (providers.Info, error) {
			if o.Source.Kind == providers.ConditionDir {
				return p.Move(ctx, from, to, o)
			}
			return p.Copy(ctx, from, to, providers.CopyOptions{If: o.Target, Version: o.Source.Version})
		}
	}, []string{"move/file"}},
	{"moves are unconditional", func(b *broken, p *memory.Provider) {
		b.move = func(ctx context.Context, from, to providers.Locator, o providers.MoveOptions) (providers.Info, error) {
			if o.Source.Kind == providers.ConditionVersion {
				o.Source = providers.Unconditional()
			}
			o.Target = providers.Unconditional()
			return p.Move(ctx, from, to, o)
		}
	}, []string{"move/conditions"}},
	{"a set is committed change by change", func(b *broken, p *memory.Provider) {
		b.commit = func(ctx context.Context, set providers.ChangeSet) (providers.CommitResult, error) {
			var last providers.CommitResult
			for _, c := range set.Changes {
				var err error
				if last, err = p.Commit(ctx, providers.ChangeSet{Changes: []providers.Change{c}}); err != nil {
					return last, err
				}
			}
			return last, nil
		}
	}, []string{
		"commit/all-or-nothing", "commit/base", "commit/operation-id", "commit/too-late", "commit/nothing", "commit/entries",
		"set/exchange", "set/rename-and-write", "set/rename-and-delete", "set/rename-of-rename",
		"set/file-and-directory", "set/conditions", "set/order-decides-nothing",
	}},
	{"a set loses its last change", func(b *broken, p *memory.Provider) {
		b.commit = func(ctx context.Context, set providers.ChangeSet) (providers.CommitResult, error) {
			set.Changes = set.Changes[:max(0, len(set.Changes)-1)]
			return p.Commit(ctx, set)
		}
	}, []string{"commit/set"}},
	{"a set that was refused may come later", func(b *broken, p *memory.Provider) {
		b.commit = func(ctx context.Context, set providers.ChangeSet) (providers.CommitResult, error) {
			if head, err := p.Head(ctx); err == nil && set.Base != "" && set.Base != head {
				set.Op = ""
			}
			return p.Commit(ctx, set)
		}
	}, []string{"commit/too-late"}},
	{"a rename is a copy", func(b *broken, p *memory.Provider) {
		b.commit = withSet(p, func(set *providers.ChangeSet) {
			places := taken(set)
			set.Changes = slices.DeleteFunc(set.Changes, func(c providers.Change) bool {
				return c.Delete && slices.Contains(places, c.Locator)
			})
		})
	}, []string{"set/rename-file", "set/rename-directory"}},
	{"the move of a directory writes anew what is below", func(b *broken, p *memory.Provider) {
		b.move = func(ctx context.Context, from, to providers.Locator, o providers.MoveOptions) (providers.Info, error) {
			moved, err := p.Move(ctx, from, to, o)
			for info := range providers.All(ctx, p, to, providers.ListOptions{Recursive: true}) {
				content, _, _ := providers.Fetch(ctx, p, info.Locator, providers.ReadOptions{})
				p.Write(ctx, info.Locator, providers.Bytes(content), unconditional)
			}
			return moved, err
		}
	}, []string{"move/directory"}},
	{"whatever is taken is gone", func(b *broken, p *memory.Provider) {
		b.commit = func(ctx context.Context, set providers.ChangeSet) (providers.CommitResult, error) {
			r, err := p.Commit(ctx, set)
			if err == nil {
				for _, place := range taken(&set) {
					p.Tamper(place, nil)
				}
			}
			return r, err
		}
	}, []string{"set/copy", "set/exchange"}},
	{"deletions in a renamed directory are forgotten", func(b *broken, p *memory.Provider) {
		b.commit = withSet(p, func(set *providers.ChangeSet) {
			places := taken(set)
			set.Changes = slices.DeleteFunc(set.Changes, func(c providers.Change) bool {
				return c.Delete && slices.ContainsFunc(places, func(l providers.Locator) bool { return l != c.Locator && l.Contains(c.Locator) })
			})
		})
	}, []string{"set/rename-and-delete", "set/rename-of-rename", "set/copy", "set/random-folds"}},
	{"sets ask no conditions", func(b *broken, p *memory.Provider) {
		b.commit = withSet(p, func(set *providers.ChangeSet) {
			for i := range set.Changes {
				c := &set.Changes[i]
				if c.If.Kind == providers.ConditionVersion || c.If.Kind == providers.ConditionAbsent && !c.Dir {
					c.If = providers.Unconditional()
				}
				c.FromVersion = providers.Version{}
			}
		})
	}, []string{"set/rename-and-write", "set/conditions", "set/refused", "commit/all-or-nothing"}},
	{"what stands in the way of a directory is removed", func(b *broken, p *memory.Provider) {
		b.commit = func(ctx context.Context, set providers.ChangeSet) (providers.CommitResult, error) {
			r, err := p.Commit(ctx, set)
			if errors.Is(err, providers.ErrExist) {
				for _, c := range set.Changes {
					if !c.From.IsRoot() {
						p.Tamper(c.Locator, nil)
					}
				}
				return p.Commit(ctx, set)
			}
			return r, err
		}
	}, []string{"set/refused"}},
	{"a renamed link is a file", func(b *broken, p *memory.Provider) {
		b.commit = withSet(p, func(set *providers.ChangeSet) {
			for i := range set.Changes {
				c := &set.Changes[i]
				if info, err := p.Stat(context.Background(), c.From); err == nil && info.Kind == providers.KindSymlink {
					content, _, _ := providers.Fetch(context.Background(), p, c.From, providers.ReadOptions{})
					c.From, c.Body = providers.Locator{}, providers.Bytes(content)
				}
			}
		})
	}, []string{"set/links"}},
	{"attributes alone are no change", func(b *broken, p *memory.Provider) {
		b.commit = withSet(p, func(set *providers.ChangeSet) {
			for i := range set.Changes {
				set.Changes[i].Attr = providers.Attr{}
			}
		})
	}, []string{"set/attributes-kept"}},
	{"sets make no directories", func(b *broken, p *memory.Provider) {
		b.commit = withSet(p, func(set *providers.ChangeSet) {
			set.Changes = slices.DeleteFunc(set.Changes, func(c providers.Change) bool {
				return c.Dir && !c.Delete && c.From.IsRoot()
			})
		})
	}, []string{"set/empty-directories", "commit/entries"}},
	{"abilities ignore operation ids", func(b *broken, p *memory.Provider) {
		b.copy = func(ctx context.Context, from, to providers.Locator, o providers.CopyOptions) (providers.Info, error) {
			o.Op = ""
			return p.Copy(ctx, from, to, o)
		}
		b.move = func(ctx context.Context, from, to providers.Locator, o providers.MoveOptions) (providers.Info, error) {
			o.Op = ""
			return p.Move(ctx, from, to, o)
		}
		b.setAttr = func(ctx context.Context, l providers.Locator, o providers.SetAttrOptions) (providers.Info, error) {
			o.Op = ""
			return p.SetAttr(ctx, l, o)
		}
	}, []string{"copy/operation-id", "move/operation-id", "attr/set-operation-id"}},
	{"names made at the same time get lost", func(b *broken, p *memory.Provider) {
		b.write = func(ctx context.Context, l providers.Locator, body providers.Body, o providers.WriteOptions) (providers.Info, error) {
			info, err := p.Write(ctx, l, body, o)
			if strings.HasSuffix(l.Name(), "-1") {
				p.Tamper(l, nil)
			}
			return info, err
		}
	}, []string{"race/many-names"}},
	{"reads mix two writers", func(b *broken, p *memory.Provider) {
		b.read = withContent(p, func(s string) string { return s[:len(s)/2] + strings.Repeat("?", len(s)-len(s)/2) })
	}, []string{"race/whole-content"}},
	{"contexts are ignored", func(b *broken, p *memory.Provider) {
		b.stat = func(ctx context.Context, l providers.Locator) (providers.Info, error) {
			return p.Stat(context.WithoutCancel(ctx), l)
		}
		b.read = func(ctx context.Context, l providers.Locator, o providers.ReadOptions) (providers.Content, error) {
			return p.Read(context.WithoutCancel(ctx), l, o)
		}
		b.write = func(ctx context.Context, l providers.Locator, body providers.Body, o providers.WriteOptions) (providers.Info, error) {
			return p.Write(context.WithoutCancel(ctx), l, body, o)
		}
	}, []string{"cancel/before", "cancel/upload", "cancel/download"}},
	{"close closes nothing", func(b *broken, p *memory.Provider) {
		b.close = func() error { return nil }
	}, []string{"close/ends-everything"}},
	{"an outage is for ever", func(b *broken, p *memory.Provider) {
		calls := 0
		b.stat = func(ctx context.Context, l providers.Locator) (providers.Info, error) {
			if calls++; calls > 0 {
				return providers.Info{}, errFault
			}
			return p.Stat(ctx, l)
		}
	}, []string{"fault/before", "fault/lost-answer", "fault/stall"}},
	{"what breaks off is filled up", func(b *broken, p *memory.Provider) {
		b.read = withContent(p, func(s string) string { return s[:len(s)/3] })
	}, []string{"fault/half-download"}},
}

// following reads whatever is there at the moment.
type following struct {
	p  *memory.Provider
	l  providers.Locator
	at int64
}

func (f *following) Read(b []byte) (int, error) {
	got, _, err := providers.Fetch(context.Background(), f.p, f.l, providers.ReadOptions{Offset: f.at, Length: int64(len(b))})
	if err == nil && len(got) == 0 {
		err = io.EOF
	}
	f.at += int64(len(got))
	return copy(b, got), err
}

// notices runs the check of a name against what has a mistake, and wants it to fail.
func notices(t *testing.T, c Check, new New) {
	t.Helper()
	if said := failures(t, c, new); len(said) == 0 {
		t.Errorf("%s did not notice", c.Name)
	} else {
		t.Logf("%s: %s", c.Name, said[0])
	}
}

// Every mistake is noticed by the checks named for it.
func TestNegative(t *testing.T) {
	for _, m := range mistakes {
		t.Run(m.name, func(t *testing.T) {
			for _, name := range m.checks {
				notices(t, checkNamed(t, allChecks(), name), func(T) providers.Provider {
					b := newBroken()
					m.breaks(b, b.Provider)
					return b
				})
			}
		})
	}
	for _, m := range slices.Concat(cloneMistakes, branchMistakes) {
		t.Run(m.name, func(t *testing.T) {
			clones := brokenClones(m.breaks)
			all := append(clonesAsOne(clones), allChecks()...)
			for _, name := range m.checks {
				notices(t, checkNamed(t, all, name), func(t T) providers.Provider { return clones(t).A })
			}
		})
	}
}

// Nothing is said of providers without mistakes, so that what TestNegative sees are the mistakes.
func TestPositive(t *testing.T) {
	silent := func(checks []Check, new New) {
		for _, c := range checks {
			if new(nil).Capabilities().Missing(c.Needs) != nil {
				continue
			}
			said := failures(t, c, new)
			assert.True(t, len(said) == 0, c.Name, said)
		}
	}
	silent(allChecks(), func(T) providers.Provider { return newBroken() })
	clones := brokenClones(func(*brokenClone, *memoryrepo.Repository) {})
	silent(append(clonesAsOne(clones), allChecks()...), func(t T) providers.Provider { return clones(t).A })
}

// forgetful counts refusals that nobody made and lets everything pass.
type forgetful struct{ changing }

func (forgetful) Refused() int64 { return 7 }

// A read-only wrapper that is none is noticed by each of its checks.
func TestNegativeReadOnly(t *testing.T) {
	checks := readOnlyChecksOf(func(p providers.Provider) counting {
		return forgetful{providers.Wrap(p, providers.WrapOptions{}).(changing)}
	})
	for _, c := range checks {
		notices(t, c, func(T) providers.Provider { return memory.New(memory.Options{}) })
	}
}

// There is no check that no mistake is named for.
func TestEveryCheckCanFail(t *testing.T) {
	var named []string
	for _, m := range mistakes {
		named = append(named, m.checks...)
	}
	for _, m := range slices.Concat(cloneMistakes, branchMistakes) {
		named = append(named, m.checks...)
	}
	for _, c := range slices.Concat(Checks(), plainChecks, faultChecks, clonesAsOne(nil)) {
		assert.True(t, slices.Contains(named, c.Name), "no mistake makes", c.Name, "fail")
	}
}
