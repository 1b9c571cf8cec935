package providers_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
)

// full promises everything there is; a field that it forgets is found below.
var full = func() providers.Capabilities {
	var c providers.Capabilities
	v := reflect.ValueOf(&c).Elem()
	for i := range v.NumField() {
		if f := v.Field(i); f.Kind() == reflect.Bool {
			f.SetBool(true)
		}
	}
	c.Attributes = providers.AttrMode | providers.AttrOwner | providers.AttrModTime
	g := providers.GuardAtomic
	c.Conditions = providers.Conditions{Create: g, Replace: g, Delete: g, Copy: g, Move: g, SetAttr: g}
	c.Abilities = providers.AbilityCopy | providers.AbilityMove | providers.AbilityAttr | providers.AbilityParts |
		providers.AbilityWatch | providers.AbilityCommit | providers.AbilitySnapshot | providers.AbilityPush | providers.AbilitySync |
		providers.AbilityBranch | providers.AbilityRebase | providers.AbilityInspect | providers.AbilityDiffer | providers.AbilitySubmodule
	return c
}()

// Against a provider that promises nothing, each single requirement is missing, and is named.
func TestZeroPromisesNothing(t *testing.T) {
	typ := reflect.TypeFor[providers.Capabilities]()
	for i := range typ.NumField() {
		name := typ.Field(i).Name
		if name == "Parts" || name == "MaxSize" || name == "Names" {
			continue // limits, not promises
		}
		var need providers.Capabilities
		reflect.ValueOf(&need).Elem().Field(i).Set(reflect.ValueOf(full).Field(i))
		missing := providers.Capabilities{}.Missing(need)
		assert.True(t, len(missing) != 0 && len(missing[0]) >= len(name) && missing[0][:len(name)] == name, name, "missing", missing)
		missing = full.Missing(need)
		assert.True(t, missing == nil, name, "is missing where everything is promised:", missing)
	}
	missing := (providers.Capabilities{}).Missing(providers.Capabilities{})
	assert.True(t, missing == nil, "nothing needs", missing)
}

func TestMissingIsExact(t *testing.T) {
	have := providers.Capabilities{
		Writable: true, Attributes: providers.AttrMode, Abilities: providers.AbilityCopy,
		Conditions: providers.Conditions{Create: providers.GuardAtomic, Replace: providers.GuardChecked},
	}
	need := providers.Capabilities{
		Writable: true, Durable: true, Attributes: providers.AttrMode | providers.AttrOwner,
		Abilities:  providers.AbilityCopy | providers.AbilityPush | providers.AbilitySync,
		Conditions: providers.Conditions{Create: providers.GuardChecked, Replace: providers.GuardAtomic},
	}
	want := []string{"Durable", "Attributes(owner)", "Conditions.Replace(atomic)", "Abilities(push,sync)"}
	assert.Slice(t, have.Missing(need), want)
	err := error(&providers.CapabilityError{Provider: "p", Missing: want[:2]})
	assert.True(t, errors.Is(err, providers.ErrUnsupported) && err.Error() == `provider "p" does not promise Durable, Attributes(owner)`, "error:", err)
}

func TestNameLimits(t *testing.T) {
	all := providers.NameLimits{UTF8: true, Plain: true, XML: true, Lines: true, Slashes: true, Ending: "%2F", Own: ".own", Path: 20, DotGit: true}
	for _, c := range []struct {
		l     string
		says  string // "": it can be written
		limit error
	}{
		{"dir/plain", "", nil},
		{"dir/x%2F%2F", "", nil},
		{"dir%2F/x", "", nil}, // of a directory that is there
		{"dir/.own", "", nil},
		{"%~draft", "", nil},
		{"a\tb", "", nil},
		{"a\nb", "line breaks", providers.ErrInvalid},
		{`a\b/x`, "no backslash", providers.ErrInvalid},
		{"dir./x", "in a dot", providers.ErrInvalid},
		{".a.b", "", nil},
		{"dir/x%2F", "means another", providers.ErrInvalid},
		{"%2F%2F%2F", "means another", providers.ErrInvalid},
		{".own", "storage's own", providers.ErrInvalid},
		{".own/x", "storage's own", providers.ErrInvalid},
		{"\xff", "UTF-8", providers.ErrInvalid},
		{"a\x01b", "control", providers.ErrInvalid},
		{"dir/%~./x", "in a dot", providers.ErrInvalid},
		{"%~/x", "disagree", providers.ErrInvalid},
		{"%~a%00b", "disagree", providers.ErrInvalid},
		{"%+" + strings.Repeat("x", 253), "disagree", providers.ErrInvalid},
		{"dir/.GIT/x", "git's own", providers.ErrInvalid},
		{"dir/.gitignore", "", nil},
		{"a/path/of/more/bytes/x", "22 bytes, 20 fit", providers.ErrTooLarge},
	} {
		err := all.Check(providers.MustLocator(c.l))
		assert.True(t, errors.Is(err, c.limit) && (err == nil || strings.Contains(err.Error(), c.says)), c.l, "got", err, "want", c.says)
		assert.Is(t, (providers.NameLimits{}).Check(providers.MustLocator(c.l)), nil, c.l, "without limits")
	}
}
