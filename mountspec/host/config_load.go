package host

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/wsmount/wsmount/mountspec/host/hostfile"
)

// LoadOptions of LoadConfig.
type LoadOptions struct {
	// Path is the file given by --config or WSMOUNT_CONFIG. Empty: look in
	// XDG_CONFIG_HOME (~/.config), then in /etc; none there is no error.
	Path string
	// Home is the user's home directory. Empty: $HOME.
	Home string
	// Lookup reads the environment that the program started with, then and whenever a
	// secret kept in it is revealed. nil: empty.
	Lookup func(name string) (string, bool)
	// System is the directory of the machine's configuration. Empty:
	// /etc/wsmount.
	System string
}

const configName = "config.yaml"

// LoadConfig finds, checks and reads the host configuration. A file that users
// other than root and this one could have written is refused.
func LoadConfig(o LoadOptions) (*Config, error) {
	if o.Lookup == nil {
		o.Lookup = func(string) (string, bool) { return "", false }
	}
	if o.Home == "" {
		o.Home, _ = o.Lookup("HOME")
	}
	if o.System == "" {
		o.System = "/etc/wsmount"
	}
	c, err := o.find()
	if err != nil {
		return nil, err
	}
	c.Places = o.places()
	return c, nil
}

func (o LoadOptions) find() (*Config, error) {
	if o.Path != "" {
		return o.given()
	}
	user := o.userDir()
	for _, dir := range []string{user, o.System} {
		if dir == "" {
			continue
		}
		c, err := o.read(filepath.Join(dir, configName))
		if err == nil || !hostfile.IsAbsent(err) {
			return c, err
		}
	}
	if user == "" {
		user = o.System
	}
	return &Config{Dir: user}, nil
}

// places are the files that a configuration is read from, with and without a path
// or XDG_CONFIG_HOME.
func (o LoadOptions) places() []string {
	out := []string{filepath.Join(o.System, configName)}
	if o.Path != "" {
		out = append(out, o.Path)
	}
	if dir := o.userDir(); dir != "" {
		out = append(out, filepath.Join(dir, configName))
	}
	if filepath.IsAbs(o.Home) {
		out = append(out, filepath.Join(o.Home, ".config", "wsmount", configName))
	}
	return out
}

// userDir is $XDG_CONFIG_HOME/wsmount or ~/.config/wsmount. A relative
// XDG_CONFIG_HOME is ignored, as its specification demands.
func (o LoadOptions) userDir() string {
	if x, ok := o.Lookup("XDG_CONFIG_HOME"); ok && filepath.IsAbs(x) {
		return filepath.Join(x, "wsmount")
	}
	if filepath.IsAbs(o.Home) {
		return filepath.Join(o.Home, ".config", "wsmount")
	}
	return ""
}

// given reads a file that was named, at any place: as always it must not be writable by others. A
// relative path is refused, since it could lead to a file that came with a repository.
func (o LoadOptions) given() (*Config, error) {
	if !filepath.IsAbs(o.Path) {
		return nil, denied("", o.Path, "give its absolute path", "a configuration is not read from a relative path")
	}
	c, err := o.read(o.Path)
	if err != nil && hostfile.IsAbsent(err) {
		return nil, fileError("", o.Path, err)
	}
	return c, err
}

func (o LoadOptions) read(path string) (*Config, error) {
	f, err := hostfile.Read(path, hostfile.Options{})
	if err != nil {
		if errors.Is(err, hostfile.ErrUntrusted) {
			return nil, fileError("", path, err)
		}
		return nil, fmt.Errorf("host configuration: %w", err)
	}
	c, findings := ParseConfig(f.Data, ParseOptions{Name: f.Path, Home: o.Home, Lookup: o.Lookup})
	if err := findings.Err(); err != nil {
		return nil, &Error{Class: Invalid, What: "the host configuration is not valid", Err: err, Hint: "correct the lines; nothing of a configuration that is misread is used"}
	}
	return c, nil
}
