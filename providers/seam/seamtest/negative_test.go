package seamtest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/memory"
	"github.com/wsmount/wsmount/providers/providertest"
	"github.com/wsmount/wsmount/providers/seam"
)

// broken is a backend with one fault, which a mistake puts in the place of a good verb.
type broken struct {
	*seam.Store
	resolve func(...string) (seam.Locator, error)
	read    func(context.Context, seam.Locator) (string, error)
	write   func(context.Context, seam.Locator, string) (seam.Locator, error)
	writeIf func(context.Context, seam.Locator, seam.ETag, string) (seam.Locator, error)
	list    func(context.Context, seam.Locator) ([]seam.Locator, error)
	exists  func(context.Context, seam.Locator) (bool, error)
	info    func(context.Context, seam.Locator) (seam.Info, error)
	mkdir   func(context.Context, seam.Locator) (seam.Locator, error)
	promise func() seam.Capabilities
	Proof
}

func newBroken() *broken {
	p := memory.New(memory.Options{})
	s := seam.New(p)
	return &broken{
		Proof: Proof{
			Again: func() seam.Conditional { return seam.New(p) },
			Put: func(key, content string) {
				_, _ = p.Write(context.Background(), providers.MustLocator(key), providers.String(content), providers.WriteOptions{If: providers.Unconditional()})
			},
			Raw: func() []byte {
				content, _, _ := providers.Fetch(context.Background(), p, providers.MustLocator("plan.md"), providers.ReadOptions{})
				return content
			},
		},
		Store: s, resolve: s.Resolve, read: s.Read, write: s.Write, writeIf: s.WriteIf, list: s.List,
		exists: s.Exists, info: s.Info, mkdir: s.Mkdir, promise: func() seam.Capabilities { return seam.Capabilities{ConcurrentWriters: true} },
	}
}

func (b *broken) Resolve(parts ...string) (seam.Locator, error) { return b.resolve(parts...) }
func (b *broken) Read(ctx context.Context, l seam.Locator) (string, error) {
	return b.read(ctx, l)
}

func (b *broken) Write(ctx context.Context, l seam.Locator, content string) (seam.Locator, error) {
	return b.write(ctx, l, content)
}

func (b *broken) WriteIf(ctx context.Context, l seam.Locator, old seam.ETag, content string) (seam.Locator, error) {
	return b.writeIf(ctx, l, old, content)
}

func (b *broken) List(ctx context.Context, l seam.Locator) ([]seam.Locator, error) {
	return b.list(ctx, l)
}

func (b *broken) Exists(ctx context.Context, l seam.Locator) (bool, error) { return b.exists(ctx, l) }
func (b *broken) Info(ctx context.Context, l seam.Locator) (seam.Info, error) {
	return b.info(ctx, l)
}

func (b *broken) Mkdir(ctx context.Context, l seam.Locator) (seam.Locator, error) {
	return b.mkdir(ctx, l)
}

func (b *broken) Capabilities() seam.Capabilities { return b.promise() }

// parent is what l lies in.
func parent(l seam.Locator) seam.Locator {
	var above seam.Locator
	if parts := l.Parts(); len(parts) > 1 {
		above, _ = above.Child(parts[:len(parts)-1]...)
	}
	return above
}

// rewrites changes the content on its way in.
func rewrites(change func(string) string) func(*broken, *seam.Store) {
	return func(b *broken, s *seam.Store) {
		b.write = func(ctx context.Context, l seam.Locator, content string) (seam.Locator, error) {
			return s.Write(ctx, l, change(content))
		}
	}
}

// relists changes what a listing has.
func relists(change func(context.Context, *seam.Store, seam.Locator, []seam.Locator) []seam.Locator) func(*broken, *seam.Store) {
	return func(b *broken, s *seam.Store) {
		b.list = func(ctx context.Context, l seam.Locator) ([]seam.Locator, error) {
			children, err := s.List(ctx, l)
			return change(ctx, s, l, children), err
		}
	}
}

// retells changes what Info says.
func retells(change func(*seam.Info)) func(*broken, *seam.Store) {
	return func(b *broken, s *seam.Store) {
		b.info = func(ctx context.Context, l seam.Locator) (seam.Info, error) {
			info, err := s.Info(ctx, l)
			if err == nil {
				change(&info)
			}
			return info, err
		}
	}
}

