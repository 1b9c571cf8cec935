package reconcile

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/wsmount/wsmount/integration/tier"
	"github.com/wsmount/wsmount/providers"
)

// Two hosts change trees on one remote, at random, and bring each other's changes together
// by what is decided. No word that a program wrote is lost unless a program took it away,
// at no time, and in the end all three trees are the same.
func TestTrees(t *testing.T) {
	enough, seed := tier.Pick(10_000, 1_000_000), tier.Seed(t)
	newWorld(t, 10939167093790518986).run() // a directory is put aside with what is held back in it
	for made := 0; made < enough && !t.Failed(); seed++ {
		made += newWorld(t, seed).run()
	}
}

// A world is a remote and its hosts. Content is words; each is written once.
type world struct {
	t         *testing.T
	seed      uint64
	rand      *rand.Rand
	conflict  Conflict
	remote    map[string]object
	hosts     []*host
	kept      map[string]bool // words in a history
	taken     map[string]bool // that a program has removed or overwritten, or a person given up
	last      int
	decisions int
	log       []string
}

type object struct {
	Entry
	text words
}

// A host has a tree of its own.
type host struct {
	*world
	name  string
	local map[string]*node
	base  map[string]known
	held  map[string]*Entry
}

// A node is an inode. What is missing of it is at the remote, as part of its version there.
type node struct {
	id, content int // number of the state of the content
	dir         bool
	here        words
	missing     words
	fetched     bool
	origin      int // state that the missing words are of
}

func (n *node) text() words { return n.here.and(n.missing) }

type known struct {
	Entry
	text        words
	id, content int
}

type words []string

func (w words) and(o words) words {
	all := append(slices.Clone(w), o...)
	slices.Sort(all)
	return slices.Compact(all)
}

func (w words) has(o words) bool {
	return !slices.ContainsFunc(o, func(word string) bool { return !slices.Contains(w, word) })
}

func newWorld(t *testing.T, seed uint64) *world {
	w := &world{t: t, seed: seed, rand: rand.New(rand.NewPCG(seed, 0)), remote: map[string]object{}, kept: map[string]bool{}, taken: map[string]bool{}}
	w.conflict = Conflict(w.rand.IntN(int(Markers) + 1))
	for _, name := range []string{"a", "b"} {
		w.hosts = append(w.hosts, &host{world: w, name: name, local: map[string]*node{}, base: map[string]known{}, held: map[string]*Entry{}})
	}
	return w
}

// run is one history, and how many decisions it took.
func (w *world) run() int {
	for range 40 {
		h := w.hosts[w.rand.IntN(2)]
		switch w.rand.IntN(8) {
		case 0:
			h.pull()
		case 1:
			h.push()
		default:
			h.program()
		}
	}
	for round := 0; ; round++ {
		before := w.state()
		for _, h := range w.hosts {
			h.pull()
			h.push()
		}
		if w.state() != before {
			w.require(round < 20, "the trees do not come to rest")
			continue
		}
		if !w.resolve() {
			break
		}
	}
	for _, h := range w.hosts {
		w.require(h.tree() == w.tree(), "host %s differs:\n%s\nthe remote:\n%s", h.name, h.tree(), w.tree())
	}
	return w.decisions
}

func (w *world) require(holds bool, format string, args ...any) {
	w.t.Helper()
	if !holds {
		w.t.Fatalf("seed %d, policy %d: %s\n%s", w.seed, w.conflict, fmt.Sprintf(format, args...), strings.Join(w.log, "\n"))
	}
}

func (w *world) note(format string, args ...any) { w.log = append(w.log, fmt.Sprintf(format, args...)) }

func (w *world) number() int { w.last++; return w.last }

func (w *world) take(text words) {
	for _, word := range text {
		w.taken[word] = true
	}
}

// nothingLost checks that each word is somewhere.
func (w *world) nothingLost() {
	w.t.Helper()
	there := maps.Clone(w.kept)
	for _, o := range w.remote {
		for _, word := range o.text {
			there[word] = true
		}
	}
	for _, h := range w.hosts {
		for _, n := range h.local {
			for _, word := range n.here {
				there[word] = true
			}
		}
	}
	for i := range w.last + 1 {
		word := fmt.Sprint("w", i)
		w.require(there[word] || w.taken[word] || !w.written(word), "%s is lost", word)
	}
}

// written reports whether a number is that of a word.
func (w *world) written(word string) bool { _, ok := w.taken[word]; return ok }

func (w *world) tree() string {
	var all []string
	for at, o := range w.remote {
		all = append(all, line(at, o.Kind == aDir, o.text))
	}
	slices.Sort(all)
	return strings.Join(all, "\n")
}

