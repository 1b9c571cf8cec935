package browser

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
)

const url = "http://127.0.0.1:4000/open?token=SECRET"

// The browser is led to the address by a file that only its user can read, and that is gone
// at the end; no command line has the address.
func TestOpen(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	t.Setenv("TMPDIR", dir)
	assert.OK(t, os.WriteFile(dir+"/xdg-open", []byte("#!/bin/sh\nstat -c %a \"$1\" \"${1%/*}\" > "+dir+"/modes\ncat \"$1\" > "+dir+"/page\necho \"$@\" > "+dir+"/args\n"), 0o755))
	o := assert.Of(Open(url)).OK(t)
	read := func(name string) string { b, _ := os.ReadFile(filepath.Join(dir, name)); return string(b) }
	assert.Eventually(t, "the browser", func() bool { return read("args") != "" })
	assert.Equal(t, read("args"), filepath.Join(o.dir, "page.html")+"\n")
	assert.Equal(t, read("modes"), "600\n700\n")
	assert.Contains(t, read("page"), `content="0;url=`+url+`"`)
	o.Close()
	assert.Is(t, assert.ErrOf(os.Stat(o.dir)), os.ErrNotExist)
}

func TestNoBrowser(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	t.Setenv("TMPDIR", dir)
	t.Setenv("DISPLAY", ":0")
	assert.False(t, Likely(), "a browser")
	o, err := Open(url)
	assert.Must(t, err != nil, "a browser was opened")
	assert.Contains(t, err.Error(), "no browser could be opened")
	left := assert.Of(os.ReadDir(dir)).OK(t)
	assert.Equal(t, len(left), 0, "left behind")
	o.Close()
}
