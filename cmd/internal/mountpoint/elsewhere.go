package mountpoint

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// Shows reports whether the mount seen at path is the one of wsmount with this
// device number; with "", any mount of wsmount.
func (t Table) Shows(path, dev string) bool {
	m, ok := t.At(path)
	return ok && m.Ours() && (dev == "" || m.Dev == dev)
}

// maxElsewhere bounds how many processes Elsewhere names.
const maxElsewhere = 8

// Elsewhere finds the processes in whose mount namespace a file system is
// mounted, where that is not this process's own: a namespace gets a copy of every
// mount when it is made (mount_namespaces(7)), and a file system lives as long as
// one of them. It reads /proc only; processes of others are seen only by root.
func Elsewhere(dev string) []Holder {
	own, err := os.Readlink("/proc/self/ns/mnt")
	dirs, err2 := filepath.Glob("/proc/[0-9]*")
	if err != nil || err2 != nil || dev == "" {
		return nil
	}
	paths := map[string]string{own: ""} // where each namespace has it
	var found []Holder
	for _, dir := range dirs {
		space, err := os.Readlink(dir + "/ns/mnt")
		if err != nil {
			continue
		}
		path, known := paths[space]
		if !known {
			path = pathOf(dir, dev)
			paths[space] = path
		}
		if path != "" {
			pid, _ := strconv.Atoi(filepath.Base(dir))
			found = append(found, Holder{PID: pid, Name: commandName(dir), Uses: []string{"its mount namespace has it at " + path}})
		}
	}
	slices.SortFunc(found, func(a, b Holder) int { return a.PID - b.PID })
	return found[:min(len(found), maxElsewhere)]
}

// pathOf is where a process has a file system mounted; "" is nowhere.
func pathOf(dir, dev string) string {
	for _, m := range tableOf(dir) {
		if m.Dev == dev {
			return m.Path
		}
	}
	return ""
}

// tableOf is the mount table of a process; empty where this one may not look.
func tableOf(dir string) Table {
	f, err := os.Open(dir + "/mountinfo")
	if err != nil {
		return nil
	}
	defer f.Close()
	table, _ := parseTable(f)
	return table
}

// Names lists holders as "sleep (pid 7), sh (pid 9)".
func Names(holders []Holder) (text string) {
	for i, h := range holders {
		if i > 0 {
			text += ", "
		}
		text += fmt.Sprintf("%s (pid %d)", strings.Map(printable, h.Name), h.PID)
	}
	return text
}

// printable keeps the name that a process gives itself from steering a terminal.
func printable(r rune) rune {
	if unicode.IsPrint(r) {
		return r
	}
	return '?'
}
