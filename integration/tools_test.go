package integration

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/internal/harness"
	"github.com/wsmount/wsmount/integration/tier"
)

// A tool is a script of sh(1) that runs in an empty directory, once in a mount
// and once on the disk. Its output must be the same, and so must the tree that
// it leaves.
type tool struct {
	name   string
	needs  []string
	script string
}

var gitSetup = `export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
export GIT_AUTHOR_DATE='2001-01-01T00:00:00Z' GIT_COMMITTER_DATE='2001-01-01T00:00:00Z'
git init -q -b main one && cd one && git config pack.threads 1
for i in $(seq ` + itoa(tier.Pick(40, 200)) + `); do mkdir -p d$((i % 20)); echo "file $i" > d$((i % 20))/f$i; done
git add . && git commit -q -m first
`

var tools = []tool{
	{"git", []string{"git"}, gitSetup + `
for i in $(seq 6); do echo more >> d1/f1; git commit -qam "change $i"; done
cd .. && git clone -q --no-local one two && cd two
git -c pack.threads=1 gc -q --prune=now && git fsck --strict 2>&1
git status --short && git log --oneline && git checkout -q -b other HEAD~5 && git merge -q main 2>&1
git rev-parse HEAD && git worktree add -q ../three main && git -C ../three status --short && git worktree remove ../three
git mv d1 moved && git commit -q -m moved && git stash list && git diff HEAD~1 --stat | tail -1
rm -rf ../*/.git/index ../*/.git/logs ../*/.git/config`},
	{"sqlite with a rollback journal", []string{"sqlite3"}, sqliteScript("delete")},
	{"sqlite with a write-ahead log", []string{"sqlite3"}, sqliteScript("wal")},
	{"go build", []string{"go"}, `export GOFLAGS=-mod=mod GOTOOLCHAIN=local
mkdir -p prog/lib && cd prog && printf 'module prog\n' > go.mod
printf 'package lib\n\nfunc Hello() string { return "hello" }\n' > lib/lib.go
printf 'package main\n\nimport "prog/lib"\n\nfunc main() { println(lib.Hello()) }\n' > main.go
printf 'package lib\n\nimport "testing"\n\nfunc TestHello(t *testing.T) {}\n' > lib/lib_test.go
go build -o prog . && ./prog 2>&1 && go vet ./... && go test -count=1 ./... | sed 's/[0-9.]*s$//' && rm prog`},
	// Each npm is a second of a processor, in the mount and beside it: one makes the
	// package, installs it through its cache, and runs it by its link.
	{"npm", []string{"npm"}, `export HOME=$PWD npm_config_cache=$PWD/cache npm_config_update_notifier=false npm_config_loglevel=error
mkdir -p package app && printf '{"name":"dep","version":"1.0.0","bin":{"dep":"cli.js"}}' > package/package.json
printf '#!/usr/bin/env node\nconsole.log("dep runs")\n' > package/cli.js
tar --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner -cf - package | gzip -n > dep-1.0.0.tgz
cd app && printf '{"name":"app","version":"1.0.0","scripts":{"postinstall":"dep"},"dependencies":{"dep":"file:../dep-1.0.0.tgz"}}' > package.json
npm install --offline --no-audit --no-fund --silent --foreground-scripts
cd .. && rm -rf cache .npm app/node_modules/.package-lock.json`},
	{"rsync there and back", []string{"rsync"}, messyTree + `
rsync -aHAX --checksum src/ copy/ && rsync -aHAX --checksum --itemize-changes src/ copy/
rsync -aHAX --checksum copy/ back/ && rsync -aHAXn --checksum --itemize-changes --delete src/ back/
rsync -a --inplace --no-whole-file src/d/ copy/d/ && rsync -aS --delete src/d/ copy/`},
	{"tar round trip", []string{"tar"}, messyTree + `
tar --xattrs --xattrs-include='*' --acls --sparse -cf all.tar src && mkdir out && tar --xattrs --xattrs-include='*' --acls -xpf all.tar -C out
tar --xattrs --acls -df all.tar -C out && rm all.tar`},
	{"find, grep and friends", []string{"find"}, messyTree + `
find . -type f -newermt 2000-01-01 | sort; find . -links +1 | sort; find . -empty | sort; find . -perm -u+x | sort
grep -r content . | sort; du -a --apparent-size src/d | sort; ls -RaF src; stat -c '%n %F %a %h %s' src/* src/d/*; cp -a src again; diff -r src/d again/d
mv again moved; wc -c src/f; sort -o src/f src/f; sed -i s/content/other/ src/f; cat src/f; truncate -s 100 src/f; rm -r moved`},
	{"ripgrep", []string{"rg"}, messyTree + `rg --sort path content . ; rg --files --sort path --hidden . ; rg -c --sort path . src`},
	{"save patterns of editors", nil, editors},
}

