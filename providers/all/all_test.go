package all_test

import (
	"slices"
	"testing"

	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/all"
)

func TestRegistry(t *testing.T) {
	want := []string{"cloud-bucket", "github", "mastra-azure", "mastra-s3", "memory", "self-bucket", "vault"}
	first, second := all.Registry(), all.Registry()
	if got := first.Names(); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	err := first.Register(providers.Driver{Name: "another", Open: second.List()[0].Open})
	if err != nil || len(second.Names()) != len(want) {
		t.Errorf("registries are not independent: %v, %q", err, second.Names())
	}
	for _, d := range first.List() {
		if d.Name != "another" && (d.Text == "" || !d.Promises.Writable) {
			t.Errorf("%s: text %q, promises %+v", d.Name, d.Text, d.Promises)
		}
	}
}

// TestBackends: memory can be kept on this machine without a configuration.
func TestBackends(t *testing.T) {
	r := all.Backends()
	if got := r.Protocols(); !slices.Equal(got, []string{"device-local"}) {
		t.Errorf("got %q", got)
	}
	if r == all.Backends() {
		t.Error("registries are not independent")
	}
}
