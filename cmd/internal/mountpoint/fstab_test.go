package mountpoint

import (
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
)

func TestFstabOption(t *testing.T) {
	fstab := "# /mnt/a\n/dev/vda / ext4 state-dir=/no 0 1\n@a/b /mnt/a wsmount ro,state-dir=/s/a 0 0\n\n" +
		"@a/c /mnt/my\\040c/ fuse.wsmount state_dir=/s/my\\040c\n@a/d /mnt/d wsmount ro 0 0\n@a/e /mnt/e\n"
	for dir, want := range map[string]string{"/mnt/a": "/s/a", "/mnt/a/": "/s/a", "/mnt/my c": "/s/my c", "/mnt/d": "", "/mnt/e": "", "/": ""} {
		assert.Equal(t, FstabOption(fstab, dir, "state-dir"), want, dir)
	}
}
