//go:build soak

package integration

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/internal/harness"
	"github.com/wsmount/wsmount/integration/testrun"
	"github.com/wsmount/wsmount/integration/tier"
)

// packaged are the tests of what only the package installs.
var packaged = []stageTest{
	{"files", (*packageStage).files},
	{"manual", (*packageStage).manual},
	{"references", (*packageStage).references},
	{"completions", (*packageStage).completions},
	{"monitoring", (*packageStage).monitoring},
	{"examples", (*packageStage).examples},
}

// What `make release` makes is what people install: so it is built, installed by
// dpkg and used from there. It takes a packer, and builds the program anew; what it
// installs for mount(8) is in make test by itself.
func TestPackage(t *testing.T) {
	t.Parallel() // it builds for other machines meanwhile
	tier.RequireTools(t, "dpkg", "mount", "findmnt", "git")
	tier.RequireBuilt(t, "nfpm")
	if !testrun.Private(t) {
		return
	}
	p := newPackageStage(t)
	p.each(append(packaged, helped...))
	p.run("", 0, "dpkg", "-r", "wsmount")
	left, _ := filepath.Glob("/usr/sbin/*wsmount")
	assert.True(t, len(left) == 0, "after the package was removed there are", left)
}

func newPackageStage(t *testing.T) *packageStage {
	t.Helper()
	p := newOverlay(t)
	p.release()
	p.run("", 0, "dpkg", "-i", p.one("first/*.deb"))
	p.notes()
	return p
}

// release makes a release for this machine twice, which must be the same.
func (p *packageStage) release() {
	p.t.Helper()
	for _, dir := range []string{"first", "second"} {
		ctx, cancel := context.WithTimeout(p.t.Context(), 10*time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, "integration/tools/release.sh", "v9.8.7-rc.1", filepath.Join(p.dir, dir), runtime.GOARCH)
		cmd.Dir = ".."
		out, err := cmd.CombinedOutput()
		assert.Must(p.t, err == nil, err, out)
	}
	if first, second := readFile(p.t, p.dir+"/first/SHA256SUMS"), readFile(p.t, p.dir+"/second/SHA256SUMS"); first != second {
		p.t.Errorf("two releases of one commit differ:\n%s%s", first, second)
	}
}

// one is the only file of a pattern in the directory in memory.
func (p *packageStage) one(pattern string) string {
	p.t.Helper()
	found, err := filepath.Glob(filepath.Join(p.dir, pattern))
	assert.Must(p.t, err == nil && len(found) == 1, pattern, found, err)
	return found[0]
}

func (p *packageStage) files() {
	p.run("v9.8.7-rc.1", 0, "/usr/bin/wsmount", "version")
	p.run("Version: 9.8.7~rc.1\n", 0, "dpkg", "-s", "wsmount")
	p.run("Depends: fuse3\n", 0, "dpkg", "-s", "wsmount")
	for _, name := range []string{"mount.wsmount", "mount.fuse.wsmount", "umount.wsmount", "umount.fuse.wsmount"} {
		assert.Of(filepath.EvalSymlinks("/sbin/"+name)).Equal(p.t, "/usr/bin/wsmount", name)
	}
	p.run("", 0, "tar", "-C", p.dir, "-xf", p.one("first/*.tar.gz"))
	for _, name := range []string{"wsmount", "README.md", "LICENSE", "wsmount.1.gz", "wsmount.yaml.5.gz", "wsmount-manifest.5.gz", "wsmount.yaml.html", "wsmount-manifest.html", "completions/wsmount.bash", "completions/_wsmount", "completions/wsmount.fish"} {
		p.one("wsmount-v9.8.7-rc.1-*/" + name)
	}
	sums := p.w.Command(p.t.Context(), "sha256sum", "-c", "SHA256SUMS")
	sums.Dir = p.dir + "/first"
	p.ends(sums, ".deb: OK", 0)
}

// references are shown without a warning, and as HTML.
func (p *packageStage) references() {
	tier.RequireTools(p.t, "man", "mandoc")
	for page, key := range map[string]string{"wsmount.yaml": "providers.cloud-bucket.grants[].prefix", "wsmount-manifest": "sync.push.branch_policy"} {
		name := "/usr/share/man/man5/" + page + ".5"
		p.run("", 0, "gunzip", "-kf", name+".gz")
		assert.Equal(p.t, p.run("", 0, "sh", "-c", "man --warnings -E UTF-8 -Tutf8 -l "+name+" 2>&1 >/dev/null"), "", "man says")
		p.run(key, 0, "sh", "-c", "man -Tascii -l "+name+" | col -bx")
		p.run("", 0, "mandoc", "-Tlint", "-Wwarning", name)
		p.run(key, 0, "cat", "/usr/share/doc/wsmount/"+page+".html")
	}
}

// monitoring is what Prometheus itself takes.
func (p *packageStage) monitoring() {
	p.run("wsmount_store_reachable", 0, "cat", "/usr/share/doc/wsmount/monitoring/wsmount.dashboard.json")
	tier.RequireTools(p.t, "promtool")
	p.run("SUCCESS", 0, "promtool", "check", "rules", "/usr/share/doc/wsmount/monitoring/wsmount.rules.yaml")
}

