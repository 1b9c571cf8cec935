package harness

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// leftovers lists what a run left behind, and removes it.
func leftovers(before map[string]bool) []string {
	var found []string
	for _, dir := range mountsBelow(root) {
		found = append(found, "mount "+dir)
		_ = syscall.Unmount(dir, syscall.MNT_DETACH)
	}
	for _, pid := range daemons() {
		found = append(found, fmt.Sprintf("process %d %s", pid, commandLine(pid)))
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

// mountsBelow lists the mount points below a directory, the innermost first.
func mountsBelow(dir string) []string {
	table, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return []string{err.Error()}
	}
	var found []string
	for line := range strings.Lines(string(table)) {
		fields := strings.Fields(line)
		if len(fields) > 4 && strings.HasPrefix(fields[4], dir+"/") {
			found = append([]string{fields[4]}, found...)
		}
	}
	return found
}

// daemons lists the processes that still run the program under test. One that
// is about to end gets a moment.
func daemons() []int {
	for end := time.Now().Add(Hangs); ; time.Sleep(20 * time.Millisecond) {
		pids := running()
		if len(pids) == 0 || time.Now().After(end) {
			return pids
		}
	}
}

// running lists those of this run: another run beside it may use the same program.
func running() []int {
	return slices.DeleteFunc(processesOf(root), func(pid int) bool {
		exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
		exe = strings.TrimSuffix(exe, " (deleted)")
		return err != nil || exe != Binary() && exe != asker()
	})
}

// processesOf lists the processes that a run with a root has started, with their
// children: its name stands in what they run, were told, or have in their environment.
func processesOf(root string) (pids []int) {
	all, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range all {
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil || pid == os.Getpid() {
			continue
		}
		exe, _ := os.Readlink(dir + "/exe") // of what has ended meanwhile there is nothing
		if strings.HasPrefix(exe, root+"/") || strings.Contains(commandLine(pid)+environment(pid), root+"/") {
			pids = append(pids, pid)
		}
	}
	return pids
}

// environment is empty of a process that may not be asked.
func environment(pid int) string {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	return string(b)
}

func commandLine(pid int) string {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return strings.ReplaceAll(strings.TrimRight(string(b), "\x00"), "\x00", " ")
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
