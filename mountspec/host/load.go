package host

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/wsmount/wsmount/mountspec"
	"github.com/wsmount/wsmount/mountspec/host/location"
	"github.com/wsmount/wsmount/mountspec/host/origin"
	"github.com/wsmount/wsmount/mountspec/policy"
)

// loaded is a workspace whose manifests were read and whose identity was
// checked. Nothing has been granted yet.
type loaded struct {
	cand      candidate
	ws        *mountspec.Workspace
	storage   *mountspec.Storage
	storageAt base // where the storage block stands
	home      base // where the manifest stands
	manifest  string
	files     []*file
	inventory *mountspec.Secrets
	secrets   []string // real paths of the inventories
	layers    []policy.Layer
	identity  []mountspec.IdentityEntry
	local     *Local
	dir       string // local.Path as the manifest names it, absolute
	loc       Location
	warnings  mountspec.Findings
	reserved  []string
	code      *mountspec.Code // nil: not a code project
	sandbox   *sandbox        // nil: the workspace has none
	from      *origin.Origin  // the origin, if it was fetched; nil: it was not
	scratch   string          // tells the default directory of a sandbox's mount from the workspace's own
}

// A base is the owner and directory that references of one manifest are relative to.
type base struct {
	addr  mountspec.Address // of its workspace
	dir   string            // directory of the manifest
	root  string            // directory that workspace-relative paths do not leave
	trust Trust
}

// load reads a candidate's manifest, and the manifests that it refers to.
func (s *session) load(c candidate) (*loaded, error) {
	l := &loaded{cand: c}
	for _, follow := range []func(*loaded) error{s.readWorkspace, s.identity, s.loadStorage, s.loadBlocks, s.loadPolicies, s.loadIdentities, s.loadSecrets, s.locate} {
		if err := follow(l); err != nil {
			return nil, err
		}
	}
	return l, nil
}

// readWorkspace reads the manifest, or uses the recorded one for a registered
// directory without one (AIP-34: it is still a workspace).
func (s *session) readWorkspace(l *loaded) error {
	path, err := manifestPath(l.cand.path)
	if err != nil {
		return fileError("", l.cand.path, err)
	}
	if e := l.cand.entry; e != nil && e.From != nil {
		l.from = e.From
		s.step("fetched", "from "+e.From.Place.String()+", and accepted "+e.AcceptedAt.Format(time.DateTime))
	}
	if l.cand.text != nil {
		return s.takeWorkspace(l, &file{path: path, data: l.cand.text})
	}
	f, err := s.readCandidate(l.cand, path)
	if errors.Is(err, fs.ErrNotExist) && l.cand.trust == Registered {
		return s.withoutManifest(l, path)
	}
	if err != nil {
		return fileError("", path, err)
	}
	s.step("manifest", f.path)
	return s.takeWorkspace(l, f)
}

func (s *session) takeWorkspace(l *loaded, f *file) error {
	ws, findings := mountspec.ParseWorkspace(f.source(), s.parse())
	if err := s.findings(l, f.path, findings); err != nil {
		return err
	}
	if row := l.cand.row; row != nil {
		refused, wins := row.differs(ws)
		if len(refused) > 0 {
			return denied("", f.path, "make them the same there, or take "+refused[0]+" out of workspaces in "+s.r.cfg.Path+", then wsmount registry accept "+l.cand.addr.String(),
				"its %s is not what the host configuration says of %s", refused[0], l.cand.addr)
		}
		for _, key := range wins {
			s.step(key, "of the manifest, which the host configuration says otherwise")
		}
	}
	l.ws, l.manifest, l.files = ws, f.path, append(l.files, f)
	l.home.dir = filepath.Dir(f.path)
	l.home.root = l.home.dir
	return nil
}

func manifestPath(path string) (string, error) {
	if !filepath.IsAbs(path) {
		return "", fmt.Errorf("%s: not an absolute path", path)
	}
	if st, err := os.Stat(path); err == nil && st.IsDir() || !strings.HasSuffix(path, ".md") {
		return filepath.Join(path, manifestName), nil
	}
	return path, nil
}

