package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/testrun"
	"github.com/wsmount/wsmount/integration/tier"
)

// seen is what an action got to see of a command line.
type seen struct {
	command string
	args    []string
	flags   map[string]string
}

// dry runs a command line up to its action, which only looks.
func dry(t *testing.T, words ...string) (seen, error) {
	t.Helper()
	all := commands()
	in, err := parseArgs(all, flagKinds(all), words)
	if err != nil {
		return seen{}, err
	}
	got := seen{flags: map[string]string{}}
	var spy func([]*cli.Command)
	spy = func(cs []*cli.Command) {
		for _, c := range cs {
			c.Action = func(c *cli.Context) error {
				got.command, got.args = strings.TrimPrefix(in.path(), "wsmount "), c.Args().Slice()
				for _, f := range c.Command.Flags {
					name := f.Names()[0]
					if _, list := f.(*cli.StringSliceFlag); list && c.IsSet(name) {
						values := c.StringSlice(name)
						slices.Sort(values)
						got.flags[name] = strings.Join(values, " ")
					} else if c.IsSet(name) {
						got.flags[name] = fmt.Sprint(c.Value(name))
					}
				}
				return nil
			}
			spy(c.Subcommands)
		}
	}
	spy(all)
	return got, newApp(all, io.Discard, io.Discard).RunContext(context.Background(), in.words())
}

type commandLine struct {
	command string
	args    []string
	flags   [][]string
	want    map[string]string
}

