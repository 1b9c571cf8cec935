package fetch

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
)

// A directory lasts as long as somebody needs it, also if that ends with a kill.
func TestScratch(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "shared")
	there := func(path string) bool { return assert.ErrOf(os.Stat(path)) == nil }
	first, release, err := scratch(dir)
	assert.OK(t, err)
	killed := filepath.Join(dir, "fetch-of-a-run-that-was-killed")
	assert.OK(t, os.MkdirAll(killed+"/git", 0o700))
	second, releaseSecond, err := scratch(dir)
	assert.OK(t, err)
	assert.True(t, there(first) && there(second) && !there(killed), "what is needed is there, and no more")
	release()
	assert.True(t, !there(first) && there(second), "the first is gone")
	releaseSecond()
	assert.False(t, there(second), "the second is there")

	assert.OK(t, os.Chmod(dir, 0o777))
	_, _, err = scratch(dir)
	assert.True(t, err != nil, "a directory that others may write is taken")
}

func TestWhere(t *testing.T) {
	for _, c := range []struct {
		where        Where
		server, want string // "": it is refused
	}{
		{Where{Place: "github:acme/site"}, "", "github:acme/site"},
		{Where{URL: "https://github.com/acme/site.git#main"}, "", "github:acme/site#main"},
		{Where{URL: "https://git.acme.test/acme/site"}, "https://git.acme.test", "github:acme/site"},
		{Where{URL: "https://git.acme.test/acme/site"}, "", ""},
		{Where{Place: "ftp:acme/site"}, "", ""},
	} {
		o, err := c.where.Origin(c.server)
		assert.Equal(t, err == nil, c.want != "", c.where, err)
		if err == nil {
			assert.Equal(t, o.Place.String(), c.want)
		}
	}
}