// readCandidate reads the manifest. If nothing pins its bytes (it was found, or is
// registered by path alone), no other user may be able to write it.
func (s *session) readCandidate(c candidate, path string) (*file, error) {
	if c.files != nil {
		return c.files.read(path)
	}
	f, err := readManifest(path)
	if err != nil || !c.checked {
		return f, err
	}
	t, err := readTrusted(path)
	if err == nil && t.path != f.path {
		return nil, fmt.Errorf("%s is a symbolic link: a manifest must be a file", path)
	}
	return f, err
}

// read reads a file that the manifest refers to, below root. If nothing pins its
// bytes no other user may be able to write it, as with the manifest. A link on the
// way is reserved: if changed, it would lead to another file.
func (l *loaded) read(root, rel string) (*file, error) {
	if l.isElsewhere(root) {
		return l.cand.files.read(filepath.Join(root, rel))
	}
	f, err := readBeneath(root, rel)
	if err != nil {
		return nil, err
	}
	if asked := filepath.Join(root, rel); asked != f.path {
		l.reserved = append(l.reserved, asked)
	}
	if !l.cand.checked {
		return f, nil
	}
	t, err := readTrusted(f.path)
	if err != nil {
		return nil, err
	}
	if t.path != f.path {
		return nil, fmt.Errorf("%s is now a symbolic link", f.path)
	}
	t.asked = f.asked
	return t, nil
}

// isElsewhere reports whether files below root are not local: those of a fetched
// workspace itself. Files that the host configuration lists are local.
func (l *loaded) isElsewhere(root string) bool { return l.cand.files != nil && root == l.home.root }

// withoutManifest takes the accepted manifest or that of the row, else the directory as the store.
func (s *session) withoutManifest(l *loaded, path string) error {
	dir := location.Real(filepath.Dir(path))
	if e := l.cand.entry; e != nil && e.HasManifest() {
		s.step("manifest", path+" is gone; the one that was accepted is used")
		l.home.dir, l.home.root = dir, dir
		return s.takeWorkspace(l, &file{path: e.Files[0].Path, data: []byte(e.Files[0].Text)})
	}
	if st, err := os.Stat(dir); (err != nil || !st.IsDir()) && !l.cand.row.hasStorage() {
		return fileError("", path, fs.ErrNotExist)
	}
	if l.cand.addr == (mountspec.Address{}) {
		return unresolvable("", dir, "give it an address with --id @owner/slug, or write a manifest with wsmount init", "there is no %s in it", manifestName)
	}
	l.reserved = append(l.reserved, filepath.Join(dir, manifestName))
	if row := l.cand.row; row != nil {
		s.step("manifest", "none in "+dir+", so that it is what the host configuration says")
		l.ws, l.home.dir, l.home.root = row.at(dir), dir, dir
		return nil
	}
	s.defaulted("manifest", "none in "+dir+", so that the directory is the store")
	const text = "---\nschema: storage/v1\nprovider: local-fs\nconfig:\n  mount_path: .\n---\n"
	st, findings := mountspec.ParseStorage(mountspec.Source{Name: path, Data: []byte(text)}, mountspec.Options{})
	if err := findings.Err(); err != nil {
		return invalid(path, err, "this is a fault of wsmount")
	}
	a := l.cand.addr
	l.ws = &mountspec.Workspace{ID: a, Name: a.String(), Owner: mountspec.Owner{ID: l.cand.ownerID, Slug: a.Owner},
		Storage: mountspec.Block[mountspec.Storage]{Inline: st}}
	l.home.dir, l.home.root = dir, dir
	return nil
}