// mistakes are backends that real bugs would make, and the checks that must notice.
var mistakes = []struct {
	name   string
	breaks func(b *broken, s *seam.Store)
	checks []string
}{
	{"resolve takes the first part alone", func(b *broken, s *seam.Store) {
		b.resolve = func(parts ...string) (seam.Locator, error) { return s.Resolve(parts[:min(1, len(parts))]...) }
	}, []string{"resolve/normalises"}},
	{"a segment that leads upwards is dropped", func(b *broken, s *seam.Store) {
		b.resolve = func(parts ...string) (seam.Locator, error) {
			return s.Resolve(strings.ReplaceAll(strings.Join(parts, "/"), "..", "."))
		}
	}, []string{"resolve/refuses"}},
	{"a bad name is something that is not there", func(b *broken, s *seam.Store) {
		b.resolve = func(parts ...string) (seam.Locator, error) {
			l, err := s.Resolve(parts...)
			if err != nil {
				err = fmt.Errorf("%w: %w", providers.ErrNotExist, err)
			}
			return l, err
		}
	}, []string{"resolve/refuses"}},
	{"write returns where it wrote first", func(b *broken, s *seam.Store) {
		b.write = func(ctx context.Context, l seam.Locator, content string) (seam.Locator, error) {
			_, err := s.Write(ctx, l, content)
			return seam.Locator{}, err
		}
	}, []string{"write/read"}},
	{"ends of lines are translated", rewrites(func(s string) string { return strings.ReplaceAll(s, "\r\n", "\n") }), []string{"write/exact"}},
	{"a byte order mark is dropped", rewrites(func(s string) string { return strings.TrimPrefix(s, "\ufeff") }), []string{"write/exact"}},
	{"the last line gets an end", rewrites(func(s string) string { return strings.TrimSuffix(s, "\n") + "\n" }), []string{"write/exact"}},
	{"a condition is not asked", func(b *broken, s *seam.Store) {
		b.writeIf = func(ctx context.Context, l seam.Locator, _ seam.ETag, content string) (seam.Locator, error) {
			return s.Write(ctx, l, content)
		}
	}, []string{"write-if/changed"}},
	{"a condition is asked long before", func(b *broken, s *seam.Store) {
		var asked atomic.Int32
		two := make(chan struct{}) // have asked, and none has written
		b.writeIf = func(ctx context.Context, l seam.Locator, old seam.ETag, content string) (seam.Locator, error) {
			now := seam.None
			if text, err := s.Read(ctx, l); err == nil {
				now = seam.ETagOf(text)
			}
			if now != old {
				return l, seam.Changed(now)
			}
			if (l.Name() == "count" || l.Name() == "repos.json") && old == seam.None {
				if asked.Add(1) == 2 {
					close(two)
				}
				<-two
			}
			return s.Write(ctx, l, content)
		}
	}, []string{"write-if/counted", "routing/counted"}},
	{"names with an underscore are hidden", func(b *broken, s *seam.Store) {
		b.read = func(ctx context.Context, l seam.Locator) (string, error) {
			if strings.HasPrefix(parent(l).Name(), "_") {
				return "", providers.ErrNotExist
			}
			return s.Read(ctx, l)
		}
		b.promise = func() seam.Capabilities { return seam.Capabilities{Sync: true} }
	}, []string{"routing/state"}},
	{"an update adds to what was there", func(b *broken, s *seam.Store) {
		b.writeIf = func(ctx context.Context, l seam.Locator, old seam.ETag, content string) (seam.Locator, error) {
			if was, err := s.Read(ctx, l); err == nil {
				content = was + content
			}
			return s.WriteIf(ctx, l, old, content)
		}
	}, []string{"routing/repos", "write-if/unchanged"}},
	{"a condition never holds", func(b *broken, s *seam.Store) {
		b.writeIf = func(_ context.Context, l seam.Locator, _ seam.ETag, _ string) (seam.Locator, error) {
			return l, providers.ErrUnavailable
		}
	}, []string{"write-if/unchanged"}},
	{"writing does not cut what was longer", func(b *broken, s *seam.Store) {
		b.write = func(ctx context.Context, l seam.Locator, content string) (seam.Locator, error) {
			if old, err := s.Read(ctx, l); err == nil && len(old) > len(content) {
				content += old[len(content):]
			}
			return s.Write(ctx, l, content)
		}
	}, []string{"write/replaces"}},
	{"a write needs its directory", func(b *broken, s *seam.Store) {
		b.write = func(ctx context.Context, l seam.Locator, content string) (seam.Locator, error) {
			if there, _ := s.Exists(ctx, parent(l)); !there {
				return seam.Locator{}, providers.ErrNotExist
			}
			return s.Write(ctx, l, content)
		}
	}, []string{"write/parents"}},
	{"a write over a directory does nothing", func(b *broken, s *seam.Store) {
		b.write = func(ctx context.Context, l seam.Locator, content string) (seam.Locator, error) {
			if info, err := s.Info(ctx, l); err == nil && info.IsDir {
				return l, nil
			}
			return s.Write(ctx, l, content)
		}
	}, []string{"write/over-directory"}},
	{"a write below a file is lost", func(b *broken, s *seam.Store) {
		b.write = func(ctx context.Context, l seam.Locator, content string) (seam.Locator, error) {
			if info, err := s.Info(ctx, parent(l)); err == nil && !info.IsDir {
				return l, nil
			}
			return s.Write(ctx, l, content)
		}
	}, []string{"write/below-file"}},
	{"what is no text is replaced", rewrites(func(s string) string { return strings.ToValidUTF8(s, "\ufffd") }), []string{"write/text"}},
	{"what is no text is found out too late", func(b *broken, s *seam.Store) {
		b.write = func(ctx context.Context, l seam.Locator, content string) (seam.Locator, error) {
			if seam.CheckText(l, content) != nil {
				s.Write(ctx, l, "")
			}
			return s.Write(ctx, l, content)
		}
	}, []string{"write/text"}},
	{"a file is half of one write and half of another", func(b *broken, s *seam.Store) {
		b.write = func(ctx context.Context, l seam.Locator, content string) (seam.Locator, error) {
			if old, err := s.Read(ctx, l); err == nil && len(old) > 1000 && old != content {
				content = content[:len(content)/2] + old[len(old)/2:]
			}
			return s.Write(ctx, l, content)
		}
	}, []string{"write/whole"}},
	{"what is absent is empty", func(b *broken, s *seam.Store) {
		b.read = func(ctx context.Context, l seam.Locator) (string, error) {
			content, err := s.Read(ctx, l)
			if errors.Is(err, providers.ErrNotExist) {
				err = nil
			}
			return content, err
		}
	}, []string{"read/absent"}},
	{"what is absent has a bad name", func(b *broken, s *seam.Store) {
		b.read = func(ctx context.Context, l seam.Locator) (string, error) {
			content, err := s.Read(ctx, l)
			if errors.Is(err, providers.ErrNotExist) {
				err = &seam.InvalidLocatorError{Key: l.Key(), Err: err}
			}
			return content, err
		}
	}, []string{"read/absent"}},
	{"a directory is read as nothing", func(b *broken, s *seam.Store) {
		b.read = func(ctx context.Context, l seam.Locator) (string, error) {
			content, err := s.Read(ctx, l)
			if errors.Is(err, providers.ErrIsDir) {
				err = providers.ErrNotExist
			}
			return content, err
		}
	}, []string{"read/directory"}},
	{"only files exist", func(b *broken, s *seam.Store) {
		b.exists = func(ctx context.Context, l seam.Locator) (bool, error) {
			info, err := s.Info(ctx, l)
			return err == nil && !info.IsDir, nil
		}
	}, []string{"exists"}},
	{"absence is an error", func(b *broken, s *seam.Store) {
		b.exists = func(ctx context.Context, l seam.Locator) (bool, error) {
			_, err := s.Info(ctx, l)
			return err == nil, err
		}
	}, []string{"exists"}},
	{"an answer is kept", func(b *broken, s *seam.Store) {
		known := map[seam.Locator]bool{}
		b.exists = func(ctx context.Context, l seam.Locator) (bool, error) {
			if was, ok := known[l]; ok {
				return was, nil
			}
			there, err := s.Exists(ctx, l)
			known[l] = there
			return there, err
		}
	}, []string{"exists"}},
	{"the size is in characters", func(b *broken, s *seam.Store) {
		b.info = func(ctx context.Context, l seam.Locator) (seam.Info, error) {
			info, err := s.Info(ctx, l)
			if content, err := s.Read(ctx, l); err == nil {
				info.Size = int64(len([]rune(content)))
			}
			return info, err
		}
	}, []string{"info/file"}},
	{"no time is told", retells(func(i *seam.Info) { i.ModTime = time.Time{} }), []string{"info/time"}},
	{"a time is how long ago that was", retells(func(i *seam.Info) { i.ModTime = time.Unix(0, -i.ModTime.UnixNano()) }), []string{"info/time"}},
	{"a directory has a size", retells(func(i *seam.Info) {
		if i.IsDir {
			i.Size = 4096
		}
	}), []string{"info/directory"}},
	{"info is of another place", retells(func(i *seam.Info) { i.Locator = parent(i.Locator) }), []string{"info/file", "info/directory"}},
	{"what is absent is described", func(b *broken, s *seam.Store) {
		b.info = func(ctx context.Context, l seam.Locator) (seam.Info, error) {
			info, err := s.Info(ctx, l)
			if errors.Is(err, providers.ErrNotExist) {
				return seam.Info{Locator: l}, nil
			}
			return info, err
		}
	}, []string{"info/absent"}},
	{"a directory is made once", func(b *broken, s *seam.Store) {
		b.mkdir = func(ctx context.Context, l seam.Locator) (seam.Locator, error) {
			if there, _ := s.Exists(ctx, l); there {
				return seam.Locator{}, providers.ErrExist
			}
			return s.Mkdir(ctx, l)
		}
	}, []string{"mkdir/idempotent"}},
	{"making a directory does nothing", func(b *broken, s *seam.Store) {
		b.mkdir = func(_ context.Context, l seam.Locator) (seam.Locator, error) { return l, nil }
	}, []string{"mkdir/idempotent", "mkdir/parents"}},
	{"a directory needs its parent", func(b *broken, s *seam.Store) {
		b.mkdir = func(ctx context.Context, l seam.Locator) (seam.Locator, error) {
			if there, _ := s.Exists(ctx, parent(l)); !there {
				return seam.Locator{}, providers.ErrNotExist
			}
			return s.Mkdir(ctx, l)
		}
	}, []string{"mkdir/parents"}},
	{"a file passes for the directory", func(b *broken, s *seam.Store) {
		b.mkdir = func(ctx context.Context, l seam.Locator) (seam.Locator, error) {
			if there, _ := s.Exists(ctx, l); there {
				return l, nil
			}
			return s.Mkdir(ctx, l)
		}
	}, []string{"mkdir/over-file"}},
	{"a listing goes all the way down", relists(func(ctx context.Context, s *seam.Store, _ seam.Locator, children []seam.Locator) []seam.Locator {
		for _, child := range children {
			below, _ := s.List(ctx, child)
			children = append(children, below...)
		}
		return children
	}), []string{"list/immediate"}},
	{"a listing is in no order", relists(func(_ context.Context, _ *seam.Store, _ seam.Locator, children []seam.Locator) []seam.Locator {
		slices.Reverse(children)
		return children
	}), []string{"list/immediate"}},
	{"a listing has names without what they are in", relists(func(_ context.Context, _ *seam.Store, _ seam.Locator, children []seam.Locator) []seam.Locator {
		for i, child := range children {
			children[i], _ = seam.ParseLocator(child.Name())
		}
		return children
	}), []string{"list/immediate"}},
	{"a dot in front hides", relists(func(_ context.Context, _ *seam.Store, _ seam.Locator, children []seam.Locator) []seam.Locator {
		return slices.DeleteFunc(children, func(l seam.Locator) bool { return strings.HasPrefix(l.Name(), ".") })
	}), []string{"list/hidden"}},
	{"a file is its own child", relists(func(ctx context.Context, s *seam.Store, l seam.Locator, children []seam.Locator) []seam.Locator {
		if info, err := s.Info(ctx, l); err == nil && !info.IsDir {
			return []seam.Locator{l}
		}
		return children
	}), []string{"list/empty"}},
	{"only what is there is listed", func(b *broken, s *seam.Store) {
		b.list = func(ctx context.Context, l seam.Locator) ([]seam.Locator, error) {
			if _, err := s.Info(ctx, l); err != nil {
				return nil, err
			}
			return s.List(ctx, l)
		}
	}, []string{"list/empty"}},
	{"a write goes on without its caller", func(b *broken, s *seam.Store) {
		b.write = func(ctx context.Context, l seam.Locator, content string) (seam.Locator, error) {
			return s.Write(context.WithoutCancel(ctx), l, content)
		}
	}, []string{"context/ended"}},
	{"promises change", func(b *broken, s *seam.Store) {
		b.promise = func() seam.Capabilities {
			children, _ := s.List(context.Background(), seam.Locator{})
			return seam.Capabilities{Sync: len(children) > 0}
		}
	}, []string{"capabilities/constant"}},
	{"all is promised, and nothing proved", func(b *broken, s *seam.Store) {
		b.promise = func() seam.Capabilities {
			return seam.Capabilities{ConcurrentWriters: true, ConflictFiles: true, Encryption: true, Sync: true}
		}
		b.Proof = Proof{}
	}, []string{"capabilities/concurrent-writers", "capabilities/conflict-files", "capabilities/encryption", "capabilities/sync"}},
	{"each process has a storage of its own", func(b *broken, s *seam.Store) {
		b.Again = func() seam.Conditional { return seam.New(memory.New(memory.Options{})) }
	}, []string{"capabilities/concurrent-writers"}},
	{"a copy of a conflict gives way to what it is a copy of", func(b *broken, s *seam.Store) {
		b.promise = func() seam.Capabilities { return seam.Capabilities{ConflictFiles: true} }
		b.list = func(ctx context.Context, l seam.Locator) ([]seam.Locator, error) {
			children, err := s.List(ctx, l)
			return slices.DeleteFunc(children, func(l seam.Locator) bool { return providers.IsConflictCopy(l.Name()) }), err
		}
	}, []string{"capabilities/conflict-files"}},
	{"what was written is believed to be there still", func(b *broken, s *seam.Store) {
		b.promise = func() seam.Capabilities { return seam.Capabilities{Sync: true} }
		written := map[seam.Locator]string{}
		b.write = func(ctx context.Context, l seam.Locator, content string) (seam.Locator, error) {
			written[l] = content
			return s.Write(ctx, l, content)
		}
		b.read = func(ctx context.Context, l seam.Locator) (string, error) { return written[l], nil }
	}, []string{"capabilities/sync"}},
	{"what is promised to be encrypted is not", func(b *broken, s *seam.Store) {
		b.promise = func() seam.Capabilities { return seam.Capabilities{Encryption: true} }
	}, []string{"capabilities/encryption"}},
}

