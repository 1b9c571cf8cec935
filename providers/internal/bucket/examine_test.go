package bucket

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
)

// What is found of any bucket, around what its service says, and nothing of the trial is left.
func TestFindings(t *testing.T) {
	own := []providers.Finding{Good("region", "here")}
	for _, c := range []struct {
		name     string
		readOnly bool
		want     string
	}{
		{"written", false, "answer clock region conditions throughput scratch"},
		{"read", true, "answer clock region writing"},
	} {
		f := newFake()
		p := openFake(t, f, &Options{Prefix: "pre/", ReadOnly: c.readOnly})
		p.store = examined{p.store, Examination{
			Endpoint: "fake", Conditions: []providers.Finding{Good("conditions", "kept")},
			Own: func(context.Context) []providers.Finding { return own },
		}}
		var names []string
		for _, found := range p.Examine(t.Context()) {
			names = append(names, found.Name)
			assert.True(t, found.Says != "" && (found.Grade != providers.Good) == (found.Do != ""), c.name, found)
		}
		got := strings.Join(names, " ")
		assert.True(t, got == c.want && len(f.keys()) == 0, c.name, "found", got, c.want, "left", f.keys())
	}
	p := openFake(t, newFake(), nil)
	p.store.(*client).before = func(string, string) error { return errNoRoute }
	found := p.Examine(t.Context())
	grades := slices.DeleteFunc(found, func(f providers.Finding) bool { return f.Grade != providers.Bad })
	assert.True(t, len(grades) == 2, "without a network", found)
}

// examined is a store with more to find.
type examined struct {
	Store
	more Examination
}

func (e examined) Examination() Examination { return e.more }

// What is told long before a service refuses requests for their time.
func TestClock(t *testing.T) {
	for ahead, want := range map[time.Duration]providers.Grade{
		0: providers.Good, 4 * time.Second: providers.Good, -4 * time.Second: providers.Good,
		5 * time.Second: providers.Less, -time.Minute: providers.Less,
	} {
		assert.Equal(t, clock(ahead).Grade, want, ahead, "ahead")
	}
}