// wholeScript runs a tool's script, which must end well, and prints the tree
// that it left.
func wholeScript(script string) string {
	return "(set -e\n" + script + "\n) 2>&1; echo \"script: $?\"\n" + treeScript
}

// messyTree makes a tree with everything that a copy can get wrong.
const messyTree = `umask 022; mkdir -p src/d/e src/empty 'src/with blank' && echo content > src/f && echo content > src/d/g && ln src/f src/d/hard
ln -s ../f src/d/soft && ln -s nowhere src/dangling && mkfifo src/pipe && : > src/d/e/nothing
printf x | dd of=src/sparse bs=1 seek=5000000 2>/dev/null && touch -d '2001-02-03 04:05:06.123456789' src/d/g && touch -h -d 1999-01-01 src/d/soft
chmod 4711 src/f && chmod 1777 src/empty && chmod 400 src/d/e/nothing && printf content > "$(printf 'src/n\303\251w\nline')"
if command -v setfattr >/dev/null; then setfattr -n user.a -v value src/f src/d; fi
if command -v setfacl >/dev/null; then setfacl -m u:12345:rx src/d/g; setfacl -d -m g:12345:rwx src/d/e; fi
touch -d '2002-02-02' src/d src/empty src/f src
`

func sqliteScript(mode string) string {
	return fmt.Sprintf(`sqlite3 db 'pragma journal_mode=%s; create table t(a integer primary key, b text);'
for i in 1 2 3 4; do (for j in $(seq %d); do sqlite3 -cmd '.timeout 20000' db "insert into t(b) values('$i-$j');"; done) & done; wait
sqlite3 db 'select count(*) from t; begin; delete from t where a > 20; rollback; select count(*) from t; pragma integrity_check; vacuum; select count(distinct b) from t;'
sqlite3 db .dump | grep -c INSERT; rm -f db db-wal db-shm`, mode, tier.Pick(8, 25))
}

// editors save by a new file and rename, by a backup and rename, and in place.
const editors = `printf one > f; chmod 640 f
printf two > .f.tmp && mv .f.tmp f && cat f
cp -p f f.new && printf three > f.new && sync f.new && ln f 'f~' && mv f.new f && cat f 'f~'
mv f 'f~' && printf four > f && cat f 'f~'
printf five-longer > f && cat f; printf 5 > f && cat f
exec 3<>f; printf six >&3; cat f; rm f; printf gone >&3; exec 3>&-; ls -A
printf 4913 > 4913 && chmod 644 4913 && rm 4913; cp -p 'f~' f && rm 'f~' && stat -c '%a %s' f`

func TestTools(t *testing.T) {
	t.Parallel()
	for _, tl := range tools {
		t.Run(tl.name, func(t *testing.T) {
			t.Parallel()
			tier.RequireTools(t, tl.needs...)
			m, _ := flavours[0].mount(t)
			compareTool(t, tl, m.Dir)
		})
	}
}

// toolsOfUser are those that ask most of who calls, and of what is mapped and locked.
var toolsOfUser = []string{"sqlite with a write-ahead log", "tar round trip", "save patterns of editors"}

