package integration

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/s3server"
)

// An object keeps what it is served with, whatever programs do to its file.
func TestBucketKeepsHeaders(t *testing.T) {
	t.Parallel()
	s := s3server.Start(t, s3server.Default())
	b := newBucketStage(t, s, s.Endpoint)
	const page, saved = "text/html, max-age=60, gzip, inline, team=web", "text/html, max-age=60, , inline, team=web"
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
		"touch":  {func(path string) error { return os.Chtimes(path, time.Time{}, time.Unix(1e9, 0)) }, page},
		"append": {func(path string) error { return appends(path, "more") }, saved},
		"save":   {func(path string) error { return os.WriteFile(path, []byte("new"), 0o644) }, saved},
		"atomic": {func(path string) error { return exec.Command("sed", "-i", "s/old/new/", path).Run() }, saved},
	}
	for name := range files {
		_, err := s.Client().PutObject(t.Context(), &s3.PutObjectInput{Bucket: &s.Bucket, Key: aws.String("team/ws/" + name),
			Body: strings.NewReader("old"), ContentType: aws.String("text/html"), CacheControl: aws.String("max-age=60"),
			ContentEncoding: aws.String("gzip"), ContentDisposition: aws.String("inline"), Tagging: aws.String("team=web")})
		assert.OK(t, err)
	}
	m := b.w.Mount("@acme/bucket")
	for name, file := range files {
		assert.Is(t, file.do(m.Dir+"/"+name), nil, name)
	}
	assert.OK(t, os.WriteFile(m.Dir+"/new.json", []byte("{}"), 0o644))
	m.Stop()
	for name, file := range files {
		assert.Equal(t, servedAs(t, s, "team/ws/"+name), file.want, name, "served as")
	}
	assert.Equal(t, servedAs(t, s, "team/ws/new.json"), "application/json, , , , ", "a new file is served as")
}

// servedAs are the headers of an object, and its tags.
func servedAs(t *testing.T, s *s3server.Server, key string) string {
	t.Helper()
	out, err := s.Client().HeadObject(t.Context(), &s3.HeadObjectInput{Bucket: &s.Bucket, Key: &key})
	assert.OK(t, err)
	tags, err := s.Client().GetObjectTagging(t.Context(), &s3.GetObjectTaggingInput{Bucket: &s.Bucket, Key: &key})
	assert.OK(t, err)
	told := ""
	for _, one := range tags.TagSet {
		told += aws.ToString(one.Key) + "=" + aws.ToString(one.Value)
	}
	return aws.ToString(out.ContentType) + ", " + aws.ToString(out.CacheControl) + ", " + aws.ToString(out.ContentEncoding) + ", " + aws.ToString(out.ContentDisposition) + ", " + told
}
