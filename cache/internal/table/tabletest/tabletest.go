// Package tabletest helps the tests of packages that keep records in a table.
package tabletest

import (
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/integration/assert"
)

// AfterPowerLoss is the table in a directory of a disk as a loss of power would leave it now:
// with the synced bytes and nothing else. It is closed with the test.
func AfterPowerLoss(t testing.TB, disk *vfs.MemFS, dir string) *table.Table {
	t.Helper()
	tab := assert.Of(table.Open(dir, table.Options{FS: disk.CrashClone(vfs.CrashCloneCfg{}), Strict: true})).OK(t)
	t.Cleanup(func() { assert.OK(t, tab.Close()) })
	return tab
}
