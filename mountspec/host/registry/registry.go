// Package registry is the file in which the host keeps the registered workspaces: of each
// its place, its owner, and the text of the files that govern it.
//
// It knows the form of the file, and neither grants nor the meaning of a manifest. One entry
// that cannot be read takes nothing from the others. A mount needs the whole of one entry
// and of all others only where they lie, so that an entry is decoded when it is asked for.
//
//	f, err := registry.Read(path, nil)
//	e, ok := f.Get("@acme/ops")
package registry

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"iter"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/wsmount/wsmount/mountspec"
	"github.com/wsmount/wsmount/mountspec/host/hostfile"
	"github.com/wsmount/wsmount/mountspec/host/location"
)

// The form of the file has a version. An older wsmount ignores no field that it does not
// know, since the field may keep a credential from another owner: it refuses a file of a newer
// form, and says so. So a new field that is not in an entry needs a new form, and a file
// without that field keeps the older one.
const (
	first    = "wsmount/registry/v1"
	schema   = "wsmount/registry/v2" // with usual_env
	maxBytes = 256 << 20
)

// An InvalidError is an error in the file as a whole.
type InvalidError struct{ Err error }

func (e *InvalidError) Error() string { return "the registry is not valid: " + e.Err.Error() }

func (e *InvalidError) Unwrap() error { return e.Err }

// A NewerError says that a newer wsmount wrote the file.
type NewerError struct{ Schema string }

func (e *NewerError) Error() string {
	return "a newer wsmount wrote it: its form is " + e.Schema + ", and this one knows them up to " + schema
}

// A File is the registry as it was read. Reading it is safe from several goroutines;
// changing it is not.
type File struct {
	// UsualEnv is package usualenv's Known.Recorded.
	UsualEnv *string

	data  []byte
	stamp hostfile.Stamp
	read  time.Time
	names []string // of all entries, in order

	mu      sync.Mutex // guards the fields below
	entries map[string]*entry
}

// An entry is decoded as a whole, or as far as it was asked for.
type entry struct {
	text    json.RawMessage // as it is written; nil: the entry was put
	decoded bool
	whole   *Registration // nil: it is not decoded, or damaged
	placed  bool
	place   location.Location
}

// New has no entries.
func New() *File { return &File{entries: map[string]*entry{}} }

// Read reads the file. last is the File of an earlier Read, which is returned where the
// file has not changed; nil: none. A missing file matches fs.ErrNotExist.
func Read(path string, last *File) (*File, error) {
	if last != nil && last.stamp.Settled(last.read) && last.stamp.IsOf(path) {
		return last, nil
	}
	now := time.Now()
	got, err := hostfile.Read(path, hostfile.Options{MaxBytes: maxBytes})
	if err != nil {
		return nil, err
	}
	f, err := decode(got.Data)
	if err != nil {
		return nil, &InvalidError{err}
	}
	f.stamp, f.read = hostfile.StampOf(&got.Stat), now
	return f, nil
}

func decode(data []byte) (*File, error) {
	f, is, unknown := New(), "", ""
	f.data = data
	err := members(data, func(key string, value []byte) error {
		switch key {
		case "schema":
			return json.Unmarshal(value, &is)
		case "workspaces":
			if string(value) == "null" {
				return nil
			}
			return members(value, func(name string, value []byte) error {
				f.entries[name] = &entry{text: value}
				return nil
			})
		case "usual_env":
			return json.Unmarshal(value, &f.UsualEnv)
		default:
			unknown = key
		}
		return nil
	})
	switch {
	case err != nil:
	case is == "":
		err = errors.New("it has no schema")
	case is != first && is != schema:
		err = &NewerError{is}
	case unknown != "":
		err = errors.New("it has an unknown " + unknown)
	}
	f.names = slices.Sorted(maps.Keys(f.entries))
	return f, err
}

// Names are the names of all entries, of the damaged ones too, in order. They stand for
// addresses.
func (f *File) Names() []string { return slices.Clone(f.names) }

// Get is an entry; false: there is none, or it is damaged.
func (f *File) Get(name string) (*Registration, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	e := f.entries[name]
	if e == nil {
		return nil, false
	}
	if !e.decoded {
		e.decoded = true
		var r *Registration
		_, err := mountspec.ParseAddress(name)
		if err == nil && strictly(e.text, &r) == nil && r != nil && filepath.IsAbs(r.Path) {
			e.whole = r
		}
	}
	return e.whole, e.whole != nil
}

// IsDamaged reports whether there is an entry that cannot be read. It is kept as it is,
// grants nothing, and blocks its own address alone.
func (f *File) IsDamaged(name string) bool {
	_, ok := f.Get(name)
	return !ok && f.entries[name] != nil
}

// All are the entries that can be read, by their addresses, in order.
func (f *File) All() iter.Seq2[string, *Registration] {
	return func(yield func(string, *Registration) bool) {
		for _, name := range f.names {
			if r, ok := f.Get(name); ok && !yield(name, r) {
				return
			}
		}
	}
}

// Place is where the workspace of an entry lies; false: that is not known, since the entry
// is damaged.
func (f *File) Place(name string) (location.Location, bool) {
	if l, ok := f.quickly(name); ok {
		return l, true
	}
	r, ok := f.Get(name)
	if !ok {
		return location.Location{}, false
	}
	return r.Location, true
}

// quickly is Place of an entry that is not decoded for it.
func (f *File) quickly(name string) (location.Location, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	e := f.entries[name]
	if e == nil || e.decoded {
		return location.Location{}, false
	}
	if !e.placed {
		e.placed = members(e.text, func(key string, value []byte) error {
			if key != "location" {
				return nil
			}
			l := &e.place
			return members(value, func(key string, value []byte) (err error) {
				if into := map[string]*string{"provider": &l.Provider, "service": &l.Service, "endpoint": &l.Endpoint, "bucket": &l.Bucket, "prefix": &l.Prefix, "branch": &l.Branch}[key]; into != nil {
					*into, err = decodeText(value)
				}
				return err
			})
		}) == nil && e.place.Service != ""
	}
	return e.place, e.placed
}

// Put makes an entry the one of a name.
func (f *File) Put(name string, r *Registration) {
	f.entries[name] = &entry{decoded: true, whole: r}
	f.names = slices.Sorted(maps.Keys(f.entries))
}

// Remove takes an entry out.
func (f *File) Remove(name string) {
	delete(f.entries, name)
	f.names = slices.Sorted(maps.Keys(f.entries))
}

// Encode is the text of the file. Entries that were not put are as they were read.
func (f *File) Encode() ([]byte, error) {
	out := struct {
		Schema     string                     `json:"schema"`
		Workspaces map[string]json.RawMessage `json:"workspaces"`
		UsualEnv   *string                    `json:"usual_env,omitempty"`
	}{first, map[string]json.RawMessage{}, f.UsualEnv}
	if f.UsualEnv != nil {
		out.Schema = schema
	}
	for name, e := range f.entries {
		text := e.text
		if text == nil {
			var err error
			if text, err = json.Marshal(e.whole); err != nil {
				return nil, err
			}
		}
		out.Workspaces[name] = text
	}
	data, err := json.MarshalIndent(out, "", " ")
	if err != nil {
		return nil, &InvalidError{err}
	}
	return append(data, '\n'), nil
}

// Digest is the SHA-256 of the text that was read; "": there is no file.
func (f *File) Digest() string {
	if f.data == nil {
		return ""
	}
	sum := sha256.Sum256(f.data)
	return hex.EncodeToString(sum[:])
}

// strictly decodes one JSON value of which every field is known.
func strictly(data []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	return d.Decode(into)
}
