package host

import (
	"context"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/mountspec"
	"github.com/wsmount/wsmount/mountspec/host/hostfile"
	"github.com/wsmount/wsmount/mountspec/host/origin"
	"github.com/wsmount/wsmount/mountspec/host/rowedit"
	"github.com/wsmount/wsmount/mountspec/host/yamledit"
)

// A remote is what lies at places, by what Location says of them, and who asked for it.
type remote struct {
	*world
	places map[string]origin.Recorded
	asked  []*Resolved
}

func newRemote(t *testing.T) *remote {
	w := newWorld(t)
	w.config = "allow_endpoints: [ \"https://git.acme.test\", \"https://s3.acme.test\" ]\nproviders: { github: { base_url: \"https://git.acme.test\" } }\n"
	return &remote{world: w, places: map[string]origin.Recorded{}}
}

func (r *remote) host() *Resolver {
	r.t.Helper()
	h := r.resolver()
	h.o.Open = func(_ context.Context, _ *Resolver, at *Resolved) (origin.Source, error) {
		r.asked = append(r.asked, at)
		files, ok := r.places[at.Location.String()]
		if !ok {
			return nil, unresolvable("", at.Location.String(), "make it", "nothing is there")
		}
		return files, nil
	}
	return h
}

func (r *remote) from(text string) origin.Origin {
	r.t.Helper()
	p := assert.Of(origin.ParsePlace(text)).OK(r.t)
	return origin.Origin{Place: p}
}

// manifestText is a WORKSPACE.md with a storage block and more.
func manifestText(id, storage string, more ...string) string {
	owner, _, _ := strings.Cut(strings.TrimPrefix(id, "@"), "/")
	return "---\nschema: workspace/v1\nid: \"" + id + "\"\nversion: 1.0.0\nname: A test\nowner: { type: org, id: ID-" + owner + ", slug: " + owner +
		" }\nstorage: " + storage + "\n" + strings.Join(append(more, ""), "\n") + "---\n"
}

const (
	inSite   = `{ inline: { provider: github, config: { owner: acme, repo: site, branch: main } } }`
	siteMain = "https://git.acme.test/acme/site#main"
)

// site is a workspace in a repository, with a manifest of each kind beside it.
func (r *remote) site() origin.Recorded {
	files := origin.Recorded{
		"WORKSPACE.md": manifestText("@acme/ops", `{ ref: ./storage/main.STORAGE.md }`, "sandbox: { ref: ./SANDBOX.md }", "code: { file: ./CODE.md }",
			"policy: { ref: ./team.POLICY.md }", "identity: [ { file: ./bot.IDENTITY.md } ]"),
		"storage/main.STORAGE.md": "---\nschema: storage/v1\nprovider: github\nconfig: { owner: acme, repo: site, branch: main }\nauth: { ref: ../.secrets/SECRETS.md, state: { env: [ GITHUB_TOKEN ] } }\n---\n",
		".secrets/SECRETS.md":     "---\nsecrets: [ { slug: github-token, name: Token, description: For the repository. } ]\n---\n",
		".secrets/ci/SECRETS.md":  "---\nsecrets: [ { slug: ci-token, name: Token, description: For CI. } ]\n---\n",
		"SANDBOX.md":              "---\nschema: sandbox/v1\nprovider: local\nconfig: {}\n---\n",
		"CODE.md":                 "---\nschema: code/v2\nid: \"@acme/code/site\"\nversion: 1.0.0\ndescription: A site.\nsource: { local: ./main.py }\nrun: python main.py\n---\n",
		"team.POLICY.md":          "---\nschema: policy/v1\ndefault: allow\n---\n",
		"bot.IDENTITY.md":         "---\nname: Bot\nemail: bot@acme.test\n---\n",
		"README.md":               "not asked for\n",
	}
	r.places[siteMain] = files
	return files
}

