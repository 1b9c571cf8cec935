package host

import (
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/wsmount/wsmount/mountspec"
	"github.com/wsmount/wsmount/mountspec/host/hostfile"
	"github.com/wsmount/wsmount/mountspec/secrets"
)

// Names of the inventory. AIP-35 writes ./SECRETS.md, AIP-19 keeps it in
// .secrets.
const (
	plainInventory = "SECRETS.md"
	inventoryDir   = ".secrets"
)

// loadSecrets finds the inventory that auth.ref names. An absent reference may mean
// .secrets/SECRETS.md, "./SECRETS.md" one of the two; if both exist it is an error,
// since some readers would ignore one of them.
func (s *session) loadSecrets(l *loaded) error {
	auth, at := l.storage.Auth, l.storageAt
	if auth.Ref == "" && len(auth.Env) == 0 && credentialsRef(l.storage) == "" {
		return nil
	}
	ref, ok := auth.Reference()
	if ok && (ref.Kind == mountspec.RefSlug || ref.Clean() != plainInventory) {
		f, at, err := s.refs.follow(l, ref, at, refSecrets)
		if err != nil {
			return err
		}
		return s.takeInventory(l, at, f)
	}
	files := []*file{}
	for _, rel := range []string{plainInventory, filepath.Join(inventoryDir, plainInventory)} {
		f, err := s.optional(l, at, rel)
		if f == nil && err == nil {
			l.reserved = append(l.reserved, filepath.Join(at.dir, rel))
		}
		if err != nil {
			return &Error{Class: Denied, Code: CodeAuth, Where: filepath.Join(at.dir, rel), What: "the inventory cannot be read", Err: err, Hint: "keep it below the workspace, as a regular file"}
		}
		if f != nil {
			files = append(files, f)
		}
	}
	return s.chooseInventory(l, auth, at, files)
}

func (s *session) chooseInventory(l *loaded, auth mountspec.Auth, at base, files []*file) error {
	where := filepath.Join(at.dir, inventoryDir, plainInventory)
	switch {
	case len(files) == 2:
		return unresolvable(CodeAuth, auth.Pos.String(), "remove one", "%s and %s both exist", files[0].path, files[1].path)
	case len(files) == 0 && auth.Ref != "":
		return unresolvable(CodeAuth, auth.Pos.String(), "create it, or correct auth.ref", "neither %s nor %s exists", filepath.Join(at.dir, plainInventory), where)
	case len(files) == 0:
		s.defaulted("secrets inventory", "none")
		return nil
	case auth.Ref == "" && filepath.Base(filepath.Dir(files[0].path)) != inventoryDir:
		s.defaulted("secrets inventory", "none: "+files[0].path+" is not named by auth.ref")
		return nil
	}
	l.addFile(files[0])
	s.steps = append(s.steps, Step{"secrets inventory", files[0].path, auth.Ref == ""})
	at.dir = filepath.Dir(files[0].path)
	return s.takeInventory(l, at, files[0])
}

// optional reads a file below the manifest's directory that need not exist.
func (s *session) optional(l *loaded, at base, rel string) (*file, error) {
	rel, err := filepath.Rel(at.root, filepath.Join(at.dir, rel))
	if err != nil {
		return nil, err
	}
	f, err := l.read(at.root, rel)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return f, err
}

// takeInventory parses an inventory and, where it is the one in .secrets,
// merges those of its services (AIP-19: .secrets/<service>/SECRETS.md).
func (s *session) takeInventory(l *loaded, at base, first *file) error {
	all := []*file{first}
	if filepath.Base(at.dir) == inventoryDir && filepath.Base(first.path) == plainInventory {
		more, err := s.services(l, at)
		if err != nil {
			return &Error{Class: Unresolvable, Code: CodeAuth, Where: at.dir, What: "the inventories of its services cannot be read", Err: err, Hint: "keep them below the workspace, as regular files"}
		}
		all = append(all, more...)
		l.reserved = append(l.reserved, at.dir) // a new service in it would count
	}
	var invs []*mountspec.Secrets
	for _, f := range all {
		l.secrets = append(l.secrets, f.path)
		inv, findings := mountspec.ParseSecrets(f.source(), s.parse())
		if err := s.findings(l, f.path, findings); err != nil {
			return err
		}
		l.addFile(f)
		invs = append(invs, inv)
	}
	inv, err := secrets.Merge(invs...)
	if err != nil {
		return &Error{Class: Invalid, Code: CodeAuth, Where: at.dir, What: "the inventories contradict each other", Err: err, Hint: "declare each secret once"}
	}
	l.inventory = inv
	return nil
}

const maxServices = 256

func (s *session) services(l *loaded, at base) ([]*file, error) {
	rel, err := filepath.Rel(at.root, at.dir)
	if err != nil {
		return nil, err
	}
	dirs, err := l.dirs(at.root, rel)
	if err != nil {
		return nil, err
	}
	slices.Sort(dirs)
	var out []*file
	for _, name := range dirs {
		f, err := s.optional(l, at, filepath.Join(name, plainInventory))
		if err != nil {
			return nil, err
		}
		if f != nil {
			out = append(out, f)
		}
	}
	return out, nil
}

// dirs names the directories in one below root.
func (l *loaded) dirs(root, rel string) (names []string, err error) {
	if l.isElsewhere(root) {
		return l.cand.files.Dirs(rel, maxServices)
	}
	d, err := hostfile.OpenBeneath(root, rel)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	entries, err := d.ReadDir(maxServices)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	for _, e := range entries {
		if e.IsDir() {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// credentialsRef is config.credentials_ref, if the provider has one.
func credentialsRef(s *mountspec.Storage) string {
	if c, ok := s.Config.(mountspec.SelfBucketConfig); ok {
		return c.CredentialsRef
	}
	return ""
}

// usualEnv returns the rule by which a workspace has the usual variables of its storage,
// or why it does not. The host configuration grants the variables of a storage that it
// names itself; that it only lists a workspace grants nothing to the manifest's storage.
func (h *granter) usualEnv(l *loaded) (rule, whyNot string) {
	_, listed := h.r.cfg.Workspaces[l.ws.ID.String()]
	switch {
	case l.cand.row.hasStorage() && l.cand.row.workspace.Storage.Inline != nil:
		return "usual name, in workspaces of the host configuration", ""
	case listed && len(h.reg.Names()) == 0:
		return "", "it is not registered but listed"
	}
	return h.r.usualEnv(h.reg).Rule(l.ws.ID.Owner)
}

// needsSecrets is the request of the storage for the host's secrets.
func (h *granter) needsSecrets(l *loaded) secrets.Request {
	rule, whyNot := h.usualEnv(l)
	return secrets.Request{
		Workspace: l.ws.ID, Registered: l.cand.trust != Unverified, Named: h.named, Protocol: protocolOf(l.loc), Usual: rule, NotUsual: whyNot,
		CredentialsRef: credentialsRef(l.storage), Env: l.storage.Auth.Env, Inventory: l.inventory,
		Subject: secrets.Subject{UserID: h.r.Principal(), Roles: h.r.cfg.rolesFor(l.ws.ID)}, Purpose: "storage " + l.storage.Provider,
	}
}

func protocolOf(l Location) string {
	if l.Service == ServiceGit {
		return secrets.GitHub
	}
	return l.Service
}
