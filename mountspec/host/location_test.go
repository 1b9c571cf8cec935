package host

import (
	"errors"
	"fmt"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
)

// Services that are asked where they are when a manifest names no endpoint.
func TestServicesOwnEndpoints(t *testing.T) {
	for _, c := range []struct {
		name, storage string
		endpoints     []string
	}{
		{"s3", `{ inline: { provider: self-bucket, config: { kind: s3, region: eu-west-1, bucket: data, prefix: x } } }`, []string{"https://s3.eu-west-1.amazonaws.com", "https://data.s3.eu-west-1.amazonaws.com"}},
		{"gcs", `{ inline: { provider: self-bucket, config: { kind: gcs, bucket: data, prefix: x } } }`, []string{"https://storage.googleapis.com"}},
		{"azure", `{ inline: { provider: mastra-azure, config: { container: data, accountName: acme } } }`, []string{"https://acme.blob.core.windows.net"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			w.manifest("ws", "@acme/ops", c.storage)
			assert.Slice(t, w.ok("ws", ResolveOptions{Trust: true}).Grants.Endpoints, c.endpoints)
		})
	}
}

func TestServiceWithoutEndpoint(t *testing.T) {
	w := newWorld(t)
	w.manifest("ws", "@acme/ops", `{ inline: { provider: self-bucket, config: { kind: azure, bucket: data, prefix: x } } }`)
	w.refused("ws", ResolveOptions{Trust: true}, Unresolvable, "no endpoint")
}

func TestExitCodes(t *testing.T) {
	for class, want := range map[Class]int{Invalid: 3, Unresolvable: 4, Denied: 5} {
		err := fmt.Errorf("mount: %w", &Error{Class: class, What: "x"})
		var e *Error
		assert.Must(t, errors.As(err, &e), err)
		assert.Equal(t, e.ExitCode(), want, "class", class)
	}
}
