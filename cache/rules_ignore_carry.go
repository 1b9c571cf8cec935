package cache

import "github.com/wsmount/wsmount/cache/internal/rules"

// snapshotCarriers are the carriers of this moment.
func (v *Volume) snapshotCarriers() rules.Carriers {
	was := v.takeSnapshot(false)
	defer was.end()
	c, _ := rules.CarriersOf(was)
	return c
}
