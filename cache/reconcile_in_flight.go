package cache

import "github.com/wsmount/wsmount/cache/internal/table"

// What a change of ours is under way for, the backend may show as it was or as
// it will be. It is left to the engine, which finds out.

// skipInFlight reports whether a change of ours of this name is under way: the engine
// finds out what became of it.
func (m *merge) skipInFlight(v *Tx, l table.Link, rec *table.Name) bool {
	if m.mine != nil {
		if outdated, _ := v.IsOutdated(m.mine, l); outdated {
			return true
		}
	}
	if m.late[l] {
		rec.Attempt = nil
		return false
	}
	return v.Attempted(*rec, m.late)
}
