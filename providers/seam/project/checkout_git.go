package project

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

const gitDir = ".git"

// readGit is the directory of the git repository whose work tree has this root, and the URL of
// its remote origin.
func readGit(root string) (repository, origin string, err error) {
	at := filepath.Join(root, gitDir)
	info, err := os.Lstat(at)
	if errors.Is(err, fs.ErrNotExist) {
		return "", "", nil
	}
	if err == nil && info.IsDir() {
		repository = at
	} else if err == nil {
		at, repository, err = linkedGit(root, at)
	}
	if err != nil {
		return "", "", err
	}
	config, err := readFile(filepath.Join(at, "config"))
	if errors.Is(err, fs.ErrNotExist) {
		err = nil // it is no repository
	}
	return repository, originOf(string(config)), err
}

// linkedGit finds the directory that a .git leads to. It is the repository of the work tree if
// the repository names the work tree too.
func linkedGit(root, link string) (at, repository string, err error) {
	if at, err = filepath.EvalSymlinks(link); err != nil {
		return "", "", err
	}
	info, err := os.Stat(at)
	if err != nil || info.IsDir() {
		return at, "", err
	}
	text, err := readFile(at)
	if err != nil {
		return "", "", err
	}
	to, is := strings.CutPrefix(string(text), "gitdir:")
	if !is {
		return at, "", nil // no config lies below a file
	}
	at = below(root, to)
	common, err := readFile(filepath.Join(at, "commondir"))
	if errors.Is(err, fs.ErrNotExist) {
		return at, "", nil
	}
	if err != nil {
		return "", "", err
	}
	back, err := readFile(filepath.Join(at, "gitdir"))
	knows := err == nil && realRoot(filepath.Dir(below(at, string(back)))) == root
	if at = below(at, string(common)); knows {
		repository, err = filepath.EvalSymlinks(at)
	}
	return at, repository, err
}

// below is a path on a line of a file in dir, made absolute.
func below(dir, name string) string {
	if name = strings.TrimSpace(name); filepath.IsAbs(name) {
		return filepath.Clean(name)
	}
	return filepath.Join(dir, name)
}

// originOf is the URL of the remote origin in a git configuration.
func originOf(config string) string {
	in := false
	for line := range strings.Lines(config) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "[") {
			head, rest, _ := strings.Cut(line, "]")
			name, sub, _ := strings.Cut(head[1:], " ")
			in = strings.EqualFold(name, "remote") && strings.TrimSpace(sub) == `"origin"`
			line = strings.TrimSpace(rest)
		}
		key, value, _ := strings.Cut(line, "=")
		if in && strings.EqualFold(strings.TrimSpace(key), "url") {
			return gitValue(value)
		}
	}
	return ""
}

// gitValue is a value without its quotes, and without a comment after it.
func gitValue(text string) string {
	var b strings.Builder
	quoted := false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			quoted = !quoted
		case c == '\\' && i+1 < len(text):
			i++
			b.WriteByte(text[i])
		case !quoted && (c == '#' || c == ';'):
			return strings.TrimSpace(b.String())
		default:
			b.WriteByte(c)
		}
	}
	return strings.TrimSpace(b.String())
}