// findings turns the findings of a parse into an error, and keeps warnings.
func (s *session) findings(l *loaded, where string, fs mountspec.Findings) error {
	l.warnings = append(l.warnings, fs.Filter(mountspec.Warning)...)
	err := fs.Err()
	if err == nil {
		return nil
	}
	for _, f := range fs.Filter(mountspec.Error) {
		if f.Code != mountspec.CodeProviderUnknown {
			return invalid(where, err, "wsmount validate shows every line with its rule")
		}
	}
	return &Error{Class: Unresolvable, Code: CodeProvider, Where: where, What: "its storage provider is not built in", Err: err, Hint: "choose a provider that this wsmount has"}
}

// identity compares the manifest's claims with the known facts (AIP-34, Security
// considerations: a manifest may lie about its owner and its id).
func (s *session) identity(l *loaded) error {
	asked, ws := l.cand.addr, l.ws
	l.home.addr, l.home.trust = ws.ID, l.cand.trust
	if asked != (mountspec.Address{}) && ws.ID != asked {
		return denied("", l.manifest, "ask for the address that the manifest has, or register the right directory",
			"the manifest found for %s by %s says that it is %s", asked, l.cand.how, ws.ID)
	}
	if l.cand.ownerID != "" && ws.Owner.ID != l.cand.ownerID {
		return denied("", l.manifest, "if the owner changed: wsmount registry accept "+ws.ID.String(),
			"its owner.id is not the one that was registered for %s", ws.ID)
	}
	if l.cand.trust == Registered {
		return nil
	}
	c, ok, err := s.quiet().finder.registered(ws.ID)
	if err != nil {
		return err
	}
	if ok && !samePlace(c.path, l.manifest) {
		return denied("", l.manifest, "give it another id, or register it instead: wsmount registry remove "+ws.ID.String(),
			"it calls itself %s, which is registered as %s", ws.ID, c.path)
	}
	return nil
}

// loadStorage follows the storage block.
func (s *session) loadStorage(l *loaded) error { return s.takeStorage(l, l.ws.Storage, l.home) }

// takeStorage makes a storage block, which stands at from, that of l.
func (s *session) takeStorage(l *loaded, b mountspec.Block[mountspec.Storage], from base) error {
	if b.Inline != nil {
		l.storage, l.storageAt = b.Inline, from
		s.step("storage", l.storage.Provider+", inline at "+b.Inline.Pos.String())
		return nil
	}
	f, at, err := s.refs.follow(l, b.Ref, from, refStorage)
	if err != nil {
		return err
	}
	st, findings := mountspec.ParseStorage(f.source(), s.parse())
	if err := s.findings(l, f.path, findings); err != nil {
		return err
	}
	if err := sameID(b.Ref, st.ID, f.path, CodeStorageRef); err != nil {
		return err
	}
	l.storage, l.storageAt = st, at
	s.step("storage", fmt.Sprintf("%s, by %s %s in %s", st.Provider, b.Ref.Kind, b.Ref.Value, f.path))
	if b.Ref.Kind == mountspec.RefSlug || at.root != from.root {
		s.isolate(l, b.Ref, f.path)
	}
	return nil
}

// loadBlocks reads SANDBOX.md and CODE.md: a mount runs neither, but they
// govern the workspace and are guarded like its other manifests.
func (s *session) loadBlocks(l *loaded) error {
	if err := s.loadSandbox(l); err != nil {
		return err
	}
	if b := l.ws.Code; b != nil {
		if l.code = b.Inline; l.code == nil {
			f, _, err := s.refs.follow(l, b.Ref, l.home, refCode)
			if err != nil {
				return err
			}
			code, findings := mountspec.ParseCode(f.source(), s.parse())
			if findings.Err() != nil {
				return s.findings(l, f.path, findings)
			}
			l.code = code
		}
		s.step("code project", orDefault(l.code.Title(), "without a name")+", "+orDefault(l.code.Entry(), "with nothing to run"))
	}
	return nil
}

