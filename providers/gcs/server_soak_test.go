//go:build soak

package gcs

import (
	"crypto/md5"
	"fmt"
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/gcsserver"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/internal/bucket"
)

// TestFakeGCSServer: another program's reading of the service takes our requests. It takes
// minutes to build.
//
// It is no service to hold a provider to its contract on: it knows the condition of
// objects.insert alone. Where it is wrong, a test below says so by its name, and fails when
// a new version is right.
func TestFakeGCSServer(t *testing.T) {
	server := gcsserver.StartEmulator(t)
	settings := providers.Settings{Logger: slog.New(slog.DiscardHandler), Now: time.Now}
	s, way, err := connect(t.Context(), settings, bucket.Place{Bucket: server.Bucket, Endpoint: server.Endpoint, Credentials: "none"})
	assert.OK(t, err)
	t.Cleanup(way.Close)
	for name, test := range map[string]func(t *testing.T, s *store){
		"put":                                   serverPut,
		"list":                                  serverList,
		"parts":                                 serverParts,
		"copy":                                  serverCopy,
		"wrong-rewrite-ignores-if":              serverIgnoresRewrite,
		"wrong-compose-ignores-if":              serverIgnoresCompose,
		"wrong-delete-ignores-if":               serverIgnoresDelete,
		"wrong-download-without-metageneration": serverForgetsMetageneration,
	} {
		t.Run(name, func(t *testing.T) { test(t, s) })
	}
}

// outgoing is a body whose MD5 is said ahead.
func outgoing(t *testing.T, content string) *bucket.Outgoing {
	body, sum := bucket.NewOutgoing(t.Context(), providers.String(content)), md5.Sum([]byte(content))
	body.MD5 = &sum
	return body
}

func serverKeep(t *testing.T, s *store, key, content string, m bucket.Making) bucket.Object {
	t.Helper()
	return assert.Of(s.Put(t.Context(), key, outgoing(t, content), m)).OK(t, key)
}

var ifAbsent = bucket.Making{If: providers.IfAbsent()}

func serverPut(t *testing.T, s *store) {
	made := serverKeep(t, s, "put/a b+c/é", "content", bucket.Making{Metadata: map[string]string{"colour": "red"}, Headers: bucket.Headers{ContentType: "text/x-own"}})
	o := assert.Of(s.Head(t.Context(), "put/a b+c/é")).OK(t)
	assert.Equal(t, o.ETag, made.ETag)
	assert.Equal(t, o.Size, int64(len("content")))
	assert.Equal(t, o.MD5, fmt.Sprintf("%x", md5.Sum([]byte("content"))))
	assert.Equal(t, o.Metadata["colour"], "red")
	assert.Equal(t, o.Headers.ContentType, "text/x-own")
	assert.Is(t, assert.ErrOf(s.Put(t.Context(), "put/a b+c/é", outgoing(t, "other"), ifAbsent)), providers.ErrConflict, "over a file")
	wrong := outgoing(t, "content")
	wrong.MD5[0]++
	assert.Is(t, assert.ErrOf(s.Put(t.Context(), "put/broken", wrong, ifAbsent)), providers.ErrCorrupt, "broken on the way")
}

func serverList(t *testing.T, s *store) {
	for _, key := range []string{"list/a", "list/d/", "list/d/x", "list/e/y", "list/z"} {
		serverKeep(t, s, key, "", bucket.Making{Metadata: map[string]string{"of": key}})
	}
	for _, c := range []struct {
		q    bucket.Query
		want []string
	}{
		{bucket.Query{Prefix: "list/", Grouped: true}, []string{"list/a list/a", "list/d/ list/d/", "list/z list/z", "list/e/ "}},
		{bucket.Query{Prefix: "list/", After: "list/d/"}, []string{"list/d/x list/d/x", "list/e/y list/e/y", "list/z list/z"}},
	} {
		page := assert.Of(s.List(t.Context(), c.q)).OK(t)
		var got []string
		for _, it := range page.Items {
			got = append(got, it.Key+" "+it.Metadata["of"])
		}
		assert.Slice(t, got, c.want)
	}
}

func serverParts(t *testing.T, s *store) {
	id := assert.Of(s.Begin(t.Context(), "parts/large", bucket.Making{})).OK(t)
	u := bucket.Upload{Key: "parts/large", ID: id}
	var parts []bucket.Part
	for n := range 40 {
		part := assert.Of(s.Part(t.Context(), u, n+1, bucket.NewOutgoing(t.Context(), providers.String("x")))).OK(t)
		part.N, part.Size = n+1, 1
		parts = append(parts, part)
	}
	o := assert.Of(s.Complete(t.Context(), u, parts, bucket.Making{Metadata: map[string]string{"colour": "red"}})).OK(t)
	assert.Equal(t, o.Size, int64(40))
	assert.Equal(t, o.Metadata["colour"], "red")
}

func serverCopy(t *testing.T, s *store) {
	from := serverKeep(t, s, "copy/from", "content", bucket.Making{})
	o := assert.Of(s.Copy(t.Context(), from, "copy/to", bucket.Making{Metadata: map[string]string{"colour": "red"}})).OK(t)
	assert.Equal(t, o.Size, int64(len("content")))
	assert.Equal(t, o.Metadata["colour"], "red")
}

func serverIgnoresRewrite(t *testing.T, s *store) {
	from := serverKeep(t, s, "rewrite", "content", bucket.Making{})
	assert.Is(t, assert.ErrOf(s.Copy(t.Context(), from, "rewrite", ifAbsent)), nil)
}

func serverIgnoresCompose(t *testing.T, s *store) {
	from := serverKeep(t, s, "compose", "content", bucket.Making{})
	assert.Is(t, assert.ErrOf(s.compose(t.Context(), "compose", []source{{"compose", from.ETag}}, bucket.Making{If: stale})), nil)
}

// serverIgnoresDelete: it also answers with a document, which the service does not, so the
// deletion is not believed.
func serverIgnoresDelete(t *testing.T, s *store) {
	serverKeep(t, s, "delete", "content", bucket.Making{})
	assert.Is(t, s.Delete(t.Context(), "delete", stale), providers.ErrUnavailable)
	_, err := s.Head(t.Context(), "delete")
	assert.Is(t, err, providers.ErrUnavailable, "gone, and it does not say what") // "Not Found"
}

func serverForgetsMetageneration(t *testing.T, s *store) {
	serverKeep(t, s, "download", "content", bucket.Making{})
	_, body, err := s.Get(t.Context(), "download", bucket.Range{})
	if err == nil {
		_, err = io.Copy(io.Discard, body)
		body.Close()
	}
	assert.Is(t, err, providers.ErrCorrupt)
}
