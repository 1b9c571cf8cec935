package bundle

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/wsmount/wsmount/integration/assert"
)

// tree makes a directory with files, by path; one that ends in a slash is a directory, and
// a text that begins with -> is a link.
func tree(t *testing.T, files map[string]string) *os.Root {
	t.Helper()
	dir := t.TempDir()
	root := assert.Of(os.OpenRoot(dir)).OK(t)
	t.Cleanup(func() { root.Close() })
	for name, text := range files {
		at := filepath.Join(dir, name)
		assert.OK(t, os.MkdirAll(filepath.Dir(at), 0o755))
		target, isLink := strings.CutPrefix(text, "->")
		switch {
		case strings.HasSuffix(name, "/"):
			assert.OK(t, os.MkdirAll(at, 0o755))
		case isLink:
			assert.OK(t, os.Symlink(target, at))
		default:
			assert.OK(t, os.WriteFile(at, []byte(text), 0o644))
		}
	}
	return root
}

var options = Options{ID: "@acme/starter", Version: "1.0.0"}

func packed(t *testing.T, root *os.Root) (*Content, []byte, string) {
	t.Helper()
	c := assert.Of(Collect(t.Context(), root, options)).OK(t)
	var b bytes.Buffer
	sum := assert.Of(c.Write(t.Context(), &b)).OK(t)
	return c, b.Bytes(), sum
}

func paths(c *Content) (in, left string) {
	for _, e := range c.Entries {
		in += e.Path + " "
	}
	for _, l := range c.Left {
		left += l.Path + " "
	}
	return strings.TrimSpace(in), strings.TrimSpace(left)
}

var plain = map[string]string{"WORKSPACE.md": "---\n", "a/deep/file": "text", "a-b": "", "empty/": "", "a/link": "->deep/file", "a/up": "->../a-b"}

// What is packed and unpacked is the same, and two bundles of it are, whatever its times are.
func TestThereAndBack(t *testing.T) {
	root := tree(t, plain)
	assert.OK(t, root.Chmod("a-b", 0o751))
	c, first, sum := packed(t, root)
	in, left := paths(c)
	assert.Equal(t, in, "WORKSPACE.md a a-b a/deep a/deep/file a/link a/up empty")
	assert.Equal(t, left, "")
	assert.OK(t, root.Chtimes("a/deep/file", time.Unix(99, 0), time.Unix(99, 0)))
	_, again, _ := packed(t, root)
	assert.True(t, bytes.Equal(first, again), "the bytes of two bundles")

	into := tree(t, nil)
	l, unpackedSum, err := Unpack(t.Context(), bytes.NewReader(first), into)
	assert.OK(t, err)
	assert.Equal(t, unpackedSum, sum)
	assert.True(t, slices.Equal(l.Entries, c.Entries), l.Entries)
	_, third, _ := packed(t, into)
	assert.True(t, bytes.Equal(first, third), "the bytes of a bundle of what was unpacked")
}

// What is about the machine, or secret, stays, wherever it lies.
func TestWhatStays(t *testing.T) {
	files := map[string]string{"WORKSPACE.md": "", "sub/.git/config": "", "SECRETS.md": "", "sub/acme.secrets.MD": "", ".secrets/SECRETS.md": "", ".wsmount/status.json": "",
		".env": "", "sub/.env.local": "", ".env.example": "kept", "key.pem": "", ".ssh/config": "", "out": "->../x", "absolute": "->/etc/passwd", "sub/around": "->a/../../..", "private/x": ""}
	root := tree(t, files)
	assert.OK(t, syscall.Mkfifo(filepath.Join(root.Name(), "pipe"), 0o600))
	o := options
	o.Keep = func(path string, dir bool) string {
		if path == "private" && dir {
			return "told so"
		}
		return ""
	}
	c := assert.Of(Collect(t.Context(), root, o)).OK(t)
	in, left := paths(c)
	assert.Equal(t, in, ".env.example WORKSPACE.md sub")
	assert.Equal(t, left, ".env .secrets .ssh .wsmount SECRETS.md absolute key.pem out pipe private sub/.env.local sub/.git sub/acme.secrets.MD sub/around")
	for _, l := range c.Left {
		assert.True(t, l.Reason != "", l.Path, "has no reason")
	}
}

// A credential in a file refuses all, also where it lies between two pieces that are read.
func TestCredentials(t *testing.T) {
	token := "ghp_" + strings.Repeat("a1", 18)
	for name, text := range map[string]string{"alone": token, "key": "-----BEGIN RSA PRIVATE KEY-----\n", "across": strings.Repeat("x", 32<<10-12) + " " + token} {
		t.Run(name, func(t *testing.T) {
			_, err := Collect(t.Context(), tree(t, map[string]string{"WORKSPACE.md": "", "doc": text, "other": text}), options)
			assert.Is(t, err, ErrCredential)
			var found Credentials
			assert.True(t, errors.As(err, &found) && len(found) == 2 && !strings.Contains(err.Error(), token), err)
		})
	}
}

