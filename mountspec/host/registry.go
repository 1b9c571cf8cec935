package host

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"sync/atomic"

	"github.com/wsmount/wsmount/mountspec"
	"github.com/wsmount/wsmount/mountspec/host/hostfile"
	"github.com/wsmount/wsmount/mountspec/host/registry"
)

// RegistryName is the registry's file, in Config.Dir.
const RegistryName = "registry.json"

// A Registration is the record that `registry add` makes of a workspace.
type Registration = registry.Registration

// Accepted is one governing file as it was accepted.
type Accepted = registry.Accepted

// A store reads and writes the registry file.
type store struct {
	path string
	last *atomic.Pointer[registry.File] // the last one read
}

// load reads the registry, which must not be changed; a missing file is an empty one.
func (s store) load() (*registry.File, error) {
	f, err := s.loadAfter(s.last.Load())
	if err == nil {
		s.last.Store(f)
	}
	return f, err
}

func (s store) loadAfter(last *registry.File) (*registry.File, error) {
	if s.path == "" {
		return registry.New(), nil
	}
	f, err := registry.Read(s.path, last)
	if hostfile.IsAbsent(err) {
		return registry.New(), nil
	}
	return f, s.fileError(err)
}

func (s store) fileError(err error) error {
	var damaged *registry.InvalidError
	var newer *registry.NewerError
	switch {
	case errors.As(err, &newer):
		return &Error{Class: Invalid, Where: s.path, What: "the registry cannot be read", Err: newer, Hint: "use the wsmount that wrote it, or a newer one; `wsmount version` says which this is"}
	case errors.As(err, &damaged):
		return &Error{Class: Invalid, Where: s.path, What: "the registry cannot be read", Err: damaged.Err, Hint: "restore it from a copy, or move it away and register again"}
	case err != nil:
		return fileError("", s.path, err)
	}
	return nil
}

// damaged refuses a request that depends on an entry that cannot be read.
func (s store) damaged(f *registry.File, name string) error {
	if !f.IsDamaged(name) {
		return nil
	}
	return &Error{Class: Invalid, Where: s.path, What: fmt.Sprintf("the entry of %q is damaged", name),
		Hint: fmt.Sprintf("wsmount registry remove %s, then register it again", orDefault(name, "''"))}
}

// An entering makes a decided change. It runs under the lock of the registry, on its present
// state, and says whether to write it.
type entering func(now *registry.File) (write bool, err error)

// change calls decide with the registry, and writes it if the entering that it returns says
// so; nil changes nothing. decide runs without the lock: a store or person that does not
// answer blocks no other caller. A crash leaves the old file or the new one.
func (s store) change(decide func(*registry.File) (entering, error)) error {
	if s.path == "" {
		return unresolvable("", "", "set HOME or give --config", "there is no place for the registry file")
	}
	if err := makeConfigDir(filepath.Dir(s.path)); err != nil {
		return fileError("", filepath.Dir(s.path), err)
	}
	reg, err := s.load()
	if err != nil {
		return err
	}
	enter, err := decide(reg)
	if err != nil || enter == nil {
		return err
	}
	unlock, err := hostfile.Lock(s.path+".lock", hostfile.Options{})
	if err != nil {
		return fileError("", s.path+".lock", err)
	}
	defer unlock()
	if reg, err = s.loadAfter(nil); err != nil {
		return err
	}
	write, err := enter(reg)
	if err != nil || !write {
		return err
	}
	data, err := reg.Encode()
	if err == nil {
		err = hostfile.WriteAtomic(s.path, data, hostfile.Options{})
	}
	return s.fileError(err)
}

// still refuses a change if the entry it was decided on, nil for none, is not there any more.
func still(now *registry.File, addr mountspec.Address, was *Registration) error {
	if is, _ := now.Get(addr.String()); reflect.DeepEqual(is, was) {
		return nil
	}
	return &Error{Class: Denied, What: "the entry of " + addr.String() + " in the registry", Err: hostfile.ErrChanged, Hint: "look at it as it is now, with the same command again"}
}

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
