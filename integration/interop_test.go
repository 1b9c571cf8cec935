package integration

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/internal/harness"
	"github.com/wsmount/wsmount/integration/internal/tied"
	"github.com/wsmount/wsmount/integration/s3server"
	"github.com/wsmount/wsmount/integration/tier"
)

// Names that a bucket, a URL or a shell could misread. One that ends in %2F means
// a directory to wsmount, see package s3.
var oddNames = []string{"with space", "plus+plus", "100%", "a%2Fb", "ümlaut é", "日本語", "quote'\"", "a&b=c;d", "-dash", "tilde~", "#hash?query", backslash}

// backslash is a name that Azure takes for another, so that none is made there.
const backslash = "back\\slash"

// odd are the oddNames that there can be.
func (k keeps) odd() []string {
	return slices.DeleteFunc(slices.Clone(oddNames), func(name string) bool { return k.slashes && name == backslash })
}

// made is when what has a time of its own was made.
var made = time.Date(2001, 9, 9, 1, 46, 40, 0, time.UTC)

// fillAll makes a tree of all that programs can tell each other through a bucket.
func fillAll(t *testing.T, dir string, with keeps) {
	t.Helper()
	check := func(err error) {
		t.Helper()
		assert.OK(t, err)
	}
	check(os.WriteFile(dir+"/run", []byte("#!/bin/sh\n"), 0o755))
	check(os.WriteFile(dir+"/secret", []byte("secret\n"), 0o600))
	check(os.WriteFile(dir+"/none", nil, 0o644))
	check(os.WriteFile(dir+"/large", bytes.Repeat([]byte("0123456789abcdef"), 1<<16), 0o644))
	check(os.MkdirAll(dir+"/deep/er", 0o755))
	check(os.WriteFile(dir+"/deep/er/file", []byte("deep\n"), 0o644))
	check(os.Mkdir(dir+"/empty", 0o755))
	for _, name := range with.odd() {
		check(os.WriteFile(filepath.Join(dir, name), []byte("odd "+name), 0o644))
	}
	check(os.Symlink("deep/er/file", dir+"/link"))
	check(os.Chtimes(dir+"/run", made, made))
}

// wants are the lines of what fillAll makes; with says what of it another program
// keeps.
func wants(with keeps) (lines []string) {
	line := func(name string, mode os.FileMode, size int) {
		text := fmt.Sprintf("%s %d", name, size)
		if with.modes {
			text += fmt.Sprintf(" %v", mode)
		}
		lines = append(lines, text)
	}
	line("run", 0o755, 10)
	line("secret", 0o600, 7)
	line("none", 0o644, 0)
	line("large", 0o644, 1<<20)
	line("deep/er/file", 0o644, 5)
	for _, name := range with.odd() {
		line(name, 0o644, len("odd "+name))
	}
	lines = append(lines, "deep/", "deep/er/")
	if with.empty {
		lines = append(lines, "empty/")
	}
	if with.links {
		lines = append(lines, "link -> deep/er/file")
	}
	slices.Sort(lines)
	return lines
}

// keeps is what a program keeps in a bucket, and another reads there; slashes: a backslash is
// one.
type keeps struct{ modes, links, empty, slashes bool }

// sees lists a tree as wants does.
func sees(t *testing.T, dir string, with keeps) (lines []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		name, _ := filepath.Rel(dir, path)
		info, err := d.Info()
		if err != nil {
			return err
		}
		switch {
		case name == ".wsmount": // wsmount's own, which is no secret
			return filepath.SkipDir
		case d.IsDir() && (name != "empty" || with.empty):
			lines = append(lines, name+"/")
		case info.Mode()&os.ModeSymlink != 0 && with.links:
			target, err := os.Readlink(path)
			lines = append(lines, name+" -> "+target)
			return err
		case info.Mode().IsRegular():
			content, err := os.ReadFile(path)
			if err == nil && strings.HasPrefix(string(content), "odd ") && string(content) != "odd "+name {
				err = fmt.Errorf("%q has %q", name, content)
			}
			text := fmt.Sprintf("%s %d", name, len(content))
			if with.modes {
				text += fmt.Sprintf(" %v", info.Mode())
			}
			lines = append(lines, text)
			return err
		}
		return nil
	})
	assert.Is(t, err, nil)
	slices.Sort(lines)
	return lines
}