// What changes between the look and the writing is not written.
func TestChangedMeanwhile(t *testing.T) {
	for name, change := range map[string]func(*os.Root) error{
		"content": func(r *os.Root) error { return r.WriteFile("a-b", []byte("x"), 0o644) },
		"removed": func(r *os.Root) error { return r.Remove("a-b") },
		"a link": func(r *os.Root) error {
			return errors.Join(r.Remove("a-b"), r.Symlink("a/deep/file", "a-b"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			root := tree(t, plain)
			c := assert.Of(Collect(t.Context(), root, options)).OK(t)
			assert.OK(t, change(root))
			_, err := c.Write(t.Context(), io.Discard)
			assert.True(t, err != nil && strings.Contains(err.Error(), "a-b"), err)
		})
	}
}

// The manifest of a workspace whose files have none.
func TestManifestBesideTheFiles(t *testing.T) {
	root := tree(t, map[string]string{"x": "1"})
	_, err := Collect(t.Context(), root, options)
	assert.True(t, err != nil, "a bundle without a manifest")
	o := options
	o.Manifest = []byte("---\n")
	c := assert.Of(Collect(t.Context(), root, o)).OK(t)
	var b bytes.Buffer
	assert.OK(t, assert.ErrOf(c.Write(t.Context(), &b)))
	into := tree(t, nil)
	_, _, err = Unpack(t.Context(), &b, into)
	assert.OK(t, err)
	assert.Of(into.ReadFile(Manifest)).Equal(t, []byte("---\n"))
}

// member is a member of a bundle that somebody else made.
type member struct {
	header tar.Header
	text   string
}

func archive(t *testing.T, members ...member) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, m := range members {
		m.header.Size = int64(len(m.text))
		assert.OK(t, w.WriteHeader(&m.header))
		assert.OK(t, assert.ErrOf(w.Write([]byte(m.text))))
	}
	assert.OK(t, w.Close())
	return b.Bytes()
}

