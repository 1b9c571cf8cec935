package facts

import (
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/mountspec/policy"
)

const whole = `
business_hours: { zone: UTC, days: [monday, friday], from: "09:00", to: "24:00" }
addresses: [10.1.2.3, "2001:db8::1"]
mfa: 2026-11-20T08:00:00Z
approvals:
  - { by: operator://ann, role: owner, of: "@acme/*", actions: ["storage:push"], at: 2026-11-20T09:00:00Z, until: 2026-11-20T10:00:00Z }
signatures:
  - { by: operator://ann, role: owner, sha256: 5eeb1b2d8d6a6c4a4b7b1f0c2e9a7f3d5eeb1b2d8d6a6c4a4b7b1f0c2e9a7f3d }
`

// put writes a facts file that only the user can write.
func put(t *testing.T, path, text string) {
	t.Helper()
	next := path + ".next"
	assert.OK(t, os.WriteFile(next, []byte(text), 0o600))
	assert.OK(t, os.Rename(next, path))
}

func place(t *testing.T) string {
	t.Helper()
	dir := assert.Of(filepath.EvalSymlinks(t.TempDir())).OK(t)
	assert.OK(t, os.Chmod(dir, 0o700))
	return filepath.Join(dir, "facts.yaml")
}

// All that a file shows is there, approvals for the workspaces that they are of.
func TestFacts(t *testing.T) {
	f := File{Path: place(t)}
	put(t, f.Path, whole)
	got := f.For("acme", "ops")
	assert.Equal(t, got.Problem, "", "problem")
	h := got.Hours
	assert.True(t, h != nil && h.Zone == time.UTC && h.Days == [7]bool{1: true, 5: true} && h.From == 9*time.Hour && h.To == 24*time.Hour, "hours", h)
	assert.True(t, len(got.Addresses) == 2 && got.Addresses[0] == netip.MustParseAddr("10.1.2.3"), "addresses", got.Addresses)
	assert.True(t, got.MFA.Equal(time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC)), "second factor", got.MFA)
	assert.True(t, len(got.Approvals) == 1 && got.Approvals[0].Until.Equal(got.MFA.Add(2*time.Hour)), "approvals", got.Approvals)
	assert.Equal(t, len(got.Signatures), 1, "signatures")
	assert.Equal(t, len(f.For("acme-evil", "ops").Approvals), 0, "approvals of another owner")
}

// What is written while workspaces are mounted counts at once, and what cannot be read or
// trusted shows nothing and says so.
func TestFactsChange(t *testing.T) {
	f := File{Path: place(t)}
	nothing := func(why string) {
		t.Helper()
		got := f.For("acme", "ops")
		assert.True(t, strings.Contains(got.Problem, why), "problem", got.Problem)
		got.Problem = ""
		assert.True(t, got.Hours == nil && got.MFA.IsZero() && got.Addresses == nil && got.Approvals == nil && got.Signatures == nil, "shown", got)
	}
	nothing("no such file")
	put(t, f.Path, "mfa: 2026-11-20T08:00:00Z\n")
	assert.False(t, f.For("acme", "ops").MFA.IsZero(), "no second factor")
	put(t, f.Path, "mfa: 2026-11-20T09:00:00Z\n")
	assert.Equal(t, f.For("acme", "ops").MFA.Hour(), 9, "hour of the second factor")
	assert.OK(t, os.Chmod(f.Path, 0o666))
	nothing("can be written by others")
	for _, text := range []string{
		"mfa: yesterday\n", "maf: 2026-11-20T09:00:00Z\n", "addresses: [10.1]\n",
		"business_hours: { zone: UTC, days: [monday], from: \"17:00\", to: \"09:00\" }\n",
		"business_hours: { zone: Nowhere/Here, days: [monday], from: \"09:00\", to: \"17:00\" }\n",
		"business_hours: { zone: UTC, days: [], from: \"09:00\", to: \"17:00\" }\n",
		"approvals: [ { by: operator://ann, role: owner, of: \"@acme/*\", actions: [\"storage:push\"] } ]\n",
		"signatures: [ { by: operator://ann, role: owner, sha256: 5e } ]\n",
		strings.Replace(whole, "by: operator://ann, role: owner, of", "by: ann, role: owner, of", 1),
		strings.Replace(whole, "by: operator://ann, role: owner, of", "by: org://acme, role: owner, of", 1),
		strings.Replace(whole, "by: operator://ann, role: owner, sha", "by: role://owner, role: owner, sha", 1),
	} {
		put(t, f.Path, text)
		nothing("facts.yaml")
	}
	assert.Equal(t, (&File{}).For("acme", "ops").Problem, "", "problem of a host that shows nothing")
	var none policy.Facts
	assert.Equal(t, (&File{}).For("acme", "ops").MFA, none.MFA, "second factor of a host that shows nothing")
}
