package memory

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/wsmount/wsmount/providers"
)

// Tamper puts content at l as another program would: unconditionally, without operation id,
// attributes, hook, switches or regard for Close. A nil content removes the entry, with all
// below it.
func (p *Provider) Tamper(l providers.Locator, content []byte) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.tree.tamper(&p.mint, l, content)
}

// TamperMkdir is Tamper for a directory without entries.
func (p *Provider) TamperMkdir(l providers.Locator) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.tree.put(l, p.mint.dir(providers.Attr{}, nil))
}

func (t *tree) tamper(m *mint, l providers.Locator, content []byte) error {
	if content == nil {
		m.tick()
		t.remove(l)
		return nil
	}
	return t.put(l, m.file(bytes.Clone(content), providers.WriteOptions{}))
}

// Dump is the tree as text, a line for each entry, sorted by Locator: two trees
// that a program cannot tell apart have the same dump. Versions and times are
// not in it.
//
//	"dir" dir
//	"dir/file" file 5 sha256:2cf24dba5fb0a30e mode=640 owner=1:2 colour="red"
//	"link" symlink "dir/file"
func (p *Provider) Dump() []string {
	p.mu.Lock()
	root := p.tree.root
	p.mu.Unlock()
	return dump(root)
}

func dump(root *node) []string {
	var lines []string
	s := scan{recursive: true, limit: -1, visit: func(l providers.Locator, n *node) {
		lines = append(lines, n.line(l))
	}}
	s.walk(root, providers.Locator{}, nil)
	return lines
}

// line describes n for a person and for comparison.
func (n *node) line(l providers.Locator) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%q %s", l.String(), n.kind)
	switch n.kind {
	case providers.KindSymlink:
		fmt.Fprintf(&b, " %q", n.content)
	case providers.KindFile:
		fmt.Fprintf(&b, " %d sha256:%.8x", len(n.content), sha256.Sum256(n.content))
	}
	if n.attr.Valid&(providers.AttrMode|providers.AttrExec) != 0 {
		fmt.Fprintf(&b, " mode=%o", n.attr.Mode)
	}
	if n.attr.Valid.Has(providers.AttrOwner) {
		fmt.Fprintf(&b, " owner=%d:%d", n.attr.UID, n.attr.GID)
	}
	for _, key := range slices.Sorted(maps.Keys(n.metadata)) {
		fmt.Fprintf(&b, " %s=%q", key, n.metadata[key])
	}
	return b.String()
}