// Whatever somebody else made, nothing is unpacked but what is listed, in the directory.
func TestHostileBundles(t *testing.T) {
	const sum = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" // of nothing
	manifest := `{"path":"WORKSPACE.md","type":"file","sha256":"` + sum + `"}`
	file := func(path string) string { return `{"path":"` + path + `","type":"file","sha256":"` + sum + `"}` }
	list := func(entries ...string) member {
		return member{tar.Header{Name: listName}, `{"schema":"` + schema + `","id":"@acme/x","version":"1.0.0","entries":[` + strings.Join(entries, ",") + `]}`}
	}
	at := func(path string) member { return member{header: tar.Header{Name: path}} }
	good := []member{list(manifest), at("files/WORKSPACE.md")}
	_, _, err := Unpack(t.Context(), bytes.NewReader(archive(t, good...)), tree(t, nil))
	assert.OK(t, err, "the harmless one")

	for name, c := range map[string]struct {
		members []member
		says    string
	}{
		"no list":             {[]member{at("files/WORKSPACE.md")}, "begin"},
		"nothing":             {nil, "EOF"},
		"another schema":      {[]member{{tar.Header{Name: listName}, `{"schema":"x"}`}}, "schema"},
		"unknown field":       {[]member{{tar.Header{Name: listName}, `{"schema":"` + schema + `","run":"x"}`}}, "run"},
		"no address":          {[]member{{tar.Header{Name: listName}, `{"schema":"` + schema + `","id":"../x"}`}}, "../x"},
		"no manifest":         {[]member{list()}, "WORKSPACE.md"},
		"up":                  {[]member{list(file("../x"), manifest)}, "clean"},
		"absolute":            {[]member{list(file("/x"), manifest)}, "clean"},
		"dots inside":         {[]member{list(manifest, file("a/../../x"))}, "clean"},
		"twice":               {[]member{list(manifest, manifest)}, "order"},
		"unsorted":            {[]member{list(file("b"), manifest)}, "order"},
		"no parent":           {[]member{list(manifest, file("a/b"))}, "no directory"},
		"below a file":        {[]member{list(manifest, file("a"), file("a/b"))}, "no directory"},
		"below a link":        {[]member{list(manifest, `{"path":"a","type":"link","target":"b"}`, file("a/b"))}, "no directory"},
		"link up":             {[]member{list(manifest, `{"path":"a","type":"link","target":"../b"}`)}, "lead out"},
		"link by way of one":  {[]member{list(manifest, `{"path":"a","type":"dir"}`, `{"path":"a/b","type":"link","target":"c/../../x"}`)}, "lead out"},
		"absolute link":       {[]member{list(manifest, `{"path":"a","type":"link","target":"/etc"}`)}, "relative"},
		"hooks of git":        {[]member{list(`{"path":".git","type":"dir"}`, manifest)}, "git"},
		"an inventory":        {[]member{list(`{"path":".secrets","type":"dir"}`, manifest)}, "secrets"},
		"the control dir":     {[]member{list(`{"path":".wsmount","type":"dir"}`, manifest)}, "control"},
		"a device":            {[]member{list(manifest, `{"path":"a","type":"device"}`)}, "described"},
		"no sum":              {[]member{list(manifest, `{"path":"a","type":"file","size":1}`)}, "described"},
		"less than nothing":   {[]member{list(manifest, `{"path":"a","type":"file","size":-1,"sha256":"`+sum+`"}`)}, "described"},
		"too large":           {[]member{list(manifest, `{"path":"a","type":"file","size":1073741825,"sha256":"`+sum+`"}`)}, "larger"},
		"too large together":  {[]member{list(manifest, `{"path":"a","type":"file","size":1073741824,"sha256":"`+sum+`"}`, `{"path":"b","type":"file","size":1,"sha256":"`+sum+`"}`)}, "larger"},
		"long name":           {[]member{list(manifest, file(strings.Repeat("x", 256)))}, "long"},
		"a NUL":               {[]member{list(manifest, file(`x\u0000`))}, "NUL"},
		"other content":       {[]member{list(manifest), {tar.Header{Name: "files/WORKSPACE.md"}, "x"}}, "list says"},
		"wrong sum":           {[]member{list(strings.Replace(manifest, `"type"`, `"size":1,"type"`, 1)), {tar.Header{Name: "files/WORKSPACE.md"}, "x"}}, "content"},
		"another member":      {[]member{list(manifest), at("files/other")}, "list says"},
		"a link for a file":   {[]member{list(manifest), {header: tar.Header{Name: "files/WORKSPACE.md", Typeflag: tar.TypeSymlink, Linkname: "/etc/passwd"}}}, "list says"},
		"another target":      {[]member{list(manifest, `{"path":"a","type":"link","target":"b"}`), at("files/WORKSPACE.md"), {header: tar.Header{Name: "files/a", Typeflag: tar.TypeSymlink, Linkname: "/etc"}}}, "list says"},
		"a hard link":         {[]member{list(manifest), {header: tar.Header{Name: "files/WORKSPACE.md", Typeflag: tar.TypeLink, Linkname: "/etc/passwd"}}}, "list says"},
		"one member too few":  {[]member{list(manifest)}, "EOF"},
		"one member too many": {append(slices.Clone(good), at("files/x")), "more"},
	} {
		t.Run(name, func(t *testing.T) {
			into := tree(t, nil)
			_, _, err := Unpack(t.Context(), bytes.NewReader(archive(t, c.members...)), into)
			assert.Is(t, err, ErrDamaged)
			assert.Contains(t, err.Error(), c.says)
		})
	}
	for _, c := range []struct {
		name string
		text []byte
	}{
		{"text", []byte("not an archive at all")},
		{"cut", archive(t, good...)[:1100]},
		{"something after it", append(archive(t, good...), 1)},
	} {
		_, _, err := Unpack(t.Context(), bytes.NewReader(c.text), tree(t, nil))
		assert.Is(t, err, ErrDamaged, c.name)
	}
}

// An end of the context is no damage.
func TestInterrupted(t *testing.T) {
	root := tree(t, plain)
	c, text, _ := packed(t, root)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	assert.Is(t, assert.ErrOf(Collect(ctx, root, options)), context.Canceled)
	_, err := c.Write(ctx, io.Discard)
	assert.Is(t, err, context.Canceled)
	_, _, err = Unpack(ctx, bytes.NewReader(text), tree(t, nil))
	assert.Is(t, err, context.Canceled)
	assert.False(t, errors.Is(err, ErrDamaged), err)
}

// Whatever is read, nothing appears beside the directory.
func FuzzUnpack(f *testing.F) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	text := `{"schema":"` + schema + `","id":"@a/b","version":"1.0.0","entries":[{"path":"WORKSPACE.md","type":"file","sha256":"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"}]}`
	_ = w.WriteHeader(&tar.Header{Name: listName, Size: int64(len(text))})
	_, _ = w.Write([]byte(text))
	_ = w.WriteHeader(&tar.Header{Name: "files/WORKSPACE.md"})
	_ = w.Close()
	f.Add(b.Bytes())
	f.Fuzz(func(t *testing.T, text []byte) {
		dir := t.TempDir()
		assert.OK(t, os.Mkdir(filepath.Join(dir, "in"), 0o755))
		root := assert.Of(os.OpenRoot(filepath.Join(dir, "in"))).OK(t)
		defer root.Close()
		_, _, _ = Unpack(t.Context(), bytes.NewReader(text), root)
		assert.Equal(t, len(assert.Of(os.ReadDir(dir)).OK(t)), 1, "what is beside the directory")
	})
}