func (h *host) tree() string {
	var all []string
	for at, n := range h.local {
		all = append(all, line(at, n.dir, n.text()))
	}
	slices.Sort(all)
	return strings.Join(all, "\n")
}

func line(at string, dir bool, text words) string {
	if dir {
		return at + "/"
	}
	return at + ": " + strings.Join(text, " ")
}

func (w *world) state() string {
	all := w.tree()
	for _, h := range w.hosts {
		all += "\n\n" + h.tree() + fmt.Sprint(len(h.held))
	}
	return all
}

// resolve ends conflicts that are held as a person might, and says whether there were some.
func (w *world) resolve() (any bool) {
	for _, h := range w.hosts {
		for _, at := range slices.Sorted(maps.Keys(h.held)) {
			any = true
			w.note("%s gives up %s", h.name, at)
			w.take(h.local[at].here)
			delete(h.held, at)
			h.set(at, h.fresh(w.remote[at]))
		}
	}
	return any
}

// below are the paths under a directory, without it.
func below[T any](tree map[string]T, dir string) (all []string) {
	for at := range tree {
		if strings.HasPrefix(at, dir+"/") {
			all = append(all, at)
		}
	}
	slices.Sort(all)
	return all
}

// program changes something, as a program on the host does.
func (h *host) program() {
	names := []string{"d", "e", "f", "g.txt"}
	at := names[h.rand.IntN(4)]
	if h.rand.IntN(2) == 0 {
		at += "/" + names[h.rand.IntN(4)]
	}
	n, parent := h.local[at], h.local[path.Dir(at)]
	if len(h.held) > 0 && h.rand.IntN(2) == 0 || path.Dir(at) != "." && (parent == nil || !parent.dir) {
		return
	}
	for held := range h.held {
		if held == at || strings.HasPrefix(held, at+"/") {
			return
		}
	}
	switch did := h.rand.IntN(12); {
	case n == nil && did < 3 && !strings.Contains(at, "/"):
		h.note("%s: mkdir %s", h.name, at)
		h.local[at] = &node{id: h.number(), dir: true}
	case n == nil:
		h.local[at] = &node{id: h.number(), fetched: true}
		h.write(at, false)
	case did < 2:
		h.note("%s: rm %s", h.name, at)
		h.drop(at)
	case did < 4:
		h.rename(at, names[h.rand.IntN(4)])
	case n.dir:
	case did < 6:
		h.note("%s: read %s", h.name, at)
		h.fetch(n)
	case did < 7:
		h.note("%s: touch remote %s", h.name, at)
		if o, ok := h.remote[at]; ok && o.Kind == aFile { // by a third writer
			o.Version.Modified = int64(h.number())
			h.remote[at] = o
		}
	default:
		h.write(at, did < 10)
	}
	h.nothingLost()
}

// write appends a word, or puts it in place of all.
func (h *host) write(at string, appends bool) {
	n, word := h.local[at], fmt.Sprint("w", h.number())
	h.note("%s: write %s to %s, %v", h.name, word, at, appends)
	h.taken[word] = false
	if !appends {
		h.take(n.text())
		n.here, n.missing, n.fetched = nil, nil, true
	}
	n.here = n.here.and(words{word})
	n.content++
}

// drop removes what a program has seen.
func (h *host) drop(at string) {
	for _, p := range append(below(h.local, at), at) {
		h.take(h.local[p].text())
		delete(h.local, p)
	}
}

func (h *host) rename(from, to string) {
	n, old := h.local[from], h.local[to]
	if to == from || strings.HasPrefix(to, from+"/") || strings.HasPrefix(from, to+"/") || h.held[to] != nil || old != nil && (old.dir || n.dir) {
		return
	}
	h.note("%s: mv %s %s", h.name, from, to)
	if old != nil {
		h.drop(to)
	}
	h.move(from, to)
}

// move takes along what is held back below a directory.
func (h *host) move(from, to string) {
	for _, p := range append(below(h.local, from), from) {
		now := to + strings.TrimPrefix(p, from)
		h.local[now] = h.local[p]
		delete(h.local, p)
		if held := h.held[p]; held != nil {
			h.held[now] = held
			delete(h.held, p)
		}
	}
}

// fetch brings what is missing of a file, and says whether that was possible.
func (h *host) fetch(n *node) bool {
	if n.dir || n.fetched {
		return true
	}
	for at, b := range h.base {
		if b.id == n.id && b.content == n.origin && h.remote[at].Version.ETag == b.Version.ETag {
			n.here, n.missing, n.fetched = n.text(), nil, true
			return true
		}
	}
	return false
}

