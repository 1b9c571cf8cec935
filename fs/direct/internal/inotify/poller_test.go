package inotify

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The runtime's poller must not know the watch: the kernel would wake a thread
// of it for every event, while no goroutine waits for one.
func TestWatchIsNotInTheRuntimesPoller(t *testing.T) {
	w, _ := watchTree(t, Options{})
	fds, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		t.Fatal(err)
	}
	line := fmt.Sprintf("tfd: %8d ", w.queue.fd)
	for _, fd := range fds {
		if to, _ := os.Readlink(fd); to != "anon_inode:[eventpoll]" {
			continue
		}
		info, err := os.ReadFile("/proc/self/fdinfo/" + filepath.Base(fd))
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(info), line) {
			t.Errorf("the watch is in %s:\n%s", fd, info)
		}
	}
}