// synopses are all command lines that the help shows, with flags as a person
// may write them: each is tried with its flags in every place.
var synopses = []commandLine{
	{"exec", []string{"@acme/ops", "make"}, [][]string{{"--turn", "7"}, {"--timeout=5s"}, {"--trust"}},
		map[string]string{"turn": "7", "timeout": "5s", "trust": "true"}},
	{"mount", []string{"@acme/ops", "/mnt/ws"}, [][]string{{"--read-only"}, {"--mount", "at=/x,source=@a/b,mode=read-only"}, {"--stop-timeout=5s"}},
		map[string]string{"read-only": "true", "mount": "at=/x,source=@a/b,mode=read-only", "stop-timeout": "5s"}},
	{"mount", []string{"./WORKSPACE.md", "mnt"}, [][]string{{"-f"}, {"--trust"}, {"--state-dir", "/s"}, {"-o", "ro,nosuid"}},
		map[string]string{"options": "ro,nosuid", "foreground": "true", "trust": "true", "state-dir": "/s"}},
	{"umount", []string{"/mnt/ws"}, [][]string{{"--lazy"}, {"--timeout", "3s"}}, map[string]string{"lazy": "true", "timeout": "3s"}},
	{"status", []string{"/mnt/ws"}, [][]string{{"--json"}}, map[string]string{"json": "true"}},
	{"status", nil, [][]string{{"-a"}, {"-w"}, {"--json"}}, map[string]string{"all": "true", "watch": "true", "json": "true"}},
	{"event", []string{"/mnt/ws", "turn-end"}, [][]string{{"--var", "a=1,2"}, {"--var=b=3"}, {"--no-wait"}, {"--at", "/lib"}},
		map[string]string{"var": "a=1,2 b=3", "no-wait": "true", "at": "/lib"}},
	{"mount", []string{"@acme/ops", "/mnt/ws"}, [][]string{{"--write-back"}, {"--working-copy", "b"}, {"--cache-size=1GiB"}, {"--patience", "30s"}, {"--umask", "027"}},
		map[string]string{"write-back": "true", "working-copy": "b", "cache-size": "1GiB", "patience": "30s", "umask": "027"}},
	{"pull", []string{"/mnt/ws"}, [][]string{{"--confirm"}, {"--at", "/lib"}, {"--timeout=5m"}}, map[string]string{"confirm": "true", "at": "/lib", "timeout": "5m0s"}},
	{"commit", []string{"/mnt/ws"}, [][]string{{"-m", "the draft, with figures"}, {"--confirm"}, {"--no-wait"}}, map[string]string{"message": "the draft, with figures", "confirm": "true", "no-wait": "true"}},
	{"push", []string{"/mnt/ws"}, [][]string{{"--at=/lib"}, {"--json"}}, map[string]string{"at": "/lib", "json": "true"}},
	{"log", []string{"/mnt/ws", "docs/plan.md"}, [][]string{{"--turn", "7"}, {"--since", "2h"}, {"-n", "5"}}, map[string]string{"turn": "7", "since": "2h", "n": "5"}},
	{"diff", []string{"/mnt/ws", "docs/plan.md", "12", "17"}, [][]string{{"--json"}}, map[string]string{"json": "true"}},
	{"diff", []string{"/mnt/ws", ".", "turn:7", "turn:7"}, [][]string{{"--before"}, {"--json"}}, map[string]string{"before": "true", "json": "true"}},
	{"restore", []string{"/mnt/ws", "."}, [][]string{{"--to", "turn:7"}, {"--before"}, {"--dry-run"}}, map[string]string{"to": "turn:7", "before": "true", "dry-run": "true"}},
	{"conflicts list", []string{"/mnt/ws"}, [][]string{{"--json"}}, map[string]string{"json": "true"}},
	{"conflicts show", []string{"/mnt/ws", "f"}, [][]string{{"--side", "ours"}}, map[string]string{"side": "ours"}},
	{"conflicts resolve", []string{"/mnt/ws", "f"}, [][]string{{"--file", "-"}}, map[string]string{"file": "-"}},
	{"cache show", []string{"@acme/ops"}, [][]string{{"--json"}}, map[string]string{"json": "true"}},
	{"cache clear", nil, [][]string{{"--json"}}, map[string]string{"json": "true"}},
	{"cache pin", []string{"/mnt/ws", "docs"}, [][]string{{"--json"}}, map[string]string{"json": "true"}},
	{"cache unpin", []string{"/mnt/ws/docs"}, [][]string{{"--json"}}, map[string]string{"json": "true"}},
	{"recover", []string{"export", "@acme/ops", "./saved"}, [][]string{{"--json"}}, map[string]string{"json": "true"}},
	{"recover", []string{"discard", "@acme/ops"}, [][]string{{"-y"}}, map[string]string{"yes": "true"}},
	{"recover", []string{"/state/acme/ops/1"}, [][]string{{"--scan"}, {"--force"}}, map[string]string{"scan": "true", "force": "true"}},
	{"validate", []string{"WORKSPACE.md"}, [][]string{{"--strict"}, {"--json"}}, map[string]string{"strict": "true", "json": "true"}},
	{"resolve", []string{"@acme/ops"}, [][]string{{"--explain"}, {"--config", "/c"}}, map[string]string{"explain": "true", "config": "/c"}},
	{"doctor", []string{"@acme/ops", "/mnt"}, [][]string{{"--requires", "sync,encryption"}, {"--json"}}, map[string]string{"requires": "sync,encryption", "json": "true"}},
	{"init", []string{"dir"}, [][]string{{"--id", "@a/b"}, {"--name", "A B"}, {"--owner-id=1"}, {"--provider", "dev-local"}, {"--from", "@a/t"}, {"--register"}},
		map[string]string{"id": "@a/b", "name": "A B", "owner-id": "1", "provider": "dev-local", "from": "@a/t", "register": "true"}},
	{"init", nil, [][]string{{"--provider", "s3"}, {"--credentials", "env:A,B"}, {"--grant"}, {"--offline"}},
		map[string]string{"provider": "s3", "credentials": "env:A,B", "grant": "true", "offline": "true"}},
	{"publish", []string{"@a/b"}, [][]string{{"--show"}, {"-y"}, {"--json"}}, map[string]string{"show": "true", "yes": "true", "json": "true"}},
	{"schema", []string{"workspace"}, [][]string{{"--json"}}, map[string]string{"json": "true"}},
	{"registry add", []string{"dir"}, [][]string{{"--owner-id", "1"}, {"--write-manifest"}}, map[string]string{"owner-id": "1", "write-manifest": "true"}},
	{"registry list", nil, [][]string{{"--json"}}, map[string]string{"json": "true"}},
	{"list", nil, [][]string{{"--tag", "x"}, {"--owner=acme"}, {"-q"}, {"--json"}}, map[string]string{"tag": "x", "owner": "acme", "quiet": "true", "json": "true"}},
	{"find", []string{"./dir"}, [][]string{{"--json"}}, map[string]string{"json": "true"}},
	{"registry remove", []string{"@a/b"}, [][]string{{"--json"}}, map[string]string{"json": "true"}},
	{"registry set", []string{"@a/b", "name=A B", "tags=[ x ]"}, [][]string{{"--show"}, {"--strict"}, {"--force"}, {"--json"}}, map[string]string{"show": "true", "strict": "true", "force": "true", "json": "true"}},
	{"registry accept", []string{"@a/b"}, [][]string{{"-y"}, {"--show"}, {"--strict"}, {"--force"}}, map[string]string{"yes": "true", "show": "true", "strict": "true", "force": "true"}},
	{"ui", []string{"/mnt/ws"}, [][]string{{"--port", "8080"}, {"--no-open"}, {"--json"}}, map[string]string{"port": "8080", "no-open": "true", "json": "true"}},
	{"store read", []string{"@a/b", "plan.md"}, [][]string{{"--trust"}, {"--json"}}, map[string]string{"trust": "true", "json": "true"}},
	{"store write", []string{"plan.md"}, [][]string{{"--if-match", "none"}, {"--backend=vault"}}, map[string]string{"if-match": "none", "backend": "vault"}},
	{"store list", nil, [][]string{{"--backend", "vault"}, {"--requires", "sync"}, {"--json"}}, map[string]string{"backend": "vault", "requires": "sync", "json": "true"}},
	{"store exists", []string{"plan.md"}, [][]string{{"--json"}}, map[string]string{"json": "true"}},
	{"store info", []string{"/mnt/ws", "plan.md"}, [][]string{{"--json"}}, map[string]string{"json": "true"}},
	{"store mkdir", []string{"@a/b", "notes"}, [][]string{{"--read-only"}}, map[string]string{"read-only": "true"}},
	{"store state dir", []string{"atlas"}, [][]string{{"--json"}}, map[string]string{"json": "true"}},
	{"store state read", []string{"atlas", "PLAN.md"}, [][]string{{"--backend", "vault"}}, map[string]string{"backend": "vault"}},
	{"store state write", []string{"./atlas", "PLAN.md"}, [][]string{{"--if-match", "none"}}, map[string]string{"if-match": "none"}},
	{"store repos list", nil, [][]string{{"--json"}}, map[string]string{"json": "true"}},
	{"store repos register", []string{"atlas"}, [][]string{{"--root", "src/atlas"}, {"--wiki=w"}}, map[string]string{"root": "src/atlas", "wiki": "w"}},
	{"store repos unregister", []string{"atlas"}, [][]string{{"--json"}}, map[string]string{"json": "true"}},
	{"store personal-write", []string{"Diary/today.md"}, [][]string{{"--authorized-by", "ann"}, {"--if-match=none"}}, map[string]string{"authorized-by": "ann", "if-match": "none"}},
	{"mcp", []string{"/mnt/ws"}, [][]string{{"--state-dir", "/s"}}, map[string]string{"state-dir": "/s"}},
	{"debug", []string{"/mnt"}, [][]string{{"-o", "f"}}, map[string]string{"output": "f"}},
	{"debug", []string{"/mnt"}, [][]string{{"-o", "-"}}, map[string]string{"output": "-"}},
	{"help", []string{"conflicts", "show"}, nil, nil},
	{"version", nil, [][]string{{"--json"}}, map[string]string{"json": "true"}},
	{"completion", []string{"bash"}, nil, nil},
}