// fresh is an inode for what the remote has.
func (h *host) fresh(o object) *node {
	return &node{id: h.number(), dir: o.Kind == aDir, missing: o.text, content: 1, origin: 1}
}

// set gives a path an inode that is as the remote has it.
func (h *host) set(at string, n *node) {
	h.local[at] = n
	h.setBase(at, n)
}

// setBase notes that the remote has a path, as n is; nil: as no inode is.
func (h *host) setBase(at string, n *node) {
	b := known{Entry: h.remote[at].Entry, text: h.remote[at].text}
	if n != nil {
		b.id, b.content = n.id, n.content
	}
	h.swapBase(at, b)
}

func (h *host) swapBase(at string, b known) {
	was := h.base[at].id
	delete(h.held, at)
	if h.base[at] = b; b.Kind == None {
		delete(h.base, at)
	}
	if was != b.id {
		h.remains(was)
	}
}

// remains deals with an inode that lost a name of the remote.
func (h *host) remains(id int) {
	r := Remains{}
	for _, b := range h.base {
		r.Remote = r.Remote || b.id == id
	}
	for _, at := range slices.Sorted(maps.Keys(h.local)) {
		n := h.local[at]
		if n.id != id {
			continue
		}
		r.Local, r.Complete, r.Modified = true, n.dir || n.fetched, len(n.here) > 0
		if DecideRemains(r).Do == Delete {
			delete(h.local, at)
		}
	}
}

// push sends what differs, each on condition that the remote has what is known.
func (h *host) push() {
	h.note("%s: push", h.name)
	for _, at := range slices.Backward(slices.Sorted(maps.Keys(h.base))) {
		b, n := h.base[at], h.local[at]
		gone := n == nil || n.dir != (b.Kind == aDir)
		if !gone || !h.asKnown(at) || h.held[at] != nil || len(below(h.remote, at)) > 0 {
			continue
		}
		h.fetchMoved(b.id)
		delete(h.remote, at)
		h.swapBase(at, known{})
	}
	for _, at := range slices.Sorted(maps.Keys(h.local)) {
		n, b := h.local[at], h.base[at]
		if n == nil {
			continue // what was missing of it has gone with another
		}
		above, ok := h.remote[path.Dir(at)]
		same := b.Kind != None && b.id == n.id && (n.dir || b.content == n.content)
		if same || !h.asKnown(at) || h.held[at] != nil || path.Dir(at) != "." && (!ok || above.Kind != aDir) || b.Kind == aDir {
			continue
		}
		if !h.fetch(n) { // a part is gone, and this is what is left
			n.missing, n.fetched = nil, true
		}
		o := object{Entry{Kind: aFile, Version: providers.Version{ETag: fmt.Sprint(h.number()), Size: 1, Modified: 1}}, n.here}
		if n.dir {
			o = object{Entry: Entry{Kind: aDir}}
		}
		h.fetchMoved(b.id)
		h.remote[at] = o
		h.setBase(at, n)
	}
	h.nothingLost()
}

// fetchMoved brings what the remote has of an inode that was moved, before that goes.
func (h *host) fetchMoved(id int) {
	for _, n := range h.local {
		if n.id == id {
			h.fetch(n)
		}
	}
}

// asKnown reports whether the remote has at a path what it was known to have.
func (h *host) asKnown(at string) bool {
	b, r := h.base[at], h.remote[at]
	return b.Kind == r.Kind && (b.Kind != aFile || b.Version.Matches(r.Version))
}

// pull brings what others changed.
func (h *host) pull() {
	h.note("%s: pull", h.name)
	all := maps.Clone(h.base)
	for at := range h.remote {
		all[at] = known{}
	}
	for _, at := range slices.Sorted(maps.Keys(all)) {
		h.name1(at)
		h.nothingLost()
	}
}

// name1 decides about one path.
func (h *host) name1(at string) {
	o := h.remote[at]
	var found Local
	base, policy := Base{}, Policy{Conflict: h.conflict, EmptyDirs: true, DirAttrs: true}
	for steps := 0; ; steps++ {
		h.require(steps < 9, "%s: no end", at)
		base = h.sideOf(at, base.Decided)
		a := Decide(base, h.localSide(at, found), o.Entry, policy)
		h.decisions++
		if a.Do != Nothing {
			h.note("\t%s: %s %s", h.name, at, a.Do)
		}
		switch a.Do {
		case Compare:
			found.Content = h.compare(h.local[at], o)
		case MergeText:
			found.Text = Apart
			if text := h.base[at].text; h.base[at].Kind == aFile && h.local[at].here.has(text) && o.text.has(text) {
				found.Text = Merged
			}
		case KeepRemote:
			for _, word := range o.text {
				h.kept[word] = true
			}
			policy.Kept = Kept
		case Descend, Vacate:
			for _, p := range below(h.base, at) {
				if path.Dir(p) == at {
					h.name1(p)
				}
			}
			if base.Decided = true; a.Do == Vacate {
				h.swapBase(at, known{})
			}
		default:
			h.require(a.Do.Ends(), "%s is no answer here", a.Do)
			h.end(at, a.Do, o)
			return
		}
	}
}

