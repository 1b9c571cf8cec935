// Package memo keeps a value in a file, which saves finding it out again.
//
// The file belongs to the user, or root. One that is damaged, that others could have
// written, or that does not begin with the requested head, which names everything the value
// depends on, is ignored. Write does not sync: a power loss may damage the file.
//
//	memo.Write(path, head, value)
//	ok := memo.Read(path, head, &value)
package memo

import (
	"bytes"
	"crypto/sha256"
	"encoding/gob"
	"os"
	"path/filepath"

	"github.com/wsmount/wsmount/mountspec/host/hostfile"
)

const maxBytes = 64 << 20

// Read decodes the value of a file with that head, if there is one.
func Read(path, head string, into any) bool {
	f, err := hostfile.Read(path, hostfile.Options{MaxBytes: maxBytes})
	if err != nil {
		return false
	}
	text, ours := bytes.CutPrefix(f.Data, []byte(head))
	if !ours || len(text) < sha256.Size {
		return false
	}
	sum := sha256.Sum256(text[sha256.Size:])
	return bytes.Equal(sum[:], text[:sha256.Size]) && gob.NewDecoder(bytes.NewReader(text[sha256.Size:])).Decode(into) == nil
}

// Write keeps a value. When it cannot, the value is found out again the next time.
func Write(path, head string, value any) {
	var text bytes.Buffer
	if gob.NewEncoder(&text).Encode(value) != nil || os.MkdirAll(filepath.Dir(path), 0o700) != nil {
		return
	}
	sum := sha256.Sum256(text.Bytes())
	data := append([]byte(head), sum[:]...)
	_ = hostfile.WriteAtomic(path, append(data, text.Bytes()...), hostfile.Options{NoSync: true})
}
