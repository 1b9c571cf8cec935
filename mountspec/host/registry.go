package host

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"reflect"
	"time"

	"github.com/wsmount/wsmount/mountspec"
	"github.com/wsmount/wsmount/mountspec/host/hostfile"
	"github.com/wsmount/wsmount/mountspec/host/origin"
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
	// From is where the files were fetched from; copies of them are kept in the directory
	// of Path. nil: they lie there.
	From       *origin.Origin `json:"from,omitempty"`
	AddedAt    time.Time      `json:"added_at"`
	AcceptedAt time.Time      `json:"accepted_at"`
}

// Accepted is one governing file as it was accepted.
type Accepted struct {
	Path   string `json:"path"`
	SHA256 string `json:"sha256"`
	Text   string `json:"text"`
}

// registryFile is the file as a whole.
type registryFile struct {
	Schema     string
	Workspaces map[string]*Registration
	// Damaged are the entries that cannot be read, by what stands for their
	// address. They are kept as they are, grant nothing, and stand in nobody's
	// way but that of their own address.
	Damaged map[string]json.RawMessage
	// UsualEnv is package usualenv's Known.Recorded.
	UsualEnv *string
	digest   string // of the text; empty: there is no file
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

// registryText is how the file is written.
type registryText struct {
	Schema     string                     `json:"schema"`
	Workspaces map[string]json.RawMessage `json:"workspaces"`
	UsualEnv   *string                    `json:"usual_env,omitempty"`
}

func decodeRegistry(data []byte) (*registryFile, error) {
	var f registryText
	if err := strictly(data, &f); err != nil {
		return nil, err
	}
	if f.Schema != registrySchema {
		return nil, errors.New("its schema is not " + registrySchema + ": a newer wsmount wrote it")
	}
	out := &registryFile{Schema: f.Schema, Workspaces: map[string]*Registration{}, Damaged: map[string]json.RawMessage{}, UsualEnv: f.UsualEnv, digest: digest(data)}
	for addr, text := range f.Workspaces {
		var e *Registration
		_, err := mountspec.ParseAddress(addr)
		if err != nil || strictly(text, &e) != nil || e == nil || !filepath.IsAbs(e.Path) {
			out.Damaged[addr] = text
			continue
		}
		out.Workspaces[addr] = e
	}
	return out, nil
}

// strictly decodes one JSON value that nothing follows and of which every field
// is known.
func strictly(data []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("something follows the registry")
	}
	return nil
}

func (f *registryFile) encode() ([]byte, error) {
	out := registryText{f.Schema, maps.Clone(f.Damaged), f.UsualEnv}
	if out.Workspaces == nil {
		out.Workspaces = map[string]json.RawMessage{}
	}
	for addr, e := range f.Workspaces {
		text, err := json.Marshal(e)
		if err != nil {
			return nil, err
		}
		out.Workspaces[addr] = text
	}
	data, err := json.MarshalIndent(out, "", " ")
	return append(data, '\n'), err
}

// damaged refuses what depends on an entry that cannot be read.
func (f *registryFile) damaged(where, name string) error {
	if _, ok := f.Damaged[name]; !ok {
		return nil
	}
	return &Error{Class: Invalid, Where: where, What: fmt.Sprintf("the entry of %q is damaged", name),
		Hint: fmt.Sprintf("wsmount registry remove %s, then register it again", orDefault(name, "''"))}
}

// An entering makes a change of the registry that was decided. It runs under the lock of the
// registry, as that is now, and says whether it is to be written.
type entering func(now *registryFile) (write bool, err error)

// change has decide look at the registry, and writes it when what that returns says so; nil
// enters nothing. Deciding holds no lock: a store that does not answer, or a person who has
// not answered yet, keeps nobody else waiting. A crash leaves the old file or the new one.
func (s store) change(decide func(*registryFile) (entering, error)) error {
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
	if reg, err = s.load(); err != nil {
		return err
	}
	write, err := enter(reg)
	if err != nil || !write {
		return err
	}
	data, err := reg.encode()
	if err != nil {
		return err
	}
	if err := hostfile.WriteAtomic(s.path, data, hostfile.Options{}); err != nil {
		return fileError("", s.path, err)
	}
	return nil
}

// still refuses an entry that is not the one, nil for none, that a change was decided about.
func (f *registryFile) still(addr mountspec.Address, was *Registration) error {
	if reflect.DeepEqual(f.Workspaces[addr.String()], was) {
		return nil
	}
	return &Error{Class: Denied, What: "the entry of " + addr.String() + " in the registry", Err: hostfile.ErrChanged, Hint: "look at it as it is now, with the same command again"}
}

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// root is the directory of a registered workspace.
func (r *Registration) root() string {
	if !r.hasManifest() {
		return r.Path
	}
	return filepath.Dir(r.Path)
}

// hasManifest reports whether the first of the files is a WORKSPACE.md. A directory of
// which the configuration says more has none, and may have other files.
func (r *Registration) hasManifest() bool { return len(r.Files) > 0 && r.Files[0].Path == r.Path }

// version is that of the manifest that was accepted; "": there is none.
func (r *Registration) version() string {
	if !r.hasManifest() {
		return ""
	}
	ws, _ := mountspec.ParseWorkspace(mountspec.Source{Name: r.Path, Data: []byte(r.Files[0].Text)}, mountspec.Options{})
	if ws == nil {
		return ""
	}
	return ws.Version
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
