package host

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"path/filepath"
	"time"

	"github.com/wsmount/wsmount/mountspec"
	"github.com/wsmount/wsmount/mountspec/host/hostfile"
)

const (
	registryName   = "registry.json"
	registrySchema = "wsmount/registry/v1"
	maxRegistry    = 256 << 20
)

// A Registration is what `registry add` recorded of a workspace.
type Registration struct {
	// Path is the real path of the WORKSPACE.md, or of the directory of a
	// workspace without one.
	Path        string     `json:"path"`
	OwnerID     string     `json:"owner_id"`
	Fingerprint string     `json:"fingerprint"`
	Location    Location   `json:"location"`
	Files       []Accepted `json:"files,omitempty"` // the manifest first, then what it refers to
	AddedAt     time.Time  `json:"added_at"`
	AcceptedAt  time.Time  `json:"accepted_at"`
}

// Accepted is one governing file as it was accepted.
type Accepted struct {
	Path   string `json:"path"`
	SHA256 string `json:"sha256"`
	Text   string `json:"text"`
}

// registryFile is the file as a whole.
type registryFile struct {
	Schema     string                   `json:"schema"`
	Workspaces map[string]*Registration `json:"workspaces"`
}

// A store reads and writes the registry file.
type store struct{ path string }

// load reads the registry; one that is not there is empty.
func (s store) load() (*registryFile, error) {
	empty := &registryFile{Schema: registrySchema, Workspaces: map[string]*Registration{}}
	if s.path == "" {
		return empty, nil
	}
	f, err := hostfile.Read(s.path, hostfile.Options{MaxBytes: maxRegistry})
	if hostfile.IsAbsent(err) {
		return empty, nil
	}
	if err != nil {
		return nil, fileError("", s.path, err)
	}
	got, err := decodeRegistry(f.Data)
	if err != nil {
		return nil, &Error{Class: Invalid, Where: s.path, What: "the registry cannot be read", Err: err, Hint: "restore it from a copy, or move it away and register again"}
	}
	return got, nil
}

func decodeRegistry(data []byte) (*registryFile, error) {
	var f registryFile
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&f); err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something follows the registry")
	}
	if f.Schema != registrySchema {
		return nil, errors.New("its schema is not " + registrySchema + ": a newer wsmount wrote it")
	}
	if f.Workspaces == nil {
		f.Workspaces = map[string]*Registration{}
	}
	for addr, e := range f.Workspaces {
		if _, err := mountspec.ParseAddress(addr); err != nil || e == nil || !filepath.IsAbs(e.Path) {
			return nil, errors.New("the entry of " + addr + " is damaged")
		}
	}
	return &f, nil
}

// change runs f on the registry under its lock and writes the result when f
// says so. A crash leaves the old file or the new one.
func (s store) change(f func(*registryFile) (write bool, err error)) error {
	if s.path == "" {
		return unresolvable("", "", "set HOME or give --config", "there is no place for the registry file")
	}
	if err := makeConfigDir(filepath.Dir(s.path)); err != nil {
		return fileError("", filepath.Dir(s.path), err)
	}
	unlock, err := hostfile.Lock(s.path+".lock", hostfile.Options{})
	if err != nil {
		return fileError("", s.path+".lock", err)
	}
	defer unlock()
	reg, err := s.load()
	if err != nil {
		return err
	}
	write, err := f(reg)
	if err != nil || !write {
		return err
	}
	data, err := json.MarshalIndent(reg, "", " ")
	if err != nil {
		return err
	}
	if err := hostfile.WriteAtomic(s.path, append(data, '\n'), hostfile.Options{}); err != nil {
		return fileError("", s.path, err)
	}
	return nil
}

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// root is the directory of a registered workspace.
func (r *Registration) root() string {
	if len(r.Files) == 0 {
		return r.Path
	}
	return filepath.Dir(r.Path)
}

// differs says which governing file is not the accepted one, or "".
func (r *Registration) differs(files []*file) string {
	accepted := map[string]string{}
	for _, a := range r.Files {
		accepted[a.Path] = a.SHA256
	}
	for _, f := range files {
		if accepted[f.path] != digest(f.data) {
			return f.path
		}
		delete(accepted, f.path)
	}
	for p := range accepted {
		return p // it was accepted, and is not consulted any more
	}
	return ""
}
