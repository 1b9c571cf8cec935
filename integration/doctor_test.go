package integration

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/internal/badlink"
	"github.com/wsmount/wsmount/integration/internal/gate"
	"github.com/wsmount/wsmount/integration/s3server"
)

// A diagnosis is what `wsmount doctor --json` says.
type diagnosis struct {
	Checks []struct{ Name, Level, Says, Do string }
	Exit   int
}

// diagnose asks about a workspace.
func (b *bucketStage) diagnose(workspace string, flags ...string) diagnosis {
	b.t.Helper()
	r := b.w.Run(append([]string{"doctor", "--json", workspace}, flags...)...)
	var d diagnosis
	assert.OK(b.t, json.Unmarshal([]byte(r.Out), &d), r.Out, r.Err)
	for _, c := range d.Checks {
		assert.False(b.t, c.Level != "ok" && c.Do == "", "does not say what to do:", c)
	}
	return d
}

// store are the lines about the store.
func (d diagnosis) store() string {
	var lines []string
	for _, c := range d.Checks {
		if c.Name == "store /" {
			lines = append(lines, c.Level+" "+c.Says+"; do: "+c.Do)
		}
	}
	return strings.Join(lines, "\n")
}

func (d diagnosis) wants(t *testing.T, exit int, parts ...string) {
	t.Helper()
	for _, c := range d.Checks {
		assert.False(t, c.Name == "workspace", "cannot be resolved:", c.Says)
	}
	if got := d.store(); exit == 0 && strings.Contains(got, "problem") || exit != 0 && d.Exit != exit || !contains(got, parts...) {
		t.Errorf("exit %d, want %d, and %q in\n%s", d.Exit, exit, parts, got)
	}
}

// Doctor says of a bucket what a mount of it would meet, and leaves it as it was.
func TestDoctorOfABucket(t *testing.T) {
	t.Parallel()
	s := s3server.Start(t, s3server.Default())
	link, elsewhere := badlink.Start(t, s.Endpoint), gate.Open(t, s.Endpoint)
	endpoint := "http://" + link.Addr
	b := newBucketStage(t, s, endpoint)
	b.w.Grant(b.bucket, endpoint, elsewhere.Endpoint)
	assert.OK(t, s.Put(t.Context(), "team/ws/theirs", []byte("theirs"), nil))
	b.diagnose("@acme/bucket").wants(t, 0, "ok answer: bucket \""+s.Bucket+"\"", endpoint, "ok clock: ", "ok region: us-east-1", "ok versioning: off",
		"ok conditions: PUT with If-Match is honoured", "note conditions: CopyObject with If-None-Match is not honoured",
		"note conditions: DELETE with If-Match is not honoured", "MiB/s up", "MiB/s down", "ok scratch: ")
	b.diagnose("@acme/bucket", "--read-only").wants(t, 0, "ok answer: ", "note writing: not tried")
	text := b.w.Run("doctor", "@acme/bucket").Out
	assert.True(t, contains(text, "throughput: ", "store /"), "for people it says", text)

	link.Say(badlink.Answer{Status: http.StatusForbidden, Code: "RequestTimeTooSkewed"})
	b.diagnose("@acme/bucket").wants(t, exitDenied, "the clock of this machine and the service's differ")
	link.Say(badlink.Answer{Status: http.StatusForbidden, Code: "AccessDenied"})
	b.diagnose("@acme/bucket").wants(t, exitDenied, "AccessDenied", "let these credentials list, read, write and delete there")
	link.Mend()
	link.Down()
	b.diagnose("@acme/bucket").wants(t, exitUnreachable, "connection refused", link.Addr, "that the store can be reached")
	link.Mend()

	b.login("wrong-secret")
	b.diagnose("@acme/bucket").wants(t, exitDenied, "SignatureDoesNotMatch", "check the secret")
	b.login(s.SecretKey)
	none, abroad := b.bucket, b.bucket
	none.Config, abroad.Config = "region: us-east-1, bucket: none", "region: eu-west-1, bucket: "+s.Bucket
	b.w.BucketWorkspace(none, "none", endpoint, "a", "")
	b.diagnose("@acme/none").wants(t, exitUnresolvable, "bucket none does not exist at "+endpoint, "create it, or correct storage.config")
	b.w.BucketWorkspace(abroad, "abroad", endpoint, "b", "")
	if s.Kind() != s3server.Versitygw { // which minds, and is asked through a gate instead
		b.diagnose("@acme/abroad").wants(t, 0, "note region: the bucket is in us-east-1", "write us-east-1 as storage.config.region")
		link.Say(badlink.Answer{Status: http.StatusBadRequest, Code: "AuthorizationHeaderMalformed"})
	}
	elsewhere.Set(func(w http.ResponseWriter, r *http.Request, pass http.Handler) {
		if !r.URL.Query().Has("location") {
			pass.ServeHTTP(w, r)
			return
		}
		w.Header().Set("X-Amz-Request-Id", "1")
		fmt.Fprint(w, `<LocationConstraint xmlns="http://s3.amazonaws.com/doc/2006-03-01/">eu-west-1</LocationConstraint>`)
	})
	b.workspace("elsewhere", elsewhere.Endpoint, "c")
	b.diagnose("@acme/elsewhere").wants(t, 0, "note region: the bucket is in eu-west-1", "write eu-west-1 as storage.config.region")
	b.diagnose("@acme/abroad").wants(t, exitInvalid, "AuthorizationHeaderMalformed", "check storage.config of its manifest: region")
	link.Mend()

	keys, err := s.Keys(t.Context(), "")
	got := strings.Join(keys, " ")
	assert.True(t, err == nil && got == "team/ws/theirs", "the bucket has", got, err)
	_, err = os.Stat(b.w.Path("state", "acme"))
	assert.True(t, os.IsNotExist(err), "a working copy was made:", err)
	m := b.w.Mount("@acme/bucket") // and what it said would work does
	assert.OK(t, os.WriteFile(m.Dir+"/f", []byte("x"), 0o644), "write")
}
