package hostfile

import (
	"os"
	"path/filepath"
)

// Stations lists every symbolic link on the way of path, as far as it exists, and last
// the place where path leads. A link that is replaced leads to another file.
func Stations(path string) []string {
	var out []string
	at, todo := "/", split(path)
	for len(todo) > 0 {
		name := todo[0]
		todo = todo[1:]
		next := filepath.Join(at, name) // ".." too: at has no links
		target, err := os.Readlink(next)
		if err != nil || len(out) >= maxStations {
			at = next
			continue
		}
		out = append(out, next)
		if filepath.IsAbs(target) {
			at = "/"
		}
		todo = append(split(target), todo...)
	}
	return append(out, at)
}

// maxStations is how many links the kernel follows.
const maxStations = 40
