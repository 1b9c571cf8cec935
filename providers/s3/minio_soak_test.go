//go:build soak

package s3

import (
	"testing"

	"github.com/wsmount/wsmount/integration/s3server"
)

// MinIO takes minutes to build. What it does otherwise than versitygw, the bucket in memory of
// make test does as well: it encodes keys, and hides directories.
func TestMinIO(t *testing.T) { runServer(t, s3server.MinIO) }