// orders puts every flag with the next one (in make soak: with every other one), each
// in one piece, at every two places among the words; the others follow the words.
func orders(words []string, flags [][]string) [][]string {
	if len(flags) == 0 {
		return [][]string{words}
	}
	var out [][]string
	for a := range flags {
		for b := range flags {
			if a == b && len(flags) > 1 || !tier.Soak && b != (a+1)%len(flags) {
				continue
			}
			var others []string
			for i, f := range flags {
				if i != a && i != b {
					others = append(others, f...)
				}
			}
			second := flags[b]
			if a == b {
				second = nil
			}
			for i := 0; i <= len(words); i++ {
				for k := i; k <= len(words); k++ {
					out = append(out, slices.Concat(words[:i], flags[a], words[i:k], second, words[k:], others))
				}
			}
		}
	}
	return out
}

func TestFlagsInEveryOrder(t *testing.T) {
	testrun.WithoutEnv(t, "WSMOUNT_")
	all := commands()
	kinds := flagKinds(all)
	for _, s := range synopses {
		words := append(strings.Fields(s.command), s.args...)
		t.Run(strings.Join(words, " "), func(t *testing.T) {
			tried := orders(words, s.flags)
			if s.command == "mount" {
				tried = append(tried, orders(s.args, s.flags)...) // wsmount WORKSPACE MOUNTPOINT
			}
			run := map[string]bool{} // what the words of a line become: the same does the same
			for _, line := range tried {
				in, err := parseArgs(all, kinds, line)
				assert.OK(t, err, line)
				became := strings.Join(in.words(), "\x00")
				if run[became] {
					continue
				}
				run[became] = true
				got, err := dry(t, line...)
				assert.Must(t, err == nil && got.command == s.command && slices.Equal(got.args, s.args), line, got, err)
				assert.Must(t, maps.Equal(got.flags, s.want), line, "got the flags", got.flags, s.want)
			}
		})
	}
}

