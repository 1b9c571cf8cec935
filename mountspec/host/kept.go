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

// A keptPlaces is the places of the bytes of the configuration's workspaces, from their
// manifests when they were last read. With it a mount need not read every manifest of the
// host to compare its own place with those of the others. It is used for nothing else: the
// manifests of the mounted workspace, and of one that would refuse the mount, are read anew.
//
// The file lies in the state directory, which no mount shows. A program that can write it
// can write the configuration. A file by another configuration or program is ignored.
type keptPlaces struct {
	path    string
	world   string // digest of all inputs that decide about a place, but the manifests
	began   time.Time
	places  map[string]keptPlace // by address
	changed bool
}

// A keptPlace is the place of one workspace, valid while all files that lead to it are unchanged.
type keptPlace struct {
	Files    []keptFile
	Location Location
	Dir      string // local directory as the manifest names it; its links are followed anew
}

type keptFile struct {
	Asked, Real string // its path with links, and without
	Stamp       hostfile.Stamp
}

const keptFormat = "wsmount/places/v1\n"

// keptPlaces reads the kept places. Without a file, or with an ignored one, none are
// known; if none can be kept, path is empty.
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

// keep keeps the place of a workspace that was read.
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

// save writes the kept places. If it cannot, all manifests are read again the next time.
func (k *keptPlaces) save() {
	if !k.changed {
		return
	}
	k.changed = false
	memo.Write(k.path, k.head(), k.places)
}
