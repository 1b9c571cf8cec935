// Command memoryd is a storage service for tests of the program: it holds what
// a workspace of the provider "memory" has in a process of its own, so that it
// outlives the mounts, and misbehaves when a test asks it to.
//
//	memoryd -socket /run/test/s [-delay 10ms] [-without empty-dirs,move] [-no-digest] [-repository]
//
// It makes the Unix socket, readable and writable by its user alone, prints the
// line "ready", and serves until its standard input ends or it gets SIGINT or
// SIGTERM, so that it never outlives the test that started it. A manifest names
// it so; "clone" and "branch" only with -repository:
//
//	storage: {inline: {provider: memory, config: {socket: /run/test/s, clone: a, branch: main}}}
//
// -without lists what the store does not promise and then does not do:
// empty-dirs, symlinks, metadata, list-complete, recursive-list, list-after,
// operation-ids, unique-versions; mode, owner, mtime; copy, move, attr, commit.
// "flat" is a poor bucket: all of these but metadata, recursive-list, list-after,
// operation-ids and copy.
//
// -repository serves a remote with branches; each name of a clone is a clone of
// its own, which outlives the mounts as well. -without means its clones then.
//
// # Control
//
// A test that is written in Go controls the service through package memory;
// nothing that Control does is itself delayed, cut or counted:
//
//	c, err := memoryserver.DialControl(ctx, "unix", socket)            // a store
//	c, err := memoryserver.DialCloneControl(ctx, "unix", socket, "a", "main") // a clone and its branch
//
//	c.Delay(ctx, 5*time.Second)                       every call takes so much longer
//	c.Cut(ctx, false)                                 every call fails at once: unavailable
//	c.Cut(ctx, true)                                  every call hangs, until its caller gives up or Connect
//	c.Connect(ctx)                                    the outage is over; what hangs goes on
//	c.Fail(ctx, providers.MethodWrite, 3, providers.ErrQuota)   the next 3 writes fail, and do nothing
//	c.Lose(ctx, providers.MethodCommit, 1)            the next commit happens, and its answer gets lost
//	c.Clear(ctx)                                      no delay, no outage, nothing queued
//	c.Calls(ctx)                                      how many calls there were, by verb
//	c.Tamper(ctx, l, []byte("x"))                     another writer: content at l, unconditionally
//	c.Tamper(ctx, l, nil)                             another writer: remove l, with all below it
//	c.TamperMkdir(ctx, l)                             another writer: a directory (not of a repository)
//	c.Dump(ctx)                                       the tree, a line for each entry, sorted
//
// Of a clone, Delay and Cut are for Push and Fetch, which leave the machine;
// Tamper is a stranger's push of one commit to the branch, Dump shows the
// branch at the remote, and there are besides:
//
//	c.Branches(ctx)                                   where the branches are
//	c.Reset(ctx, revision)                            a forced push; "" deletes the branch
//	c.Log(ctx)                                        the commits of the branch, the newest first
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/wsmount/wsmount/integration/memoryrepo"
	"github.com/wsmount/wsmount/integration/memoryserver"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/memory"
)

// options are the flags.
type options struct {
	socket     string
	delay      time.Duration
	without    string
	noDigest   bool
	repository bool
}

func main() {
	var o options
	flag.StringVar(&o.socket, "socket", "", "make and serve this Unix `SOCKET`")
	flag.DurationVar(&o.delay, "delay", 0, "each call takes this `TIME` longer")
	flag.StringVar(&o.without, "without", "", "`LIST` of what the store does not do")
	flag.BoolVar(&o.noDigest, "no-digest", false, "tell no hashes of content")
	flag.BoolVar(&o.repository, "repository", false, "serve a remote with branches")
	flag.Parse()
	if err := run(o, os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "memoryd:", err)
		os.Exit(1)
	}
}

// run serves until in ends or a signal comes.
func run(o options, in io.Reader, out io.Writer) error {
	less, err := parseWithout(o.without)
	if err != nil {
		return err
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGINT, syscall.SIGTERM)
	defer signal.Stop(stop)
	l, err := listen(o.socket)
	if err != nil {
		return err
	}
	opts := memory.Options{Without: less, NoDigest: o.noDigest, Delay: o.delay}
	var s *memoryserver.Server
	if o.repository {
		s = memoryserver.ServeRemote(l, memoryrepo.NewRemote(nil), opts)
	} else {
		s = memoryserver.Serve(l, memory.New(opts))
	}
	ended := make(chan error, 1)
	go func() {
		_, err := io.Copy(io.Discard, in)
		ended <- err
	}()
	if _, err := fmt.Fprintln(out, "ready"); err != nil {
		return errors.Join(err, s.Close())
	}
	select {
	case <-stop:
		return s.Close()
	case err := <-ended:
		return errors.Join(err, s.Close())
	}
}

// listen makes the socket, which nobody else can use even for a moment.
func listen(socket string) (net.Listener, error) {
	if socket == "" {
		return nil, errors.New("-socket is needed")
	}
	old := syscall.Umask(0o177)
	defer syscall.Umask(old)
	var c net.ListenConfig
	return c.Listen(context.Background(), "unix", socket)
}

// words are what -without may list.
var words = map[string]providers.Capabilities{
	"empty-dirs":      {EmptyDirs: true},
	"symlinks":        {Symlinks: true},
	"metadata":        {Metadata: true},
	"list-complete":   {ListComplete: true},
	"recursive-list":  {RecursiveList: true},
	"list-after":      {ListAfter: true},
	"operation-ids":   {OperationIDs: true},
	"unique-versions": {UniqueVersions: true},
	"mode":            {Attributes: providers.AttrMode},
	"owner":           {Attributes: providers.AttrOwner},
	"mtime":           {Attributes: providers.AttrModTime},
	"xattrs":          {Attributes: providers.AttrXattrs},
	"copy":            {Abilities: providers.AbilityCopy},
	"move":            {Abilities: providers.AbilityMove},
	"attr":            {Abilities: providers.AbilityAttr},
	"parts":           {Abilities: providers.AbilityParts},
	"commit":          {Abilities: providers.AbilityCommit},
	"flat": {
		EmptyDirs: true, Symlinks: true, ListComplete: true, UniqueVersions: true,
		Attributes: providers.AttrMode | providers.AttrOwner | providers.AttrModTime | providers.AttrXattrs,
		Abilities:  providers.AbilityMove | providers.AbilityAttr | providers.AbilityCommit,
	},
}

func parseWithout(list string) (less providers.Capabilities, err error) {
	if list == "" {
		return less, nil
	}
	for _, word := range strings.Split(list, ",") {
		c, ok := words[word]
		if !ok {
			return less, fmt.Errorf("-without %q is not one of %s", word, strings.Join(known(), ", "))
		}
		less.EmptyDirs = less.EmptyDirs || c.EmptyDirs
		less.Symlinks = less.Symlinks || c.Symlinks
		less.Metadata = less.Metadata || c.Metadata
		less.ListComplete = less.ListComplete || c.ListComplete
		less.RecursiveList = less.RecursiveList || c.RecursiveList
		less.ListAfter = less.ListAfter || c.ListAfter
		less.OperationIDs = less.OperationIDs || c.OperationIDs
		less.UniqueVersions = less.UniqueVersions || c.UniqueVersions
		less.Attributes |= c.Attributes
		less.Abilities |= c.Abilities
	}
	return less, nil
}

func known() []string {
	var names []string
	for name := range words {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
