package crasher

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"sync"
)

// An Op is one system call, or store into a mapping and msync, of a client.
type Op struct {
	Do   string
	A    string `json:",omitempty"` // path
	B    string `json:",omitempty"` // second path, or target of a symlink
	H    int    `json:",omitempty"` // number of the open file
	Off  int64  `json:",omitempty"`
	Len  int    `json:",omitempty"`
	Seed uint64 `json:",omitempty"` // of the bytes that are written
	Mode uint32 `json:",omitempty"`
}

func (o Op) String() string {
	return strings.TrimSpace(fmt.Sprintf("%s %s %s h%d %d+%d seed %d mode %o", o.Do, o.A, o.B, o.H, o.Off, o.Len, o.Seed, o.Mode))
}

// Bytes are what an operation writes.
// They are made once: a replay asks for them again and again. They must not be
// changed.
func (o Op) Bytes() []byte {
	type key struct {
		seed uint64
		n    int
	}
	b, ok := patterns.Load(key{o.Seed, o.Len})
	if !ok {
		b, _ = patterns.LoadOrStore(key{o.Seed, o.Len}, Pattern(o.Seed, o.Len))
	}
	return b.([]byte)
}

var patterns sync.Map

// Pattern is n bytes that a seed stands for; none of them is 0, which is what
// a disk that lost something tends to give.
func Pattern(seed uint64, n int) []byte {
	r := rand.New(rand.NewPCG(seed, 1))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(1 + r.IntN(255))
	}
	return b
}

// A Node is a file, directory or symbolic link that a client knows.
type Node struct {
	Dir    map[string]*Node // of a directory
	Target string           // of a symbolic link
	Mode   uint32
	Data   []byte

	Synced   []byte // as of the last acknowledged fsync; nil: never
	Later    []Op   // writes and truncations since
	Min, Max int    // sizes since
}

func newFile() *Node { return &Node{Mode: 0o644} }
func newDir() *Node  { return &Node{Dir: map[string]*Node{}, Mode: 0o755} }

// A Model is what a client's directory must hold.
type Model struct {
	Root *Node
	Open map[int]*Node
}

// A File is there before a client starts.
type File struct {
	Name string
	Seed uint64
	Len  int
}

// Bytes are its content.
func (f File) Bytes() []byte { return Pattern(f.Seed, f.Len) }

// NewModel is a directory with files that are there from the start.
func NewModel(files []File) *Model {
	m := &Model{Root: newDir(), Open: map[int]*Node{}}
	for _, f := range files {
		n := newFile()
		n.Data = f.Bytes()
		n.Min, n.Max = f.Len, f.Len
		m.Root.Dir[f.Name] = n
	}
	return m
}

// sync notes that a file's bytes are safe.
func (n *Node) sync() {
	n.Synced, n.Later = slices.Clone(n.Data), nil
	if n.Synced == nil {
		n.Synced = []byte{}
	}
	n.Min, n.Max = len(n.Data), len(n.Data)
}

func (m *Model) find(p string) *Node {
	n := m.Root
	for _, name := range strings.FieldsFunc(p, func(r rune) bool { return r == '/' }) {
		if n == nil {
			return nil
		}
		n = n.Dir[name]
	}
	return n
}

// place is the directory of a path, and the name in it.
func (m *Model) place(p string) (map[string]*Node, string) {
	return m.find(path.Dir("/" + p)).Dir, path.Base(p)
}

// Apply does an operation, which must be possible.
func (m *Model) Apply(o Op) {
	switch o.Do {
	case "write":
		m.Open[o.H].put(o)
	case "store":
		m.Open[o.H].put(o)
		m.Open[o.H].sync()
	case "truncate":
		m.find(o.A).put(o)
	case "fsync":
		m.Open[o.H].sync()
	case "open", "opentrunc":
		m.Open[o.H] = m.find(o.A)
		if o.Do == "opentrunc" {
			m.Open[o.H].put(Op{Do: "truncate"})
		}
	case "close":
		delete(m.Open, o.H)
	case "chmod":
		m.find(o.A).Mode = o.Mode
	case "dead":
		clear(m.Open)
	default:
		m.applyName(o)
	}
}

func (m *Model) applyName(o Op) {
	dir, name := m.place(o.A)
	switch o.Do {
	case "create":
		dir[name] = newFile()
		m.Open[o.H] = dir[name]
	case "mkdir":
		dir[name] = newDir()
	case "symlink":
		dir[name] = &Node{Target: o.B}
	case "unlink", "rmdir":
		delete(dir, name)
	case "link":
		to, other := m.place(o.B)
		to[other] = dir[name]
	case "rename":
		to, other := m.place(o.B)
		if n := dir[name]; to[other] != n { // one file under both names: nothing happens
			delete(dir, name)
			to[other] = n
		}
	case "exchange":
		to, other := m.place(o.B)
		dir[name], to[other] = to[other], dir[name]
	default:
		panic("no such operation: " + o.Do)
	}
}

// put changes the content.
func (n *Node) put(o Op) {
	switch end := int(o.Off) + o.Len; {
	case o.Do == "truncate":
		n.Data = append(n.Data[:min(len(n.Data), o.Len)], make([]byte, max(0, o.Len-len(n.Data)))...)
	default:
		if end > len(n.Data) {
			n.Data = append(n.Data, make([]byte, end-len(n.Data))...)
		}
		copy(n.Data[o.Off:], o.Bytes())
	}
	n.Later = append(n.Later, o)
	n.Min, n.Max = min(n.Min, len(n.Data)), max(n.Max, len(n.Data))
}

// Walk visits all nodes below the root, each directory before its entries.
func (m *Model) Walk(visit func(p string, n *Node)) { walk("", m.Root, visit) }

func walk(p string, n *Node, visit func(string, *Node)) {
	for _, name := range slices.Sorted(maps.Keys(n.Dir)) {
		child := n.Dir[name]
		visit(path.Join(p, name), child)
		walk(path.Join(p, name), child, visit)
	}
}
