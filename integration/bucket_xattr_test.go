package integration

import (
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/integration/assert"
)

// aclNamed is an ACL in the kernel's form: rw for the owner and user 9, r for the
// group, nothing for others.
const aclNamed = "\x02\x00\x00\x00\x01\x00\x06\x00\xff\xff\xff\xff\x02\x00\x06\x00\x09\x00\x00\x00" +
	"\x04\x00\x04\x00\xff\xff\xff\xff\x10\x00\x06\x00\xff\xff\xff\xff\x20\x00\x00\x00\xff\xff\xff\xff"

// All that a program can say of a file is there after it was sent to a bucket, for
// a machine that never saw it, whether that has hints or has to ask.
func TestBucketKeepsWhatIsSaidOfFiles(t *testing.T) {
	t.Parallel()
	eachServer(t, func(t *testing.T, b *bucketStage) {
		for _, flags := range [][]string{nil, {"--write-back"}} {
			m := b.w.Mount("@acme/bucket", flags...)
			if err := os.WriteFile(m.Dir+"/beside", nil, 0o644); err != nil { // in the end the root is not emptied
				t.Fatal(err)
			}
			tagAll(t, m.Dir)
			tagged(t, "where it was made", m.Dir)
			m.Stop()
			for _, hints := range []bool{true, false} {
				assert.OK(t, os.RemoveAll(b.w.Path("state", "acme")))
				if !hints {
					b.forgetHints()
				}
				m.Start()
				tagged(t, map[bool]string{true: "with hints", false: "without"}[hints], m.Dir)
				if err := os.Rename(m.Dir+"/said", m.Dir+"/renamed"); err != nil { // before anybody asked
					t.Fatal(err)
				}
				assert.OK(t, os.Rename(m.Dir+"/renamed", m.Dir+"/said"))
				m.Stop()
			}
			m.Start()
			tagged(t, "after renames", m.Dir)
			assert.Is(t, unix.Setxattr(m.Dir+"/said/file", "user.large", []byte(strings.Repeat("v", 2000)), 0), syscall.ENOSPC, "more than fits")
			assert.OK(t, os.RemoveAll(m.Dir+"/said"))
			m.Stop()
		}
	})
}

// forgetHints removes what wsmount keeps in the bucket for itself.
func (b *bucketStage) forgetHints() {
	b.t.Helper()
	const own = "team/ws/.wsmount/"
	keys, err := b.s.Keys(b.t.Context(), own)
	assert.Must(b.t, err == nil && len(keys) != 0, len(keys), "keys", err)
	for _, key := range keys {
		assert.OK(b.t, assert.ErrOf(b.s.Client().DeleteObject(b.t.Context(), &s3.DeleteObjectInput{Bucket: &b.s.Bucket, Key: aws.String(own + key)})))
	}
}

// tagAll makes a directory of all that can be said of files.
func tagAll(t *testing.T, dir string) {
	t.Helper()
	dir += "/said"
	for _, err := range []error{
		os.Mkdir(dir, 0o755), os.Mkdir(dir+"/sub", 0o750), os.Symlink("file", dir+"/link"),
		os.WriteFile(dir+"/file", []byte("text"), 0o600), os.WriteFile(dir+"/acl", nil, 0o600),
		unix.Setxattr(dir, "user.dir", []byte("1"), 0), unix.Setxattr(dir+"/sub", "user.sub", []byte("\x00\xff"), 0),
		unix.Setxattr(dir+"/file", "user.x", []byte("y"), 0), unix.Setxattr(dir+"/file", "user.gone", nil, 0),
		unix.Removexattr(dir+"/file", "user.gone"), os.Chmod(dir+"/file", 0o751), os.Chtimes(dir+"/file", made, made),
		unix.Setxattr(dir+"/acl", "system.posix_acl_access", []byte(aclNamed), 0),
	} {
		assert.OK(t, err)
	}
}

func tagged(t *testing.T, where, dir string) {
	t.Helper()
	dir += "/said"
	for name, want := range map[string]os.FileMode{
		"": os.ModeDir | 0o755, "/sub": os.ModeDir | 0o750, "/file": 0o751, "/acl": 0o660, "/link": os.ModeSymlink | 0o777,
	} {
		info, err := os.Lstat(dir + name)
		assert.True(t, err == nil && info.Mode() == want && (name != "/file" || info.ModTime().Equal(made)), where, name, info, err)
	}
	for _, x := range [][3]string{
		{"", "user.dir", "1"}, {"/sub", "user.sub", "\x00\xff"}, {"/file", "user.x", "y"}, {"/file", "user.gone", ""},
		{"/acl", "system.posix_acl_access", aclNamed},
	} {
		assert.Equal(t, xattrOf(dir+x[0], x[1]), x[2], where, x[1], "of", x[0])
	}
	assert.Of(os.Readlink(dir+"/link")).Equal(t, "file", where, "the link leads to")
}