// Every command has a synopsis above, so that a new one cannot be forgotten.
func TestEveryCommandHasASynopsis(t *testing.T) {
	eachCommand("", commands(), func(name string, c *cli.Command) {
		assert.False(t, len(c.Subcommands) == 0 && !slices.ContainsFunc(synopses, func(s commandLine) bool { return s.command == name }), "no synopsis of", name)
	})
}

// A default that the text of a flag tells is not told again as a number.
func TestHelpSaysADefaultOnce(t *testing.T) {
	eachCommand("", commands(), func(name string, c *cli.Command) {
		for _, f := range c.Flags {
			var text strings.Builder
			printFlag(&text, f.(cli.DocGenerationFlag))
			assert.True(t, strings.Count(text.String(), "(default") <= 1, name, text.String())
		}
	})
}

// A flag may come before its command because its name means one kind everywhere.
func TestFlagNamesMeanOneKind(t *testing.T) {
	kinds := map[string]bool{}
	eachCommand("", commands(), func(name string, c *cli.Command) {
		own := map[string]bool{}
		for _, f := range c.Flags {
			for _, n := range f.Names() {
				takes := f.(cli.DocGenerationFlag).TakesValue()
				before, known := kinds[n]
				assert.False(t, known && before != takes, name, "--", n, "takes a value in one command and none in another")
				assert.False(t, own[n], name, "--", n, "twice")
				kinds[n], own[n] = takes, true
			}
		}
	})
}