// A workspace is registered from where it lies: what its manifest names is fetched, and
// nothing else, and is what governs it until it is fetched again.
func TestAddFrom(t *testing.T) {
	r := newRemote(t)
	files := r.site()
	r.places["https://git.acme.test/acme/site"] = files
	for _, look := range []bool{true, false} {
		e := assert.Of(r.host().AddFrom(t.Context(), r.from("github:acme/site"), AddOptions{Look: look})).OK(t)
		if e.Address != acmeOps || len(e.Files) != len(files)-1 || e.From.Place.String() != "github:acme/site#main" {
			t.Errorf("entry %s, %d files from %v", e.Address, len(e.Files), e.From)
		}
		_, err := os.Stat(e.Path)
		assert.Equal(t, err == nil, !look, "copies are kept,", err)
		assert.Equal(t, e.AcceptedAt.IsZero(), look, "it is accepted")
	}
	got := r.ok("@acme/ops", ResolveOptions{})
	assert.Equal(t, got.Manifest, r.home+"/.config/wsmount/fetched/acme/ops/WORKSPACE.md")
	assert.Equal(t, got.Location.String(), siteMain)
	assert.Equal(t, got.Written(), "WORKSPACE.md of github:acme/site#main (then wsmount registry accept @acme/ops)")
	assert.Contains(t, explained(got), "fetched: from github:acme/site#main, and accepted 2026-11-20 12:00:00")
	assert.Equal(t, len(got.Governing), len(files)-1)
	for _, at := range r.asked {
		assert.True(t, at.ReadOnly.On() && at.Address.Owner == "acme", "it is read only, with the grants of acme")
	}

	// The copies are for people.
	assert.OK(t, os.RemoveAll(r.home+"/.config/wsmount/fetched"))
	r.ok("@acme/ops", ResolveOptions{})
	again := func() Change {
		t.Helper()
		return assert.Of(r.host().Accept(t.Context(), acmeOps, func(Change) bool { return true })).OK(t)
	}
	assert.True(t, again().Empty(), "nothing has changed")
	assert.OK(t, assert.ErrOf(os.Stat(got.Manifest)))

	// What changes there has no effect until it is accepted.
	files["team.POLICY.md"] = "---\nschema: policy/v1\ndefault: deny\n---\n"
	r.ok("@acme/ops", ResolveOptions{})
	assert.Contains(t, text(again()), "+default: deny")
	r.refused("@acme/ops", ResolveOptions{}, Denied, "policy does not let")
	kept, err := os.ReadFile(r.home + "/.config/wsmount/fetched/acme/ops/team.POLICY.md")
	assert.OK(t, err)
	assert.Equal(t, string(kept), files["team.POLICY.md"])

	// What is set is set in the copy, and what was fetched is fetched again all the same.
	r.configured(r.config + "workspaces: { \"@acme/ops\": { path: ~/.config/wsmount/fetched/acme/ops, name: A test } }\n")
	_, err = r.host().Set(t.Context(), acmeOps, []rowedit.Value{{Key: "name", Node: yamledit.Scalar("New")}}, func(Change) bool { return true })
	assert.OK(t, err)
	r.config = strings.Replace(r.config, "name: A test", "name: New", 1)
	assert.Contains(t, text(again()), "+name: A test")

	assert.OK(t, r.host().Remove(t.Context(), acmeOps.String()))
	assert.Is(t, assert.ErrOf(os.Stat(r.home+"/.config/wsmount/fetched/acme")), os.ErrNotExist, "the copies are gone, with")
}

