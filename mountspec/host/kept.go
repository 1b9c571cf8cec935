package host

import (
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/mountspec/host/hostfile"
	"github.com/wsmount/wsmount/mountspec/host/memo"
	"github.com/wsmount/wsmount/mountspec/host/registry"
)

// A keptPlaces is where the workspaces of the configuration keep their bytes, as their
// manifests said when they were last read. It spares a mount reading every manifest of
// the host to compare its own place with those of the others, and is used for nothing
// else: what is mounted is read anew, and so is what a mount would be refused for.
//
// The file lies in the state directory, which no mount shows. Whoever can write it can write
// the configuration. One that another configuration or program made is passed over.
type keptPlaces struct {
	path    string
	world   string // digest of all besides the manifests that decides about a place
	began   time.Time
	places  map[string]keptPlace // by address
	changed bool
}

// A keptPlace is that of one workspace, as long as all files that lead to it are unchanged.
type keptPlace struct {
	Files    []keptFile
	Location Location
	Dir      string // local directory as the manifest names it; what it leads to is looked up anew
}

type keptFile struct {
	Asked, Real string // its path with links, and without
	Stamp       hostfile.Stamp
}

const keptFormat = "wsmount/places/v1\n"

// keptPlaces reads what was kept. Without a file, or with one that is not ours, nothing is
// known; where none can be, path is empty.
func (r *Resolver) keptPlaces(reg *registry.File) *keptPlaces {
	k := &keptPlaces{path: r.o.Places, began: r.o.Now(), places: map[string]keptPlace{}}
	var program unix.Stat_t
	if len(r.cfg.Workspaces) < 2 || r.cfg.digest == "" || unix.Stat("/proc/self/exe", &program) != nil {
		k.path = ""
	}
	if k.path == "" {
		return k
	}
	k.world = digest(fmt.Appendf(nil, "%q %q %q %q %d %v", r.cfg.digest, reg.Digest(), r.o.Home, r.o.Temp, os.Geteuid(), hostfile.StampOf(&program)))
	if places := map[string]keptPlace{}; memo.Read(k.path, k.head(), &places) {
		k.places = places
	}
	return k
}

func (k *keptPlaces) head() string { return keptFormat + k.world + "\n" }

// find returns the place of a workspace whose files are unchanged.
func (k *keptPlaces) find(addr string) (Location, bool) {
	p, ok := k.places[addr]
	if !ok {
		return Location{}, false
	}
	for _, f := range p.Files {
		if !f.Stamp.IsOf(f.Asked) || f.Real != f.Asked && !f.Stamp.IsOf(f.Real) {
			return Location{}, false
		}
	}
	if p.Dir == "" {
		return p.Location, true
	}
	var l loaded
	if l.openLocal(p.Dir) != nil {
		return Location{}, false
	}
	p.Location.Prefix = l.local.Path
	return p.Location, true
}

// keep takes note of a workspace that was read.
func (k *keptPlaces) keep(addr string, l *loaded) {
	if k.path == "" || len(l.files) == 0 {
		return // a directory without a manifest is nothing to read
	}
	p := keptPlace{Location: l.loc, Dir: l.dir}
	for _, f := range l.files {
		if f.stamp == (hostfile.Stamp{}) || !f.stamp.Settled(k.began) {
			return
		}
		p.Files = append(p.Files, keptFile{f.asked, f.path, f.stamp})
	}
	k.places[addr] = p
	k.changed = true
}

// save writes what was taken note of. When it cannot, all is read again the next time.
func (k *keptPlaces) save() {
	if !k.changed {
		return
	}
	k.changed = false
	memo.Write(k.path, k.head(), k.places)
}
