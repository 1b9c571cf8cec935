package memory

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"time"

	"github.com/wsmount/wsmount/providers"
)

// mint makes nodes, with versions, and keeps those of the given attributes that the store
// promises. Its user guards it by a lock.
type mint struct {
	now           func() time.Time
	caps          providers.Capabilities
	noDigest      bool
	attrsMoveETag bool
	changes       int64 // number of changes so far; ETags and revisions count it
	last          int64 // the newest Version.Modified
}

// tick is a new time of change, later than all before.
func (m *mint) tick() int64 {
	m.changes++
	m.last = max(m.last+1, m.now().UnixNano())
	return m.last
}

// file is the node of new content.
func (m *mint) file(content []byte, opts providers.WriteOptions) *node {
	modified := m.tick()
	sum := sha256.Sum256(content)
	n := &node{kind: providers.KindFile, content: content, op: m.op(opts.Op), metadata: m.metadata(opts.Metadata)}
	if opts.Kind == providers.KindSymlink {
		n.kind = opts.Kind
	}
	n.attr = m.keep(n.kind, opts.Attr)
	n.version = providers.Version{ETag: fmt.Sprintf("m%d", m.changes), Modified: modified, Size: int64(len(content))}
	if !m.caps.UniqueVersions {
		n.version.ETag, n.version.Modified = hex.EncodeToString(sum[:8]), 0
	}
	if !m.noDigest {
		n.sum = &sum
	}
	return n.marked(m)
}

// marked adds kind and mode to a version that has no time: a git entry includes them.
func (n *node) marked(m *mint) *node {
	if !n.isDir() && m.caps.Attributes.Has(providers.AttrExec) {
		n.version.ETag = fmt.Sprintf("%.16s-%s-%o", n.version.ETag, n.kind, n.attr.Mode)
	}
	return n
}

// dir is the node of a new directory.
func (m *mint) dir(attr providers.Attr, metadata map[string]string) *node {
	m.tick()
	return &node{kind: providers.KindDir, attr: m.keep(providers.KindDir, attr), metadata: m.metadata(metadata)}
}

// changed is n with other attributes, and other metadata unless they are nil.
func (m *mint) changed(n *node, attr providers.Attr, metadata map[string]string, op string) *node {
	changed := *n
	modified := m.tick()
	changed.op, changed.implied = m.op(op), false
	changed.attr = m.keep(n.kind, n.attr.Merge(attr))
	if metadata != nil {
		changed.metadata = m.metadata(metadata)
	}
	if !n.isDir() && m.caps.UniqueVersions {
		changed.version.Modified = modified
	}
	if !n.isDir() && m.attrsMoveETag {
		changed.version.ETag = fmt.Sprintf("m%d", m.changes)
	}
	return changed.marked(m)
}

// keep is the part of the attributes that the store keeps.
func (m *mint) keep(kind providers.Kind, attr providers.Attr) providers.Attr {
	set := m.caps.Attributes
	if kind != providers.KindFile {
		set &^= providers.AttrExec
	}
	return attr.Keep(set)
}

func (m *mint) metadata(given map[string]string) map[string]string {
	if !m.caps.Metadata {
		return nil
	}
	return maps.Clone(given)
}

func (m *mint) op(given string) string {
	if !m.caps.OperationIDs {
		return ""
	}
	return given
}