func (s *session) loadPolicies(l *loaded) error {
	levels := []struct {
		name   string
		blocks []mountspec.Block[mountspec.Policy]
		at     base
	}{{"workspace", l.ws.Policy, l.home}, {"storage", l.storage.Policy, l.storageAt}}
	for _, lv := range levels {
		layers, err := s.layersOf(l, lv.name, lv.blocks, lv.at)
		if err != nil {
			return err
		}
		l.layers = append(l.layers, layers...)
	}
	strict, told, err := policy.Storage(l.layers, l.storage)
	if err != nil {
		return denied("", l.manifest, "write it into the storage block itself, or take it out of the policy", "%v", err)
	}
	for _, d := range told {
		s.step("policy defaults.storage."+d.Key, d.Value+map[bool]string{true: ", by ", false: " is no stricter, and not used, of "}[d.Applied]+d.Source)
	}
	l.storage = strict
	if in, m, found := policy.Unheeded(l.layers); found && strict.Sync.Mode != mountspec.ModePullPush {
		return denied("", in.Source, "take the limit out of the policy, or keep the files in a repository", "its limit %q counts %s, of which %s in mode %s has none: each write is its own",
			m.Kind, strings.Join(m.AppliesTo, " and "), strict.Provider, strict.Sync.Mode)
	}
	return nil
}

// digestOf is the digest of a file that was read; empty: it was not.
func (l *loaded) digestOf(path string) string {
	if i := slices.IndexFunc(l.files, func(f *file) bool { return f.path == path }); i >= 0 {
		return digest(l.files[i].data)
	}
	return ""
}

// layersOf reads the policies of one level, whose references are relative to at.
func (s *session) layersOf(l *loaded, level string, blocks []mountspec.Block[mountspec.Policy], at base) (out []policy.Layer, err error) {
	for _, b := range blocks {
		p, source, sum := b.Inline, b.Pos.String(), l.digestOf(b.Pos.File)
		if p == nil {
			f, _, err := s.refs.follow(l, b.Ref, at, refPolicy)
			if err != nil {
				return nil, err
			}
			var findings mountspec.Findings
			if p, findings = mountspec.ParsePolicy(f.source(), s.parse()); findings.Err() != nil {
				return nil, s.findings(l, f.path, findings)
			}
			if err := sameID(b.Ref, p.ID, f.path, ""); err != nil {
				return nil, err
			}
			source, sum = f.path, digest(f.data)
		}
		out = append(out, policy.Layer{Policy: p, Source: source, Level: level, SHA256: sum})
		s.step("policy", level+", "+source)
	}
	return out, nil
}

// loadIdentities replaces identity files by their content, and references by the
// host's identities for them. Others stay for the caller.
func (s *session) loadIdentities(l *loaded) error {
	entries, at := l.ws.Identity, l.home
	if len(l.storage.Identity) > 0 { // AIP-23: the child's overrides
		entries, at = l.storage.Identity, l.storageAt
	}
	for _, e := range entries {
		if path := identityFile(e); path != "" {
			f, _, err := s.refs.follow(l, mountspec.Ref{Kind: mountspec.RefFile, Value: path, Pos: e.Pos}, at, refIdentity)
			if err != nil {
				return err
			}
			id, findings := mountspec.ParseIdentity(f.source(), s.parse())
			if err := s.findings(l, f.path, findings); err != nil {
				return err
			}
			e.Name, e.Email, e.GPGKey, e.File, e.Ref = id.Name, id.Email, id.GPGKey, "", ""
		} else if id, ok := s.r.Identity(e.Ref); ok {
			s.step("identity "+e.Ref, id.Name+" <"+id.Email+">")
			e.Name, e.Email, e.GPGKey, e.Ref = id.Name, id.Email, id.GPGKey, ""
		}
		if e.Email != "" && slices.ContainsFunc(l.identity, func(o mountspec.IdentityEntry) bool { return o.Email == e.Email }) {
			continue // one person has one part in a commit: the first
		}
		l.identity = append(l.identity, e)
	}
	return nil
}
