package budget

import (
	"bufio"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// memory is how many bytes this process may use: the machine's memory, or the least limit of a
// control group above it. A file that cannot be read bounds nothing. root is "/" but in tests.
func memory(root string) int64 {
	return min(installed(root), controlled(root))
}

// installed is the memory of the machine.
func installed(root string) int64 {
	for line := range lines(filepath.Join(root, "proc/meminfo")) {
		if value, ok := strings.CutPrefix(line, "MemTotal:"); ok {
			if kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64); err == nil {
				return kib << 10
			}
		}
	}
	return math.MaxInt64
}

// controlled is the least limit of the control groups of this process and of those above, of
// version 2 and of version 1. In a container the path that the kernel gives may not be visible;
// then directories above it are read.
func controlled(root string) int64 {
	least := int64(math.MaxInt64)
	for line := range lines(filepath.Join(root, "proc/self/cgroup")) {
		fields := strings.SplitN(line, ":", 3)
		if len(fields) != 3 {
			continue
		}
		mount, file := "sys/fs/cgroup", "memory.max"
		switch {
		case fields[0] == "0" && fields[1] == "":
		case slices.Contains(strings.Split(fields[1], ","), "memory"):
			mount, file = "sys/fs/cgroup/memory", "memory.limit_in_bytes"
		default:
			continue
		}
		for at := filepath.Join("/", fields[2]); ; at = filepath.Dir(at) {
			least = min(least, limitIn(filepath.Join(root, mount, at, file)))
			if at == "/" {
				break
			}
		}
	}
	return least
}

// limitIn is the number in a file: "max", and a file that cannot be read, is no limit.
func limitIn(path string) int64 {
	text, err := os.ReadFile(path)
	if err != nil {
		return math.MaxInt64
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err != nil || n <= 0 {
		return math.MaxInt64
	}
	return n
}

// lines are the lines of a file, as far as they can be read.
func lines(path string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		f, err := os.Open(path)
		if err != nil {
			return
		}
		defer f.Close()
		for s := bufio.NewScanner(f); s.Scan(); {
			if !yield(s.Text()) {
				return
			}
		}
	}
}
