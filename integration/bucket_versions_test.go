package integration

import (
	"encoding/json"
	"errors"
	"os"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/s3server"
)

// Files of a bucket with versioning that were never read here are overwritten and replaced;
// a restore finds what they had among the versions. (None is removed: to this server a
// deletion marker is an object, over which none may be created.)
func TestBucketVersionsAreAsked(t *testing.T) {
	t.Parallel()
	s := s3server.StartVersioned(t)
	b := newBucketStage(t, s, s.Endpoint)
	was := map[string]string{"d/overwritten": "first", "d/replaced": "second"}
	for name, content := range was {
		assert.OK(t, s.Put(t.Context(), "team/ws/"+name, []byte(content), nil))
	}
	m := b.w.Mount("@acme/bucket")
	_, err := os.ReadDir(m.Dir + "/d")
	err = errors.Join(err, os.WriteFile(m.Dir+"/d/overwritten", []byte("ours"), 0o644),
		os.WriteFile(m.Dir+"/d/new", []byte("new"), 0o644), os.Rename(m.Dir+"/d/new", m.Dir+"/d/replaced"))
	assert.OK(t, err)
	b.w.MustRun("commit", m.Dir)
	for name := range was {
		var log struct{ Versions []struct{ ID string } }
		if err := json.Unmarshal([]byte(b.w.MustRun("log", "--json", m.Dir, name)), &log); err != nil || len(log.Versions) == 0 {
			t.Fatalf("the history of %s: %+v, %v", name, log, err)
		}
		b.w.MustRun("restore", m.Dir, name, "--before", "--to", log.Versions[len(log.Versions)-1].ID)
	}
	for name, content := range was {
		if got, err := os.ReadFile(m.Dir + "/" + name); string(got) != content || err != nil {
			t.Errorf("%s: got %q, %v; want %q", name, got, err, content)
		}
	}
}
