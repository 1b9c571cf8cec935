package grant

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/tier"
)

func TestMatches(t *testing.T) {
	for _, pattern := range []string{"@acme/*", "@acme/ops", "*"} {
		assert.True(t, Matches(pattern, "acme", "ops"), pattern)
	}
	for pattern, addr := range map[string][2]string{
		"@acme/*":    {"acme-evil", "ops"}, // an owner that begins alike
		"@acme/**":   {"acme", "ops"},
		"@acme/ops":  {"acme", "ops2"},
		"@*/ops":     {"acme", "ops"},
		"@acme/o*":   {"acme", "ops"},
		"acme/*":     {"acme", "ops"},
		"@acme/../*": {"acme", "ops"},
		"":           {"acme", "ops"},
		"*":          {"", ""},
	} {
		assert.False(t, Matches(pattern, addr[0], addr[1]), pattern, "matches", addr)
	}
	assert.False(t, Matches("@acme/*", "acm", "ops"), "a shorter owner")
}

func TestBelow(t *testing.T) {
	for _, c := range []struct {
		name, root, target string
		want               bool
	}{
		{"itself", "/srv/ws", "/srv/ws", true},
		{"below", "/srv/ws", "/srv/ws/a/b", true},
		{"sibling that begins alike", "/srv/ws", "/srv/ws-evil", false},
		{"above", "/srv/ws", "/srv", false},
		{"up and out", "/srv/ws", "/srv/ws/../secret", false},
		{"root", "/", "/etc", true},
		{"relative", "/srv", "srv/x", false},
		{"relative root", ".", "/srv", false},
	} {
		assert.Equal(t, Below(c.root, c.target), c.want, c.name)
	}
}

func TestPrefix(t *testing.T) {
	for _, c := range []struct {
		name, granted, asked string
		want                 bool
	}{
		{"itself", "guilds/acme", "guilds/acme/", true},
		{"below", "guilds/acme/", "guilds/acme/ws/", true},
		{"sibling that begins alike", "guilds/acme", "guilds/acme-evil", false},
		{"above", "guilds/acme", "guilds", false},
		{"whole bucket asked", "guilds/acme", "", false},
		{"whole bucket granted", "", "anything", true},
		{"up and out", "guilds/acme", "guilds/acme/../evil", false},
		{"double slash", "guilds/acme", "guilds/acme//x", false},
		{"dot", "", "./x", false},
		{"control byte", "", "a\x00b", false},
	} {
		assert.Equal(t, Prefix(c.granted, c.asked), c.want, c.name)
	}
}

func TestOverlaps(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"a", "a/", true}, {"a", "a/b", true}, {"a/b", "a", true}, {"", "x", true},
		{"a", "ab", false}, {"ab", "a", false}, {"a/b", "a/c", false}, {"/srv/a", "/srv/a/b", true}, {"/srv/a", "/srv/b", false},
	} {
		assert.Equal(t, Overlaps(c.a, c.b), c.want, "Overlaps", c.a, c.b)
	}
}

// Whatever is granted below a prefix really begins with its bytes and a slash.
func TestPrefixIsOnBoundaries(t *testing.T) {
	gen := rapid.StringMatching(`[a-c./]{0,6}`)
	tier.Check(t, func(t *rapid.T) {
		g, a := gen.Draw(t, "granted"), gen.Draw(t, "asked")
		if !Prefix(g, a) {
			return
		}
		g, a = strings.Trim(g, "/"), strings.Trim(a, "/")
		assert.Must(t, g == "" || a == g || strings.HasPrefix(a, g+"/"), g, "grants", a)
	})
}