// Each by the checks that are there for it, and no check is there for nothing.
func TestMistakesAreFound(t *testing.T) {
	needed := map[string]bool{}
	for _, m := range mistakes {
		for _, name := range m.checks {
			needed[name] = true
			i := slices.IndexFunc(Checks(), func(c Check) bool { return c.Name == name })
			assert.Must(t, i >= 0, "no check is named", name)
			failures := failures(t, Checks()[i], func(providertest.T) seam.Backend {
				b := newBroken()
				m.breaks(b, b.Store)
				return b
			})
			assert.True(t, len(failures) != 0, name, "does not notice that", m.name)
		}
	}
	for _, c := range Checks() {
		assert.True(t, needed[c.Name], "no mistake needs", c.Name)
	}
}

// A good backend passes.
func TestRun(t *testing.T) {
	Run(t, func(providertest.T) seam.Backend { return newBroken() })
}

// recorder is a T that remembers failures instead of failing.
type recorder struct {
	*testing.T
	mu       sync.Mutex // guards failures
	failures []string
}

func (r *recorder) Errorf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failures = append(r.failures, fmt.Sprintf(format, args...))
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	runtime.Goexit()
}

// failures runs a check to its end and gives what it said.
func failures(t *testing.T, c Check, new New) []string {
	r := &recorder{T: t}
	var wg sync.WaitGroup
	wg.Go(func() { c.run(r, new) })
	wg.Wait()
	return r.failures
}