// The same for an ordinary user, without passthrough and without root.
func TestToolsUser(t *testing.T) {
	t.Parallel()
	tier.RequireRoot(t)
	for _, tl := range tools {
		if tl.name == "go build" || tl.name == "npm" {
			continue // they take long and ask nothing else of the tree
		}
		if !tier.Soak && !slices.Contains(toolsOfUser, tl.name) {
			continue
		}
		t.Run(tl.name, func(t *testing.T) {
			t.Parallel()
			tier.RequireTools(t, tl.needs...)
			w := harness.New(t, harness.Options{UID: userID})
			m := w.Mount(w.Workspace("@acme/x", ""))
			disk := w.Mkdir("disk", 0o755)
			run := func(dir string) string {
				out, err := w.Command(t.Context(), "sh", "-c", "mkdir $1/work && cd $1/work\n"+wholeScript(tl.script), "sh", dir).CombinedOutput()
				assert.OK(t, err, "sh")
				return strings.ReplaceAll(string(out), dir+"/work", "DIR")
			}
			compareOutput(t, run(m.Dir), run(disk))
		})
	}
}

// treeScript prints the tree that a tool left, and the sums of its files.
const treeScript = "\nfind . -printf '%P %y %m %n %l %T@ %s\\n' 2>&1 | sed 's/ [0-9]*\\.[0-9]* / /; / d [0-7]* /s/[0-9]*$//' | LC_ALL=C sort\n" +
	"find . -type f -print0 | LC_ALL=C sort -z | xargs -0r cksum 2>&1"

func compareTool(t *testing.T, tl tool, mnt string) {
	t.Helper()
	disk := filepath.Join(t.TempDir(), "work")
	mkdirAll(t, disk)
	mkdirAll(t, mnt+"/work")
	compareOutput(t, runScript(t, mnt+"/work", tl.script), runScript(t, disk, tl.script))
}

func runScript(t *testing.T, dir, script string) string {
	t.Helper()
	cmd := exec.Command("sh", "-c", wholeScript(script))
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1")
	return strings.ReplaceAll(string(assert.Of(cmd.CombinedOutput()).OK(t, "sh")), dir, "DIR")
}

func compareOutput(t *testing.T, got, want string) {
	t.Helper()
	assert.Contains(t, want, "script: 0\n", "the script does not work on the disk")
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range max(len(g), len(w)) {
		if line(g, i) != line(w, i) {
			t.Errorf("line %d: got %q, on the disk %q", i+1, line(g, i), line(w, i))
			return
		}
	}
	t.Logf("%d lines are the same", len(w))
}

func line(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return "(nothing)"
}

// Inside a working copy the tools find what they find on the disk: where each
// close waits for the store, and where changes are committed and pushed behind
// the tools' back. The second gets those that take long, the longest in make soak only:
// in make test they work in a local mount.
func TestCopyTools(t *testing.T) {
	t.Parallel()
	slow := map[string]bool{"git": true, "go build": true, "npm": true}
	short := map[string]bool{"find, grep and friends": true, "sqlite with a write-ahead log": true, "ripgrep": true, "rsync there and back": true}
	looks := map[string]bool{"ripgrep": true, "find, grep and friends": true} // they change little
	for _, f := range []copyFlavour{canonicalStore, repository} {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel() // it waits for a disk or a server, mostly
			for _, tl := range tools {
				if slow[tl.name] && (f.name == canonicalStore.name || !tier.Soak && tl.name != "git") || short[tl.name] && f.name == repository.name {
					continue
				}
				if !tier.Soak && f.name == canonicalStore.name && looks[tl.name] {
					continue
				}
				t.Run(tl.name, func(t *testing.T) {
					t.Parallel()
					tier.RequireTools(t, tl.needs...)
					c := f.mount(t)
					c.fill() // a tool that cleans up removes less than half of all
					compareTool(t, tl, c.Dir)
				})
			}
		})
	}
}
