package all_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/all"
)

// A bucket is opened by the service that the configuration says, which refuses in its own name;
// s3 where none is said.
func TestKinds(t *testing.T) {
	for _, name := range []string{"cloud-bucket", "self-bucket"} {
		d, _ := all.Registry().Get(name)
		for kind, want := range map[string]string{"": "s3", "s3": "s3", "azure": "azure", "gcs": "gcs"} {
			_, err := d.Open(t.Context(), providers.Settings{Config: map[string]string{"kind": kind, "endpoint": "nowhere"}})
			refused := new(providers.Error)
			assert.True(t, errors.Is(err, providers.ErrInvalid) && errors.As(err, &refused) && refused.Provider == want, name, "of kind", kind, err, refused)
		}
		_, err := d.Open(t.Context(), providers.Settings{Config: map[string]string{"kind": "tape"}})
		assert.True(t, errors.Is(err, providers.ErrUnsupported) && strings.Contains(err.Error(), "tape"), name, err)
		assert.True(t, slices.Contains(d.Keys, "path_style") && slices.Contains(d.Keys, "account_name") && d.Promises.ListAfter, name, "keys", d.Keys, "promises", d.Promises)
	}
}