// examples are there, and systemd takes the unit.
func (p *packageStage) examples() {
	for _, name := range []string{"bwrap.sh", "podman.sh", "compose.yaml"} {
		p.run("/workspace", 0, "cat", "/usr/share/doc/wsmount/examples/"+name)
	}
	tier.RequireTools(p.t, "systemd-analyze")
	p.run("", 0, "systemd-analyze", "verify", "--man=no", "/usr/lib/systemd/system/wsmount@.service")
}

// The program for the other architecture does the same: it reads manifests, keeps what it is
// given, and mounts, as a processor that qemu plays.
func TestOtherArchitecture(t *testing.T) {
	t.Parallel()
	tier.RequireTools(t, "qemu-aarch64")
	w := harness.New(t, harness.Options{})
	program, dir, mnt := w.Path("wsmount-arm64"), w.Workspace("@acme/notes", "watch"), w.Mkdir("mnt", 0o755)
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-o", program, "../cmd/wsmount")
	build.Env = append(os.Environ(), "GOARCH=arm64", "CGO_ENABLED=0")
	out, err := build.CombinedOutput()
	assert.OK(t, err, string(out))
	command := func(args ...string) *exec.Cmd {
		cmd := w.Command(t.Context(), "qemu-aarch64", append([]string{program}, args...)...)
		cmd.Stdin = strings.NewReader("hello")
		return cmd
	}
	for _, tt := range []struct {
		says string
		args []string
	}{
		{"linux/arm64", []string{"version"}},
		{"valid: 1 file", []string{"validate", dir + "/WORKSPACE.md"}},
		{"", []string{"registry", "add", dir}},
		{"", []string{"store", "write", "@acme/notes", "kept.md"}},
		{"hello", []string{"store", "read", "@acme/notes", "kept.md"}},
	} {
		out, err := command(tt.args...).CombinedOutput()
		assert.OK(t, err, tt.args, string(out))
		assert.Contains(t, string(out), tt.says, tt.args)
	}
	mount := command("mount", "--foreground", "@acme/notes", mnt) // in the background it would run itself, without qemu
	assert.OK(t, mount.Start())
	harness.Eventually(t, "the mount", func() bool { _, err := os.Stat(mnt + "/kept.md"); return err == nil })
	assert.OK(t, os.WriteFile(mnt+"/new", []byte("written"), 0o644))
	checkContent(t, dir+"/new", "written")
	// qemu tells a process another start of itself than others see, by which `umount` knows it.
	assert.OK(t, w.Command(t.Context(), "fusermount3", "-u", mnt).Run())
	assert.OK(t, mount.Wait())
}

// manual is shown without a warning, and tells of all commands.
func (p *packageStage) manual() {
	tier.RequireTools(p.t, "man")
	const page = "/usr/share/man/man1/wsmount.1.gz"
	p.run("", 0, "gunzip", "-kf", page)
	assert.Equal(p.t, p.run("", 0, "sh", "-c", "man --warnings -E UTF-8 -Tutf8 -l "+page+" 2>&1 >/dev/null"), "", "man says")
	text := p.run("", 0, "sh", "-c", "man -Tascii -l /usr/share/man/man8/umount.wsmount.8.gz | col -bx")
	text = strings.Join(strings.Fields(text), " ")
	for line := range strings.Lines(p.w.MustRun("help")) {
		if command := strings.Fields(line); strings.HasPrefix(line, "  ") && command[0] != "wsmount" && !strings.Contains(text, "wsmount "+command[0]) {
			p.t.Errorf("the manual does not tell of %s", command[0])
		}
	}
	assert.True(p.t, contains(text, "wsmount v9.8.7-rc.1", "--stop-timeout TIME", "EXIT STATUS", "$WSMOUNT_STATE_DIR", "wsmount event ~/mnt turn-end"), "the manual is", text)
	tier.RequireTools(p.t, "mandoc")
	p.run("", 0, "mandoc", "-Tlint", "-Wwarning", "/usr/share/man/man1/wsmount.1")
}

// completions work at the first question, in each shell.
func (p *packageStage) completions() {
	p.run("--lazy", 0, "bash", "-c", `source /usr/share/bash-completion/completions/wsmount
		COMP_WORDS=(wsmount umount --la); COMP_CWORD=2; _wsmount; echo "${COMPREPLY[@]}"`)
	p.t.Run("zsh", func(t *testing.T) {
		tier.RequireTools(t, "zsh")
		p.run("wsmount umount --lazy", 0, "zsh", "-fc", `zmodload zsh/zpty; zpty z zsh -fi
			zpty -w z 'PS1=; autoload -Uz compinit; compinit -u -D; bindkey "^I" complete-word; print rea""dy'; zpty -r z out '*ready*'
			zpty -n -w z $'wsmount umount --la\t'; zpty -r z out '*--lazy*'; print -r -- $out`)
	})
	p.t.Run("fish", func(t *testing.T) {
		tier.RequireTools(t, "fish")
		p.run("--lazy", 0, "fish", "-c", "complete -C 'wsmount umount --la'")
	})
}
