package reference

import (
	"slices"
	"strings"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/mountspec"
	"github.com/wsmount/wsmount/mountspec/host"
	"github.com/wsmount/wsmount/mountspec/host/facts"
)

func allProviders() []string { return append(mountspec.Providers(), mountspec.ProviderVault) }

// Whatever a parser reads is explained, and nothing else is.
func TestEveryKeyIsExplained(t *testing.T) {
	for _, name := range Names() {
		lacks := assert.Of(lacking(name, assert.Of(collect(name, allProviders())).OK(t))).OK(t)
		assert.Equal(t, strings.Join(lacks, "\n"), "", name)
	}
}

// Each key that has none of its own has an example, and each sentence ends.
func TestEveryKeyHasAnExample(t *testing.T) {
	for _, name := range Names() {
		p := assert.Of(Find(name, allProviders())).OK(t)
		found := assert.Of(collect(name, allProviders())).OK(t)
		for _, s := range p.Sections {
			for _, k := range s.Keys {
				assert.True(t, strings.HasSuffix(k.Text, "."), name, s.Title, k.Path, "ends in no sentence:", k.Text)
				assert.True(t, len(k.Example) <= 160 && !strings.Contains(k.Example, "\n"), name, s.Title, k.Path, "is no line:", k.Example)
			}
		}
		text := assert.Of(read(name)).OK(t)
		docs := assert.Of(documents(name)).OK(t)
		for _, s := range text.sections {
			for _, e := range s.entries {
				if k := found[s.name][plain(e.path)]; k != nil && !k.nests() && !strings.Contains(e.text, "has no effect") {
					assert.True(t, example(docs, s, e.path, k) != "", name, s.name, e.path, "has no example")
				}
			}
		}
	}
}

// What the steps tell one to write is valid.
func TestStepsAreValid(t *testing.T) {
	p := assert.Of(Find("config", nil)).OK(t)
	manifests, configs := 0, 0
	for _, s := range p.Sections {
		for block := range strings.SplitSeq(s.Intro, "\n\n") {
			if !strings.HasPrefix(block, "  ") {
				continue
			}
			text := strings.ReplaceAll(block[2:], "\n  ", "\n") + "\n"
			switch {
			case strings.HasPrefix(text, "---"):
				_, found := mountspec.ParseWorkspace(mountspec.Source{Name: "WORKSPACE.md", Data: []byte(text)}, mountspec.Options{Strict: true})
				assert.OK(t, found.Err(), text)
				manifests++
			case !strings.Contains(text, "wsmount "):
				_, found := host.ParseConfig([]byte(text), host.ParseOptions{Name: "/c.yaml"})
				assert.OK(t, found.Err(), text)
				configs++
			}
		}
	}
	assert.True(t, manifests == 2 && configs == 3, manifests, configs)
}

// What a key takes is said in few words, and what is needed is said.
func TestTypes(t *testing.T) {
	found := assert.Of(collect("manifest", allProviders())).OK(t)
	for path, want := range map[string]string{
		"workspace policy": "mapping, or a policy, or a list of such", "workspace identity": "an identity, or a list of such", "workspace owner.type": "guild | user | org",
		"code run": "mapping, or list of text, or text", "storage read_only": "true | false", "storage sync.pull.ttl_seconds": "number",
		"workspace storage.inline": "a storage block", "mount source": "mapping, or text", "source local": "mapping, or text", "storage github config.repo": "text",
	} {
		i := strings.LastIndex(path, " ")
		k := found[path[:i]][path[i+1:]]
		assert.Equal(t, k.kind(), want, path)
	}
	assert.True(t, found["workspace"]["id"].required && !found["workspace"]["tags"].required, "what is needed")
}

// noteworthy are warnings that the examples are there to show.
var noteworthy = []string{"secret-slug-depth", "sketched-mounts", "agent-ignored", "default-credential"}

// What is shown is valid.
func TestExamplesAreValid(t *testing.T) {
	for _, d := range assert.Of(documents("config")).OK(t) {
		_, found := host.ParseConfig([]byte(d.text), host.ParseOptions{Name: "/home/ann/.config/wsmount/" + d.name, Home: "/home/ann"})
		if d.kind() == "facts" {
			found = facts.Check(d.name, []byte(d.text))
		}
		assert.OK(t, found.Err(), d.name)
	}
	manifests := assert.Of(documents("manifest")).OK(t)
	o := mountspec.Options{Registered: func(name string) bool { return slices.Contains(allProviders(), name) }}
	for _, d := range manifests {
		src := mountspec.Source{Name: d.name, Data: []byte(d.text)}
		var found mountspec.Findings
		switch d.kind() {
		case "workspace":
			_, found = mountspec.ParseWorkspace(src, o)
		case "storage":
			_, found = mountspec.ParseStorage(src, o)
		case "secrets":
			_, found = mountspec.ParseSecrets(src, o)
		case "sandbox":
			_, found = mountspec.ParseSandbox(src, o)
		case "code":
			_, found = mountspec.ParseCode(src, o)
		case "policy":
			_, found = mountspec.ParsePolicy(src, o)
		case "identity":
			_, found = mountspec.ParseIdentity(src, o)
		}
		for _, f := range found {
			assert.True(t, f.Severity == mountspec.Warning && slices.Contains(noteworthy, f.Rule), d.name, f)
		}
	}
}

// lacking are the keys without a sentence, and the sentences without a key.
func lacking(name string, found keys) ([]string, error) {
	text, err := read(name)
	if err != nil {
		return nil, err
	}
	var out []string
	written := map[string]map[string]bool{"": {}}
	for _, t := range text.sections {
		if written[t.name] == nil {
			written[t.name] = map[string]bool{}
		}
		for _, e := range t.entries {
			if written[t.name][plain(e.path)] {
				out = append(out, t.name+": "+e.path+" is there twice")
			}
			written[t.name][plain(e.path)] = true
			if found[t.name][plain(e.path)] == nil {
				out = append(out, t.name+": nothing reads "+e.path)
			}
		}
	}
	for section, of := range found {
		for path := range of {
			if !written[section][path] {
				out = append(out, section+": nothing is said of "+path)
			}
		}
	}
	slices.Sort(out)
	return out, nil
}
