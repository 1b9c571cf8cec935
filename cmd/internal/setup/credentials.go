package setup

import (
	"regexp"
	"slices"
	"strings"

	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/mountspec"
	"github.com/wsmount/wsmount/mountspec/host/configedit"
	"github.com/wsmount/wsmount/mountspec/host/origin"
	"github.com/wsmount/wsmount/mountspec/secrets"
)

// credentials say where the host keeps the secret of a store, and how the manifest names it.
type credentials struct {
	slug      string   // of the secret; empty: there are none
	named     []string // variables by which the manifest names it; none: by the slug
	source    string   // where the host keeps it, without its end; empty: in the variables of named
	variables []string // that have it
	agent     bool     // those of the user's ssh-agent
	p         provider
}

const credentialsHint = "write env:VARIABLE,..., file:PATH, command:PROGRAM ARGUMENTS, or none"

var slugForm = regexp.MustCompile(`^[a-z][a-z0-9]*(-[a-z0-9]+)*[a-z0-9]$`)

// slugOf is the secret of a workspace: its own address, if that can be one.
func slugOf(a mountspec.Address) string {
	if slugForm.MatchString(a.Owner) && slugForm.MatchString(a.Slug) {
		return a.Owner + "/" + a.Slug
	}
	return "store/of-" + strings.Trim(regexp.MustCompile(`-+`).ReplaceAllString(a.Owner+"-"+a.Slug, "-"), "-")
}

// readCredentials reads Options.Credentials. Variables that a store's own tools know are
// granted as they are, unless the host has them as a secret: a second entry would change
// them for other workspaces.
func readCredentials(p provider, o Options, taken func(variable string) bool) (credentials, error) {
	none := credentials{p: p}
	how, rest, _ := strings.Cut(o.Credentials, ":")
	bad := func(format string, args ...any) (credentials, error) {
		return none, exit.New(exit.Usage, "--credentials: "+format, args...).Hint("%s", credentialsHint)
	}
	isSSH, isDaemon := strings.HasPrefix(o.Endpoint, "ssh://") || strings.Contains(o.Endpoint, "@"), strings.HasPrefix(o.Endpoint, "git://")
	switch {
	case len(p.usual) == 0:
		if o.Credentials != "" {
			return bad("%s needs none", p.name)
		}
		return none, nil
	case how == "none", isDaemon && p.name == origin.GitHub:
		return none, nil
	case how == "agent", how == "" && isSSH && p.name == origin.GitHub:
		if p.name != origin.GitHub || !isSSH {
			return bad("an ssh-agent is for a git server of ssh://")
		}
		none.agent = true
		return none, nil
	case isSSH && p.name == origin.GitHub:
		return bad("a git server of ssh:// is reached with those of an ssh-agent, or with a secret that providers.github.ssh of the host configuration names")
	}
	c := credentials{p: p, slug: slugOf(o.ID)}
	if p.name == origin.GitHub {
		c.named = p.usual // the inventory binds it to the secret
	}
	switch how {
	case "", "env":
		c.variables = p.usual
		if rest != "" {
			c.variables = strings.Split(rest, ",")
		}
		if slices.ContainsFunc(c.variables, func(name string) bool { return !secrets.IsEnvName(name) }) {
			return bad("write the names of variables, never a value")
		}
		if len(c.variables) > len(p.fields) || len(c.variables) < len(p.usual) {
			return bad("%s has %s, each in a variable", p.name, strings.Join(p.fields[:len(p.usual)], " and "))
		}
		if slices.Equal(c.variables, p.usual) && !slices.ContainsFunc(p.usual, taken) {
			c.named = p.usual
			return c, nil
		}
		c.source = "env: " + variables(p.fields, c.variables)
	case "file":
		path, err := expand(rest)
		if err != nil {
			return bad("%w", err)
		}
		c.source = "file: " + configedit.Text(path) + c.format()
	case "command":
		words := strings.Fields(rest)
		if len(words) == 0 {
			return bad("it names no program")
		}
		for i, w := range words {
			words[i] = configedit.Text(w)
		}
		c.source = "command: [" + strings.Join(words, ", ") + "]" + c.format()
	default:
		return bad("%.20q is not understood", how)
	}
	return c, nil
}

// advice is the advice if a store refuses them.
func (c credentials) advice(o Options) string {
	switch {
	case len(c.variables) > 0:
		return "check what " + strings.Join(c.variables, " and ") + " hold, or name others with --credentials"
	case c.source != "":
		return "check what it gives: --credentials " + o.Credentials
	case c.agent:
		return "check that the ssh-agent has a key that the server knows: ssh-add -l"
	}
	return "name those that it asks for with --credentials: " + credentialsHint
}

// variables are the variables of a secret: one that is all of it, or one for each field.
func variables(fields, names []string) string {
	if fields[0] == "token" {
		return names[0]
	}
	var pairs []string
	for i, name := range names {
		pairs = append(pairs, fields[i]+": "+name)
	}
	return "{ " + strings.Join(pairs, ", ") + " }"
}

// format is the format of a file or output: plain text for a token, else JSON with its fields.
func (c credentials) format() string {
	if c.p.name == origin.GitHub {
		return ""
	}
	return ", format: json"
}

// inventory is the text of the SECRETS.md.
func (c credentials) inventory(o Options) []byte {
	bindings := ""
	if len(c.named) > 0 {
		bindings = "    metadata: { bindings: { env: [ " + strings.Join(c.named, ", ") + " ] } }\n"
	}
	return []byte("---\nsecrets:\n  - slug: " + c.slug + "\n    name: Credentials of the storage\n    description: " +
		configedit.Text("What the files of "+o.ID.String()+" are read and written with. Each host keeps the value.") + "\n" + bindings +
		"---\n\n# Secrets\n\nThe host configuration says where it is kept: `wsmount help config`, secrets and allow_env.\n")
}
