package s3

import (
	"testing"

	"github.com/wsmount/wsmount/providers/providertest"
	"github.com/wsmount/wsmount/providers/seam"
	"github.com/wsmount/wsmount/providers/seam/seamtest"
)

// TestSeam: a bucket is a place for memory.
func TestSeam(t *testing.T) {
	seamtest.Run(t, func(t providertest.T) seam.Backend {
		f := newFake()
		return seamtest.Shared(func() seam.Conditional { return seam.New(openFake(t, f, nil)) })
	})
}