func TestCommandLineRefusals(t *testing.T) {
	tests := []struct {
		name  string
		words []string
		says  string
		hint  string
	}{
		{"unknown command", []string{"moutn", "@a/b", "/mnt"}, `no command "moutn"`, "did you mean mount"},
		{"a command of later", []string{"serve", "@a/b"}, `no command "serve"`, ""},
		{"a sandbox without a command", []string{"exec", "@a/b"}, "a workspace and a command are needed", "exec WORKSPACE -- CMD"},
		{"a conversation without a turn", []string{"exec", "@a/b", "--conversation", "c", "--", "true"}, "--conversation is for --turn", "--turn ID"},
		{"unknown subcommand", []string{"registry", "ad", "x"}, `wsmount registry has no command "ad"`, "did you mean add"},
		{"a subcommand forgotten", []string{"conflicts", "mnt/app"}, `wsmount conflicts has no command "mnt/app"`, "its commands are list, show, resolve: see `wsmount conflicts --help`"},
		{"unknown flag", []string{"@a/b", "/mnt", "--read-olny"}, "wsmount mount has no flag --read-olny", "--read-only"},
		{"flag of another command", []string{"@a/b", "/mnt", "--explain"}, "wsmount mount has no flag --explain", "see `wsmount mount --help`"},
		{"a dash is no argument", []string{"@a/b", "-"}, "not an argument", "put --"},
		{"a negative number is no argument", []string{"@a/b", "-1"}, "no flag -1", ""},
		{"value forgotten", []string{"@a/b", "/mnt", "--mount"}, "--mount needs a value", "--mount=-"},
		{"a flag is no value", []string{"@a/b", "/mnt", "--mount", "--read-only"}, "--mount needs a value", "--mount=-"},
		{"bad duration", []string{"@a/b", "/mnt", "--stop-timeout", "soon"}, "soon", "--help"},
		{"bad switch", []string{"@a/b", "/mnt", "--read-only=perhaps"}, "perhaps", "--help"},
		{"empty argument", []string{"mount", "@a/b", ""}, "an argument is empty", "wsmount mount WORKSPACE MOUNTPOINT"},
		{"too many", []string{"mount", "@a/b", "x", "y"}, "2 arguments are needed, 3 given", "WORKSPACE MOUNTPOINT"},
		{"too few", []string{"registry", "add"}, "1 argument is needed, 0 given", "wsmount registry add [PATH | PLACE]"},
		{"a page that is opened and not", []string{"ui", "/mnt/ws", "--open", "--no-open"}, "--open and --no-open exclude each other", "one of them"},
		{"a page at no port", []string{"ui", "/mnt/ws", "--port", "70000"}, "--port 70000 is not a port", "65535"},
		{"unknown shell", []string{"completion", "bsh"}, `no completion for "bsh"`, "bash"},
		{"address without @", []string{"me/notes", "/mnt"}, `no command "me/notes"`, "a workspace is written @me/notes, and a directory ./me/notes"},
		{"help of an unknown command", []string{"help", "moutn"}, `wsmount has no command "moutn"`, "did you mean mount"},
		{"help of an unknown subcommand", []string{"help", "registry", "ad"}, `wsmount registry has no command "ad"`, "did you mean add"},
		{"a terminal's control characters", []string{"pu\x1b[31mll"}, "no command", ""},
	}
	for _, tt := range tests {
		var out, errOut bytes.Buffer
		code := run(context.Background(), tt.words, &out, &errOut)
		what, hint, _ := strings.Cut(errOut.String(), "\n")
		if code != exit.Usage || !strings.Contains(what, tt.says) || !strings.HasPrefix(hint, "hint: ") || !strings.Contains(hint, tt.hint) {
			t.Errorf("%s: got exit %d\n%s", tt.name, code, errOut.String())
		}
		assert.False(t, strings.ContainsAny(errOut.String(), "\x1b"), tt.name, "a control character reached the terminal")
	}
}

func TestOneLine(t *testing.T) {
	for in, want := range map[string]string{"a\nb\tc": "a b c", " x\x1b[31m\x7f ": "x [31m", "caf\u00e9 \u009b1m": "caf\u00e9  1m"} {
		assert.Equal(t, oneLine(in), want, in)
	}
}

func TestDoubleDashEndsFlags(t *testing.T) {
	got := assert.Of(dry(t, "mount", "--", "@a/b", "--read-only")).OK(t)
	assert.True(t, slices.Equal(got.args, []string{"@a/b", "--read-only"}) && len(got.flags) == 0, got)
}

