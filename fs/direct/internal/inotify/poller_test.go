package inotify

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
)

// The runtime's poller must not know the watch: the kernel would wake a thread
// of it for every event, while no goroutine waits for one.
func TestWatchIsNotInTheRuntimesPoller(t *testing.T) {
	w, _ := watchTree(t, Options{})
	fds, err := filepath.Glob("/proc/self/fd/*")
	assert.OK(t, err)
	line := fmt.Sprintf("tfd: %8d ", w.queue.fd)
	for _, fd := range fds {
		if to, _ := os.Readlink(fd); to != "anon_inode:[eventpoll]" {
			continue
		}
		info, err := os.ReadFile("/proc/self/fdinfo/" + filepath.Base(fd))
		assert.OK(t, err)
		assert.False(t, strings.Contains(string(info), line), "the watch is in", fd, info)
	}
}