func agree(t *testing.T, what, dir string, with keeps) {
	t.Helper()
	if got, want := sees(t, dir, with), wants(with); !slices.Equal(got, want) {
		t.Errorf("%s: sees\n%s\nwant\n%s", what, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	// Of many objects of rclone the times are known when they have been read.
	harness.Eventually(t, what+": the time of a file", func() bool {
		info, err := os.Stat(dir + "/run")
		return err == nil && info.ModTime().Equal(made)
	})
}

// What s3fs wrote wsmount reads, and the other way round: content, names, modes,
// times, links and empty directories.
func TestInteroperateWithS3FS(t *testing.T) {
	t.Parallel()
	tier.RequireTools(t, "s3fs", "fusermount")
	s := s3server.Start(t, s3server.Default())
	b := newBucketStage(t, s, s.Endpoint)
	all := keeps{modes: true, links: true, empty: true}

	theirs := b.s3fs("team")
	assert.OK(t, os.Mkdir(theirs+"/ws", 0o755))
	fillAll(t, theirs+"/ws", all)
	attribute := func() {
		assert.Is(t, unix.Setxattr(theirs+"/ws/deep/er/file", "user.theirs", []byte("kept"), 0), nil, "setxattr")
	}
	if !showsMetadata(s) {
		attribute()
	}
	m := b.w.Mount("@acme/bucket")
	agree(t, "wsmount, of what s3fs wrote", m.Dir, all)
	if showsMetadata(s) {
		time.Sleep(believed) // a version is as old as its second: two changes in one may pass for one
		attribute()
		time.Sleep(believed) // until then nobody here looks; a change of metadata alone keeps its ETag
	}
	assert.OK(t, os.WriteFile(m.Dir+"/deep/er/file", []byte("again"), 0o644), "write")
	harness.Eventually(t, "s3fs has its attribute of what wsmount overwrote", func() bool {
		content, err := os.ReadFile(theirs + "/ws/deep/er/file")
		value := make([]byte, 10)
		n, xerr := unix.Getxattr(theirs+"/ws/deep/er/file", "user.theirs", value)
		return err == nil && xerr == nil && string(content) == "again" && string(value[:n]) == "kept"
	})

	b.workspace("ours", b.bucket.Endpoint, "team/ours")
	ours := b.w.Mount("@acme/ours")
	fillAll(t, ours.Dir, all)
	ours.Stop()
	agree(t, "s3fs, of what wsmount wrote", theirs+"/ours", all)
}

// Extended attributes of files and directories that s3fs set wsmount sees, and
// the other way round, and either removes the other's.
func TestShareXattrsWithS3FS(t *testing.T) {
	t.Parallel()
	tier.RequireTools(t, "s3fs", "fusermount")
	s := s3server.Start(t, s3server.Default())
	b := newBucketStage(t, s, s.Endpoint)
	theirs := b.s3fs("team") + "/ws"
	check := func(what string, err error) {
		t.Helper()
		assert.OK(t, err, what)
	}
	bytes := "\x00\xfb\xef\xbe\n"
	check("mkdir", os.MkdirAll(theirs+"/dir", 0o755))
	check("write", os.WriteFile(theirs+"/dir/file", []byte("s3fs"), 0o640))
	for _, name := range []string{"/dir", "/dir/file"} {
		check("setxattr", unix.Setxattr(theirs+name, "user.theirs", []byte(bytes), 0))
		check("setxattr", unix.Setxattr(theirs+name, "user.gone", []byte("1"), 0))
	}
	m := b.w.Mount("@acme/bucket")
	for _, name := range []string{"/dir", "/dir/file"} {
		assert.Equal(t, xattrOf(m.Dir+name, "user.theirs"), bytes, "wsmount, of what s3fs set on", name)
		check("removexattr", unix.Removexattr(m.Dir+name, "user.gone"))
		check("setxattr", unix.Setxattr(m.Dir+name, "user.ours", []byte("with a+b/c=d"), 0))
		check("chmod", os.Chmod(m.Dir+name, 0o700))
	}
	for _, name := range []string{"/dir", "/dir/file"} {
		harness.Eventually(t, "s3fs sees what wsmount set on "+name, func() bool {
			info, err := os.Stat(theirs + name)
			return err == nil && info.Mode().Perm() == 0o700 && xattrOf(theirs+name, "user.ours") == "with a+b/c=d" &&
				xattrOf(theirs+name, "user.theirs") == bytes && xattrOf(theirs+name, "user.gone") == ""
		})
		if !showsMetadata(s) {
			continue
		}
		check("removexattr", unix.Removexattr(theirs+name, "user.ours"))
		harness.Eventually(t, "wsmount sees what s3fs removed from "+name, func() bool {
			return xattrOf(m.Dir+name, "user.ours") == "" && xattrOf(m.Dir+name, "user.theirs") == bytes
		})
	}
}

// showsMetadata says whether a listing shows that the metadata of an object has
// changed. Versitygw's does not: it keeps the ETag and the time.
func showsMetadata(s *s3server.Server) bool { return s.Kind() != s3server.Versitygw }

// xattrOf is an extended attribute, "" without.
func xattrOf(path, name string) string {
	value := make([]byte, 4096)
	n, err := unix.Getxattr(path, name, value)
	if err != nil {
		return ""
	}
	return string(value[:n])
}

// s3fs mounts a prefix of the bucket until the test ends.
func (b *bucketStage) s3fs(prefix string) string {
	b.t.Helper()
	if err := b.s.Put(b.t.Context(), prefix+"/", nil, nil); err != nil { // it mounts none that is not there
		b.t.Fatal(err)
	}
	dir := b.w.Mkdir("s3fs", 0o755)
	password := b.w.Write("config/s3fs", b.s.AccessKey+":"+b.s.SecretKey+"\n", 0o600)
	cmd := exec.CommandContext(context.Background(), "s3fs", b.s.Bucket+":/"+prefix, dir, "-f", "-o", "url="+b.s.Endpoint,
		"-o", "use_path_request_style", "-o", "use_xattr", "-o", "passwd_file="+password, "-o", "stat_cache_expire=1")
	ended, _, err := tied.Start(cmd, syscall.SIGTERM)
	assert.OK(b.t, err)
	b.t.Cleanup(func() {
		out, err := exec.Command("fusermount", "-u", dir).CombinedOutput()
		assert.True(b.t, err == nil, err, out)
		<-ended
	})
	var here, above syscall.Stat_t
	harness.Eventually(b.t, "s3fs mounts", func() bool {
		return syscall.Stat(dir, &here) == nil && syscall.Stat(b.w.Dir, &above) == nil && here.Dev != above.Dev
	})
	return dir
}