// What a place says is believed as little as what a directory says, and less is read.
func TestAddFromRefuses(t *testing.T) {
	for _, c := range []struct {
		name    string
		place   string // besides the files of site
		id      mountspec.Address
		change  func(files origin.Recorded)
		class   Class
		says    string
		nowhere bool // it is refused before anything is asked
	}{
		{name: "another storage", change: func(f origin.Recorded) {
			f["storage/main.STORAGE.md"] = strings.Replace(f["storage/main.STORAGE.md"], "repo: site", "repo: other", 1)
		}, class: Denied, says: "acme/other#main"},
		{name: "another branch", change: func(f origin.Recorded) {
			f["storage/main.STORAGE.md"] = strings.Replace(f["storage/main.STORAGE.md"], "main }", "next }", 1)
		}, class: Denied, says: "acme/site#next"},
		{name: "another owner", change: func(f origin.Recorded) { f["WORKSPACE.md"] = strings.ReplaceAll(f["WORKSPACE.md"], "acme", "evil") }, class: Denied, says: "@evil/ops, and lies at a place of acme"},
		{name: "another id", id: mountspec.Address{Owner: "acme", Slug: "else"}, class: Denied, says: "says that it is @acme/ops"},
		{name: "no manifest", change: func(f origin.Recorded) { delete(f, "WORKSPACE.md") }, class: Unresolvable, says: "no WORKSPACE.md"},
		{name: "a manifest that is none", change: func(f origin.Recorded) { f["WORKSPACE.md"] = "hello" }, class: Invalid, says: "WORKSPACE.md of github:acme/site#main"},
		{name: "a file that is not there", change: func(f origin.Recorded) { delete(f, "CODE.md") }, class: Unresolvable, says: "code \"./CODE.md\" does not exist"},
		{name: "a file that is no manifest", change: func(f origin.Recorded) {
			f["WORKSPACE.md"] = strings.Replace(f["WORKSPACE.md"], "./CODE.md", "./.env", 1)
		}, class: Unresolvable, says: "no other file is fetched"},
		{name: "a file of a sibling", change: func(f origin.Recorded) {
			f["WORKSPACE.md"] = strings.Replace(f["WORKSPACE.md"], "ref: ./team.POLICY.md", "ref: ../shared/team.POLICY.md", 1)
		}, class: Denied, says: "leads out of the workspace"},
		{name: "credentials in it", change: func(f origin.Recorded) {
			f["storage/main.STORAGE.md"] = strings.Replace(f["storage/main.STORAGE.md"], "owner: acme", "token: ghp_0123456789abcdefghijABCDEFGHIJ012345, owner: acme", 1)
		}, class: Invalid, says: "main.STORAGE.md of github"},
		{name: "an endpoint that is not granted", place: "s3:bucket/ws", id: acmeOps, class: Denied, says: "not granted", nowhere: true},
		{name: "a bucket of nobody", place: "s3:bucket/ws", class: Unresolvable, says: "with whose grants", nowhere: true},
		{name: "a name that is none", place: "github:acme/a b", id: acmeOps, class: Unresolvable, says: "no such place", nowhere: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRemote(t)
			files := r.site()
			if c.change != nil {
				c.change(files)
			}
			from := r.from("github:acme/site#main")
			if c.place != "" {
				from = r.from(c.place)
				if c.id != (mountspec.Address{}) && from.Place.Kind != origin.GitHub {
					from.Endpoint = "https://evil.test"
				}
			}
			_, err := r.host().AddFrom(t.Context(), from, AddOptions{Address: c.id})
			e := checkError(t, err, c.class, c.says)
			assert.False(t, strings.Contains(e.Error()+e.Hint, "ghp_"), "a secret is shown:", e)
			assert.Equal(t, len(r.asked) == 0, c.nowhere, "something is asked")
			assert.Equal(t, len(assert.Of(r.resolver().List()).OK(t)), 0, "entries")
			assert.Is(t, assert.ErrOf(os.Stat(r.home+"/.config/wsmount/fetched")), os.ErrNotExist, "something was kept:")
		})
	}
}

// A bucket is read with what the host grants of its own service, or with credentials that
// are named as a manifest names them.
func TestAddFromBucket(t *testing.T) {
	r := newRemote(t)
	r.config += "secrets: { org/acme/s3-rw: { env: { access_key_id: ACME_KEY, secret_access_key: ACME_SECRET } } }\n"
	r.config = strings.Replace(r.config, "providers: { ", "providers: { cloud-bucket: { kind: s3, endpoint: \"https://s3.acme.test\", region: eu-west-1, grants: [ { owner: acme, bucket: ours, prefix: acme } ] }, ", 1)
	r.places["https://s3.acme.test/ours/acme/ops/"] = origin.Recorded{"WORKSPACE.md": manifestText("@acme/ops", `{ inline: { provider: cloud-bucket, config: { bucket: ours, prefix: acme/ops } } }`)}
	r.places["https://s3.acme.test/theirs/ws/"] = origin.Recorded{"WORKSPACE.md": manifestText("@acme/own", s3("https://s3.acme.test", "theirs", "ws", ", credentials_ref: org/acme/s3-rw"))}
	assert.OK(t, assert.ErrOf(r.host().AddFrom(t.Context(), r.from("s3:ours/acme/ops"), AddOptions{})))
	assert.Equal(t, r.ok("@acme/ops", ResolveOptions{}).Storage.Provider, mountspec.ProviderCloudBucket)
	from := r.from("s3:theirs/ws")
	from.Endpoint, from.Auth = "https://s3.acme.test", "org/acme/s3-rw"
	assert.OK(t, assert.ErrOf(r.host().AddFrom(t.Context(), from, AddOptions{Address: mountspec.Address{Owner: "acme", Slug: "own"}})))
	assert.True(t, r.asked[len(r.asked)-1].Grants.Secrets != nil, "the secret is planned")

	// A policy that the host lists lies here, and gives the workspace a prefix of its own.
	policy := r.write("shared.STORAGE.md", "---\nschema: storage/v1\nid: \"@acme/shared\"\nversion: 1.0.0\nprovider: self-bucket\nconfig: { kind: s3, endpoint: \"https://s3.acme.test\", region: eu-west-1, bucket: team, prefix: all }\n---\n")
	r.config += "storages: { \"@acme/shared\": " + policy + " }\n"
	r.places["https://s3.acme.test/team/all/acme/mine/"] = origin.Recorded{"WORKSPACE.md": manifestText("@acme/mine", `{ ref: "@acme/shared" }`)}
	mine := r.from("s3:team/all/acme/mine")
	mine.Endpoint = "https://s3.acme.test"
	e := assert.Of(r.host().AddFrom(t.Context(), mine, AddOptions{Address: mountspec.Address{Owner: "acme", Slug: "mine"}})).OK(t)
	assert.Equal(t, len(e.Files), 2, "files")
	assert.Equal(t, len(r.ok("@acme/mine", ResolveOptions{}).Governing), 2, "governing files")
	assert.OK(t, assert.ErrOf(os.Stat(policy)))

	from.Auth = "org/acme/other"
	_, err := r.host().AddFrom(t.Context(), from, AddOptions{Address: mountspec.Address{Owner: "evil", Slug: "own"}})
	checkError(t, err, Denied, "org/acme/other")
}

