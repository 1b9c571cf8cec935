package main

import (
	"math"
	"os"
	"regexp"
	"strconv"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/wsmount/wsmount/cache"
	"github.com/wsmount/wsmount/cmd/internal/bytesize"
	"github.com/wsmount/wsmount/cmd/internal/daemon"
	"github.com/wsmount/wsmount/cmd/internal/exit"
)

// copyOptions reads the flags that apply only to working copies of remote workspaces.
func copyOptions(c *cli.Context) (o daemon.CopyOptions, err error) {
	o.WriteBack, o.MapIDs = c.Bool("write-back"), c.Bool("map-ids")
	if o.MapIDs && os.Geteuid() != 0 {
		return o, exit.New(exit.Denied, "--map-ids is for root: other users cannot give files away").Hint("leave it out, or mount as root")
	}
	if o.CacheSize, err = bytesize.Parse("--cache-size", c.String("cache-size")); err != nil {
		return o, err
	}
	if o.TotalSize, err = bytesize.Parse("--total-cache-size", c.String("total-cache-size")); err != nil {
		return o, err
	}
	if o.KeepFree, err = bytesize.Parse("--keep-free", c.String("keep-free")); err != nil {
		return o, err
	}
	if o.Patience = c.Duration("patience"); c.IsSet("patience") && o.Patience < time.Second {
		return o, exit.New(exit.Usage, "--patience must be a second or more").Hint("for example --patience 30s")
	}
	if o.Umask, err = parseUmask(c.String("umask")); err != nil {
		return o, err
	}
	if c.IsSet("uid") || c.IsSet("gid") {
		o.Owner, err = parseOwner(c)
	}
	return o, err
}

func parseOwner(c *cli.Context) (*cache.Owner, error) {
	o := &cache.Owner{UID: uint32(os.Geteuid()), GID: uint32(os.Getegid())}
	for name, field := range map[string]*uint32{"uid": &o.UID, "gid": &o.GID} {
		if !c.IsSet(name) {
			continue
		}
		n := c.Uint(name)
		if n >= math.MaxUint32 { // the highest means "no change" in chown(2)
			return nil, exit.New(exit.Usage, "--%s %d is no number of a user or group", name, n).Hint("for example --%s 1000", name)
		}
		*field = uint32(n)
	}
	return o, nil
}

func parseUmask(s string) (uint32, error) {
	if s == "" {
		return 0o022, nil
	}
	n, err := strconv.ParseUint(s, 8, 32)
	if err != nil || n > 0o777 {
		return 0, exit.New(exit.Usage, "--umask %q is not an octal mask", oneLine(s)).Hint("for example --umask 027")
	}
	return uint32(n), nil
}

var copyName = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,31}$`)

// checkCopyName refuses a name of a working copy that cannot be part of a directory name.
func checkCopyName(name string) error {
	if name == "" || copyName.MatchString(name) {
		return nil
	}
	return exit.New(exit.Usage, "--working-copy %q is not a name", oneLine(name)).
		Hint("lower-case letters, digits, - and _, at most 32; for example --working-copy review")
}
