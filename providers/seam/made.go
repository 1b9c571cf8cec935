package seam

import (
	"sync"
	"time"

	"github.com/wsmount/wsmount/providers"
)

// madeDirs are directories that were made where the provider has none without entries,
// as in git. A nil *madeDirs has none.
type madeDirs struct {
	mu  sync.Mutex // guards all
	all map[providers.Locator]time.Time
}

// add remembers l and its parents.
func (m *madeDirs) add(l providers.Locator) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.all == nil {
		m.all = map[providers.Locator]time.Time{}
	}
	now := time.Now()
	for ; !l.IsRoot(); l = l.Parent() {
		if _, ok := m.all[l]; !ok {
			m.all[l] = now
		}
	}
}

func (m *madeDirs) at(l providers.Locator) (providers.Info, bool) {
	if m == nil {
		return providers.Info{}, false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	when, ok := m.all[l]
	attr := providers.Attr{Valid: providers.AttrModTime, ModTime: when}
	return providers.Info{Locator: l, Kind: providers.KindDir, Attr: attr}, ok
}

func (m *madeDirs) names(l providers.Locator) []string {
	if m == nil {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	var names []string
	for at := range m.all {
		if at.Parent() == l {
			names = append(names, at.Name())
		}
	}
	return names
}