// `help COMMAND` says what `COMMAND --help` says, wherever --help stands.
func TestHelp(t *testing.T) {
	said := func(words ...string) string {
		var out, errOut bytes.Buffer
		if code := run(context.Background(), words, &out, &errOut); code != exit.Done || out.Len() < 100 || errOut.Len() > 0 {
			t.Errorf("%q: exit %d, %d bytes, %s", words, code, out.Len(), errOut.String())
		}
		checkWidth(t, out.String())
		if strings.Contains(out.String(), "`FILE") || strings.Contains(out.String(), "%!") {
			t.Errorf("%q: not formatted:\n%s", words, out.String())
		}
		return out.String()
	}
	same := map[string]string{"": "--help", "registry": "help registry", "registry -h": "help registry",
		"-h mount": "help mount", "mount x --help": "help mount", "help unmount": "help umount", "help": "--help"}
	eachCommand("", commands(), func(name string, _ *cli.Command) { same["help "+name] = name + " --help" })
	for a, b := range same {
		assert.Equal(t, said(strings.Fields(a)...), said(strings.Fields(b)...), a, "is not", b)
	}
}

func TestVersion(t *testing.T) {
	for _, words := range [][]string{{"version"}, {"--version"}, {"-v"}, {"version", "--json"}} {
		var out bytes.Buffer
		if code := run(context.Background(), words, &out, io.Discard); code != exit.Done || !strings.Contains(out.String(), "local-fs") {
			t.Errorf("%q: exit %d, %s", words, code, out.String())
		}
	}
}

func TestAge(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	for d, want := range map[time.Duration]string{5 * time.Second: "5s", 3 * time.Minute: "3m", 30 * time.Hour: "30h", 72 * time.Hour: "3d", -time.Second: ""} {
		assert.Equal(t, age(now.Add(-d), now), want, d)
	}
}

// Who sees every process is not sent to root.
func TestUnseenUser(t *testing.T) {
	got := unseenUser(true, false)
	assert.True(t, !strings.Contains(got, "root") && strings.Contains(got, "--force"), "root", got)
	assert.Contains(t, unseenUser(false, false), "root can see", "a user")
}

// Each refusal of words that do not go together is one line, and one of what to do.
func TestWordsThatAreRefused(t *testing.T) {
	w := newWorld(t)
	addr := w.workspace("notes")
	for _, c := range []struct {
		code exit.Code
		says string
		args []string
	}{
		{exit.Usage, "one of --ours, --theirs, --both and --file is needed, 0 given", []string{"conflicts", "resolve", "mnt", "f"}},
		{exit.Usage, "--html is for config and manifest", []string{"help", "--html", "mount"}},
		{exit.Usage, "--credentials, --grant and --offline are for a provider that is set up", []string{"init", "new", "--grant"}},
		{exit.Usage, "--provider is not for --from-row: the host configuration says it", []string{"init", "--provider", "s3", "--from-row", addr}},
		{exit.Usage, "there is no provider \"s4\"", []string{"init", "d", "--provider", "s4"}},
		{exit.Usage, "no directory is given for the manifest", []string{"init", "--provider", "local"}},
		{exit.Usage, "--from and --from-row name two beginnings", []string{"init", "new", "--from", addr, "--from-row", addr}},
		{exit.Usage, "is not a plain name", []string{addr, "mnt", "--control-dir", "a/b"}},
		{exit.Usage, "recover has no verb", []string{"recover", "expoort", addr, "to"}},
		{exit.Unresolvable, "@acme/notes has no working copy here", []string{"recover", "upload", addr}},
		{exit.Usage, "--to and --commit are two states", []string{"restore", "mnt", ".", "--to", "turn:1", "--commit", "a"}},
		{exit.Usage, "--lazy and --force contradict each other", []string{"umount", "mnt", "--lazy", "--force"}},
		{exit.Usage, "is an address; validate takes files", []string{"validate", addr}},
		{exit.Usage, "unknown log format", []string{addr, "mnt", "--log-format", "xml", "-f"}},
		{exit.Usage, `--patience "soon" is no time, such as 90s or 1h30m`, []string{addr, "mnt", "--patience", "soon"}},
		{exit.Usage, `--uid "me" is no number`, []string{addr, "mnt", "--uid", "me"}},
		{exit.Usage, "--requires: there is no capability", []string{"doctor", "--requires", "speed"}},
	} {
		w.refused(c.code, c.says, c.args...)
	}
}
