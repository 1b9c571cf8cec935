package integration

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/integration/s3server"
)

// An object keeps what it is served with, whatever programs do to its file.
func TestBucketKeepsHeaders(t *testing.T) {
	t.Parallel()
	s := s3server.Start(t, s3server.Default())
	b := newBucketStage(t, s, s.Endpoint)
	const page = "text/html, max-age=60, gzip, inline"
	files := map[string]struct {
		do   func(path string) error
		want string
	}{
		"chmod": {func(path string) error { return os.Chmod(path, 0o600) }, page},
		"local": {func(path string) error {
			_, err := os.ReadFile(path)
			return errors.Join(err, os.Chmod(path, 0o600))
		}, page},
		"xattr": {func(path string) error { return unix.Setxattr(path, "user.x", []byte("y"), 0) }, page},
		"mv": {func(path string) error {
			return errors.Join(os.Rename(path, path+".tmp"), os.Rename(path+".tmp", path))
		}, page},
		"save":   {func(path string) error { return os.WriteFile(path, []byte("new"), 0o644) }, "text/html, max-age=60, , inline"},
		"atomic": {func(path string) error { return exec.Command("sed", "-i", "s/old/new/", path).Run() }, "text/html, max-age=60, , inline"},
	}
	for name := range files {
		_, err := s.Client().PutObject(t.Context(), &s3.PutObjectInput{Bucket: &s.Bucket, Key: aws.String("team/ws/" + name),
			Body: strings.NewReader("old"), ContentType: aws.String("text/html"), CacheControl: aws.String("max-age=60"),
			ContentEncoding: aws.String("gzip"), ContentDisposition: aws.String("inline")})
		if err != nil {
			t.Fatal(err)
		}
	}
	m := b.w.Mount("@acme/bucket")
	for name, file := range files {
		if err := file.do(m.Dir + "/" + name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := os.WriteFile(m.Dir+"/new.json", []byte("{}"), 0o644); err != nil {
		t.Fatal(err)
	}
	m.Stop()
	for name, file := range files {
		if got := servedAs(t, s, "team/ws/"+name); got != file.want {
			t.Errorf("%s: served as %q, want %q", name, got, file.want)
		}
	}
	if got := servedAs(t, s, "team/ws/new.json"); got != "application/json, , , " {
		t.Errorf("a new file is served as %q", got)
	}
}

// servedAs are the headers of an object.
func servedAs(t *testing.T, s *s3server.Server, key string) string {
	t.Helper()
	out, err := s.Client().HeadObject(t.Context(), &s3.HeadObjectInput{Bucket: &s.Bucket, Key: &key})
	if err != nil {
		t.Fatal(err)
	}
	return aws.ToString(out.ContentType) + ", " + aws.ToString(out.CacheControl) + ", " + aws.ToString(out.ContentEncoding) + ", " + aws.ToString(out.ContentDisposition)
}