func (h *host) sideOf(at string, decided bool) Base {
	b := h.base[at]
	base := Base{Entry: b.Entry, Held: h.held[at], Decided: decided}
	for p, n := range h.local {
		if n.id == b.id && h.base[p].id != b.id && b.Kind == aFile && h.local[at] == nil {
			if base.Moved = RenamedAndModified; n.content == b.content {
				base.Moved = Renamed
			}
		}
	}
	return base
}

func (h *host) localSide(at string, l Local) Local {
	n, b := h.local[at], h.base[at]
	if n == nil {
		return Local{}
	}
	l.Another, l.Modified = b.id != n.id, n.content != b.content
	for p, other := range h.base {
		l.Elsewhere = l.Elsewhere || p != at && other.id == n.id
		l.Origin = l.Origin || p != at && other.id == n.id && other.content == n.content
	}
	if l.Kind = aFile; n.dir {
		l.Kind, l.Full, l.Modified = aDir, len(below(h.local, at)) > 0, false
	}
	l.Partial, l.Unseen = !n.fetched && len(n.here) > 0, !n.fetched && len(n.here) == 0
	return l
}

func (h *host) compare(n *node, o object) Content {
	switch {
	case !h.fetch(n):
		return Gone
	case slices.Equal(n.here, o.text):
		return Equal
	}
	return Differs
}

// end carries out what ends a decision.
func (h *host) end(at string, do Do, o object) {
	n := h.local[at]
	switch do {
	case Nothing:
	case TakeAttrs, Refresh:
		b := h.base[at]
		b.Entry = o.Entry
		h.swapBase(at, b)
	case Keep, Forget:
		h.swapBase(at, known{})
	case Delete:
		h.require(len(below(h.local, at)) == 0, "%s is not empty", at)
		delete(h.local, at)
		h.swapBase(at, known{})
	case Adopt, Join:
		h.setBase(at, n)
	case Arrive:
		h.arrive(at, o)
	case Replace, Renew:
		h.set(at, h.fresh(o))
	case Supplant:
		delete(h.local, at)
		h.arrive(at, o)
	case Aside, SplitUp:
		h.aside(at)
		h.arrive(at, o)
	case Salvage:
		n.missing, n.fetched = nil, true
		h.aside(at)
		h.arrive(at, o)
	case Follow:
		to := h.fresh(o)
		for _, p := range slices.Sorted(maps.Keys(h.local)) {
			if h.local[p].id == h.base[at].id {
				h.local[p] = to
			}
		}
		h.setBase(at, to)
	case Unite:
		n.here, n.content = n.here.and(o.text), n.content+1
		h.setBase(at, nil)
	case Overwrite:
		h.setBase(at, nil)
	case Hold:
		h.held[at] = &o.Entry
	default:
		h.require(false, "%s is not expected", do)
	}
}

// arrive gives a free path to what the remote has, and brings back directories above it
// that were removed.
func (h *host) arrive(at string, o object) {
	if dir := path.Dir(at); dir != "." {
		n := h.local[dir]
		if n != nil && !n.dir {
			h.aside(dir)
			n = nil
		}
		if n == nil {
			n = h.fresh(h.remote[dir])
		}
		if n.id != h.base[dir].id {
			h.set(dir, n)
		}
	}
	h.set(at, h.fresh(o))
}

// aside gives what has a path the name of a conflict copy.
func (h *host) aside(at string) {
	n, hash := h.local[at], EmptyHash
	if !n.dir {
		h.fetch(n)
		sum := sha256.Sum256([]byte(strings.Join(n.here, " ")))
		hash = hex.EncodeToString(sum[:])
	}
	for name := range CopyNames(path.Base(at), hash) {
		to := path.Join(path.Dir(at), name)
		switch there := h.local[to]; {
		case there == nil:
			h.move(at, to)
			return
		case !n.dir && !there.dir && h.fetch(there) && slices.Equal(there.here, n.here):
			delete(h.local, at)
			return
		}
	}
}
