//go:build soak

package integration

import (
	"testing"

	"github.com/wsmount/wsmount/integration/azureserver"
	"github.com/wsmount/wsmount/integration/internal/harness"
)

// Azurite takes a minute to fetch. fake-gcs-server ignores conditions, so it has no mount.
func init() {
	rcloneRemotes["azurite"] = func(t *testing.T) rcloneRemote {
		endpoint := azureserver.StartEmulator(t)
		return rcloneOfAzure(t, harness.Azure(endpoint), endpoint)
	}
}
