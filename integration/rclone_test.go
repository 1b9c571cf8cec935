package integration

import (
	"fmt"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/azureserver"
	"github.com/wsmount/wsmount/integration/gcsserver"
	"github.com/wsmount/wsmount/integration/internal/harness"
	"github.com/wsmount/wsmount/integration/s3server"
	"github.com/wsmount/wsmount/integration/tier"
)

// An rcloneRemote is a bucket that rclone reaches as well.
type rcloneRemote struct {
	bucket harness.Bucket
	remote string // of rclone's configuration
	name   string // of the bucket there
}

// rcloneRemotes are those of each service.
var rcloneRemotes = map[string]func(t *testing.T) rcloneRemote{
	"s3": func(t *testing.T) rcloneRemote {
		s := s3server.Start(t, s3server.Default())
		provider := "Minio"
		if s.Kind() == s3server.Versitygw {
			provider = "Other\nlist_url_encode = false" // which it does not do
		}
		return rcloneRemote{harness.S3(s), fmt.Sprintf("type = s3\nprovider = "+provider+"\nendpoint = %s\naccess_key_id = %s\nsecret_access_key = %s\n",
			s.Endpoint, s.AccessKey, s.SecretKey), s.Bucket}
	},
	"azure": func(t *testing.T) rcloneRemote {
		s := azureserver.Start(t)
		return rcloneOfAzure(t, harness.OfAzure(s), s.Endpoint)
	},
	"gcs": func(t *testing.T) rcloneRemote {
		return rcloneOfGCS(harness.OfGCS(gcsserver.Start(t)), gcsserver.Bucket)
	},
}

// rcloneOfAzure: of all that rclone takes, a signed URL alone can be of a host without TLS.
func rcloneOfAzure(t *testing.T, b harness.Bucket, endpoint string) rcloneRemote {
	t.Helper()
	signed := assert.Of(azureserver.SignedURL(endpoint)).OK(t)
	return rcloneRemote{b, "type = azureblob\nsas_url = " + signed + "\n", azureserver.Container}
}

func rcloneOfGCS(b harness.Bucket, name string) rcloneRemote {
	return rcloneRemote{b, "type = google cloud storage\nanonymous = true\nbucket_policy_only = true\nendpoint = " + b.Endpoint + "/storage/v1/\n", name}
}

// rclone keeps content and times, which both read of each other; of its links
// and empty directories wsmount makes files, and nothing.
func TestInteroperateWithRclone(t *testing.T) {
	t.Parallel()
	tier.RequireTools(t, "rclone")
	for name, start := range rcloneRemotes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := start(t)
			b := newStageOf(t, r.bucket, r.bucket.Endpoint)
			b.w.Write("config/rclone.conf", "[b]\n"+r.remote, 0o600)
			rclone := func(args ...string) {
				t.Helper()
				cmd := b.w.Command(t.Context(), "rclone", append([]string{"--config", b.w.Path("config/rclone.conf")}, args...)...)
				out, err := cmd.CombinedOutput()
				assert.Must(t, err == nil, "rclone", args, out, err)
			}
			with := keeps{slashes: r.bucket.Kind == "azure"}
			disk := b.w.Mkdir("disk", 0o755)
			fillAll(t, disk, with)
			rclone("copy", disk, "b:"+r.name+"/team/ws")
			m := b.w.Mount("@acme/bucket")
			agree(t, "wsmount, of what rclone wrote", m.Dir, with)

			b.workspace("ours", b.bucket.Endpoint, "team/ours")
			ours := b.w.Mount("@acme/ours")
			fillAll(t, ours.Dir, with)
			ours.Stop()
			back := b.w.Mkdir("back", 0o755)
			rclone("copy", "--exclude", "/link", "--exclude", "/.wsmount/**", "b:"+r.name+"/team/ours", back)
			agree(t, "rclone, of what wsmount wrote", back, with)
		})
	}
}