// While a store is read, and a person is asked, nobody waits for the registry; what others
// enter meanwhile stays, and what was decided about another entry than there is now is not
// entered.
func TestRegistryIsFreeMeanwhile(t *testing.T) {
	for _, verb := range []string{"add", "accept", "set"} {
		t.Run(verb, func(t *testing.T) {
			var r *remote
			files := origin.Recorded{}
			if verb == "set" {
				r = &remote{world: rowWorld(t)}
			} else {
				r = newRemote(t)
				files = r.site()
			}
			yes := func(Change) bool { return true }
			do := func(h *Resolver, confirm func(Change) bool) (err error) {
				switch verb {
				case "add":
					_, err = h.AddFrom(t.Context(), r.from("github:acme/site#main"), AddOptions{})
				case "accept":
					_, err = h.Accept(t.Context(), acmeOps, confirm)
				case "set":
					_, err = h.Set(t.Context(), acmeRow, []rowedit.Value{{Key: "name", Node: yamledit.Scalar("New")}}, confirm)
				}
				return err
			}
			if verb == "accept" {
				assert.OK(t, assert.ErrOf(r.host().AddFrom(t.Context(), r.from("github:acme/site#main"), AddOptions{})))
				files["team.POLICY.md"] = "---\nschema: policy/v1\ndefault: deny\n---\n"
			}
			entered := []string{}
			enter := func() {
				t.Helper()
				fd := assert.Of(unix.Open(r.home+"/.config/wsmount/registry.json.lock", unix.O_RDWR|unix.O_CREAT, 0o600)).OK(t)
				defer unix.Close(fd)
				assert.OK(t, unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB), "the lock of the registry is held")
				assert.OK(t, unix.Flock(fd, unix.LOCK_UN))
				entered = append(entered, "@acme/x"+strconv.Itoa(len(entered)))
				r.workspace(entered[len(entered)-1], entered[len(entered)-1])
				r.add(entered[len(entered)-1])
			}
			h := r.host()
			open := h.o.Open
			h.o.Open = func(ctx context.Context, s *Resolver, at *Resolved) (origin.Source, error) {
				enter()
				return open(ctx, s, at)
			}
			assert.OK(t, do(h, func(Change) bool { enter(); return true }))
			list := assert.Of(r.resolver().List()).OK(t)
			for _, address := range entered {
				assert.True(t, slices.ContainsFunc(list, func(e Entry) bool { return e.Address.String() == address }), address, "is lost")
			}
			assert.True(t, len(entered) > 0, "nothing was asked")
			if verb == "add" {
				return
			}
			files["team.POLICY.md"] = "---\nschema: policy/v1\ndefault: allow\n---\n"
			if verb == "set" {
				r.edit("ws/WORKSPACE.md", "name: New", "name: A test")
				r.configured(rowConfig)
				assert.OK(t, assert.ErrOf(r.resolver().Accept(t.Context(), acmeRow, yes)))
			}
			err := do(r.host(), func(Change) bool { assert.OK(t, do(r.host(), yes)); return true })
			assert.Is(t, err, hostfile.ErrChanged)
			checkError(t, err, Denied, "")
		})
	}
}
