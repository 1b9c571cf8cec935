package harness

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/testrun"
)

// leftovers lists what a run left behind, and removes it.
func leftovers(before map[string]bool) []string {
	var found []string
	for _, dir := range testrun.MountsBelow(root) {
		found = append(found, "mount "+dir)
		_ = syscall.Unmount(dir, syscall.MNT_DETACH)
	}
	for _, pid := range daemons() {
		found = append(found, fmt.Sprintf("process %d %s", pid, testrun.CommandLine(pid)))
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	for fd := range descriptors() {
		if !before[fd] && strings.Contains(fd, root) {
			found = append(found, "descriptor "+fd)
		}
	}
	races, _ := filepath.Glob(filepath.Join(root, "race.*"))
	for _, file := range races {
		report, _ := os.ReadFile(file)
		found = append(found, "data race\n"+string(report))
	}
	return found
}

// daemons lists the processes that still run the program under test. One that
// is about to end gets a moment.
func daemons() (pids []int) {
	assert.Await(func() bool {
		pids = running()
		return len(pids) == 0
	})
	return pids
}

// running lists those of this run: another run beside it may use the same program.
func running() []int {
	return slices.DeleteFunc(testrun.ProcessesOf(root), func(pid int) bool {
		exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
		exe = strings.TrimSuffix(exe, " (deleted)")
		return err != nil || exe != program && exe != asker
	})
}

// descriptors lists what this process has open, as "number path".
func descriptors() map[string]bool {
	open := map[string]bool{}
	links, _ := filepath.Glob("/proc/self/fd/*")
	for _, link := range links {
		if target, err := os.Readlink(link); err == nil {
			open[filepath.Base(link)+" "+target] = true
		}
	}
	return open
}
