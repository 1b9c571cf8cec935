package mountarg

import (
	"fmt"
	"strings"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
)

func TestParse(t *testing.T) {
	for spec, want := range map[string]string{
		"at=/x,source=@a/b":                           "/x @a/b read-write false",
		"source=@a/b,at=/x/y,mode=read-only,optional": "/x/y @a/b read-only true",
		"at=/x,source=./lib,optional=false":           "/x ./lib read-write false",
		"at=/x,source=/srv/lib":                       "/x /srv/lib read-write false",
	} {
		m, err := one(spec)
		assert.Is(t, err, nil, spec)
		assert.Equal(t, fmt.Sprint(m.At, " ", m.Source.Value, " ", m.Mode, " ", m.Optional), want, spec)
	}
	for _, spec := range []string{"at=x,source=@a/b", "at=/x", "at=/,source=@a/b", "at=/a/../x,source=@a/b", "at=/a\nb,source=@a/b",
		"at=/.wsmount/x,source=@a/b", "at=/" + strings.Repeat("n", 256) + ",source=@a/b", "at=/x,source=@a/b,at=/y",
		"at=/x,source=@a/b,mode=ro", "at=/x,source=@a/b,readonly", ""} {
		assert.True(t, assert.ErrOf(one(spec)) != nil, spec, "is refused")
	}
}
