// Command bench compares wsmount with the disk under it and with the loopback
// file system that comes with go-fuse, and prints one table.
//
// It promises that the three are measured alike: the same work by the same
// program, in trees on one disk, in turn within each round, as root and as an
// unprivileged user. A figure is the median over the rounds, a ratio the median
// of the rounds' ratios, so that a slow minute of the machine hits all three.
// How wsmount's files were opened (passthrough or through the page cache) is
// read from its status and stands in the table, so that a fallback cannot hide.
//
//	bench -wsmount bin/wsmount -loopback bin/loopback
//	bench -run 'read|stat' -rounds 9 -users nobody
//	bench -memoryd bin/memoryd -delay 10ms -loopback ''
//	bench -s3 bin/minio -latency 10ms
//	bench -service azure -latency 10ms -size 64
//	bench -git 1000,20000,100000 -rounds 3
//	bench -store 50
//
// With -s3 a bucket is what is mounted: by wsmount and by the other mounts of
// buckets that are installed, each for one workload alone. The limit is what the
// bare SDK reaches, or ext4. After a workload that writes, the bucket is compared
// with what was written, so that nobody is fast by having lost something.
//
// With -service it is a container of Azure, or a bucket of Google's, in the memory of this
// program, which takes some of the processors' time from all that are measured alike.
//
// With -git repositories are what is mounted, and what a person waits for is
// compared with the git program, that does the same in a clone on the disk.
//
// Nothing is left behind: the trees lie in a new directory under -dir, which is
// removed. Where -dir is on an ext4 without a journal, root measures in an image that
// has one: see disk.go.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// options are the command line.
type options struct {
	wsmount, loopback string
	memoryd           string // a working copy of this is measured instead of a local directory
	delay             time.Duration
	s3                string // buckets of this server are measured instead,
	service           string // or of one of these in the benchmark's own memory
	latency           time.Duration
	size              int   // MiB
	git               []int // repositories of so many files are measured instead
	store             int   // so many programs that read a file of memory are
	dir               string
	users             []string
	run               *regexp.Regexp
	rounds            int
	io, clock         string
	strict            bool
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == workerCommand {
		os.Exit(workerMain(os.Args[2:]))
	}
	o, list, err := parse(os.Args[1:])
	switch {
	case errors.Is(err, flag.ErrHelp):
		os.Exit(0)
	case err != nil:
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(2)
	case list:
		for _, w := range workloads() {
			fmt.Println(w.name)
		}
		for _, w := range bucketWorkloads() {
			fmt.Println(w.name)
		}
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := measure(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// measure measures what the options say, on the disk that they say.
func measure(ctx context.Context, o options) (err error) {
	done, err := o.onJournal(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	switch {
	case o.s3 != "" || o.service != "":
		return compareBuckets(ctx, o)
	case len(o.git) > 0:
		return compareGit(ctx, o)
	case o.store > 0:
		return compareStore(ctx, o)
	}
	return compare(ctx, o)
}

func parse(args []string) (o options, list bool, err error) {
	set := flag.NewFlagSet("bench", flag.ContinueOnError)
	set.StringVar(&o.wsmount, "wsmount", "bin/wsmount", "the wsmount `program`; empty: without it")
	set.StringVar(&o.loopback, "loopback", "bin/loopback", "go-fuse's loopback `program`; empty: without it")
	set.StringVar(&o.memoryd, "memoryd", "", "measure a working copy of what this `program` serves, not a local directory")
	set.DurationVar(&o.delay, "delay", 0, "what each call of -memoryd takes longer")
	set.StringVar(&o.s3, "s3", "", "measure buckets of this server `program`, minio or versitygw, against other mounts of buckets and the bare SDK")
	set.StringVar(&o.service, "service", "", "measure a bucket in memory of this service, azure or gcs, like one of -s3")
	set.DurationVar(&o.latency, "latency", 0, "what each request to -s3 takes longer")
	set.IntVar(&o.size, "size", 512, "of the large file in the bucket of -s3, in `MiB`")
	set.StringVar(&o.dir, "dir", "/var/tmp", "a `directory` of the disk to measure on")
	set.Func("git", "measure repositories of so many `files` each, separated by commas, against the git program", func(s string) error {
		for one := range strings.SplitSeq(s, ",") {
			n, err := strconv.Atoi(one)
			if err != nil || n < dirFiles {
				return fmt.Errorf("%q: a number of files from %d on is wanted", one, dirFiles)
			}
			o.git = append(o.git, n)
		}
		return nil
	})
	set.IntVar(&o.store, "store", 0, "measure so many processes of store read, of each kind of memory")
	users := set.String("users", defaultUsers(), "who does the work, separated by commas")
	run := set.String("run", "", "only workloads whose name matches this `pattern`")
	set.IntVar(&o.rounds, "rounds", 5, "how often each workload is measured")
	set.StringVar(&o.io, "io", "auto", "the io mode that must be seen: passthrough, cached, any, or auto (passthrough as root, else cached)")
	set.StringVar(&o.clock, "clock", "wall", "what rates are by: wall, or cpu (processor time of work and daemon, for a machine that is busy)")
	set.BoolVar(&o.strict, "strict", false, "fail when a bar is missed")
	set.BoolVar(&list, "list", false, "print the workloads")
	if err = set.Parse(args); err != nil {
		return o, false, err
	}
	switch {
	case set.NArg() > 0:
		return o, false, fmt.Errorf("%q: only flags are understood, see -help", set.Arg(0))
	case o.rounds < 1:
		return o, false, errors.New("-rounds: at least one is needed")
	case o.clock != "wall" && o.clock != "cpu":
		return o, false, errors.New("-clock is wall or cpu")
	case !slices.Contains([]string{"auto", "any", "passthrough", "cached"}, o.io):
		return o, false, errors.New("-io is auto, any, passthrough or cached")
	case len(o.git) > 0 && (o.memoryd != "" || o.s3 != "" || o.wsmount == "" || o.clock != "wall"):
		return o, false, errors.New("-git needs -wsmount and the wall clock, and goes without -memoryd and -s3")
	case o.service != "" && (o.s3 != "" || len(o.git) > 0 || o.service != inAzure && o.service != inGCS):
		return o, false, errors.New("-service is azure or gcs, and goes without -s3 and -git")
	case (o.s3 != "" || o.service != "") && (o.memoryd != "" || o.wsmount == "" || o.clock != "wall" || o.size < 1 || o.latency < 0):
		return o, false, errors.New("-s3 and -service need -wsmount, the wall clock, a size and a latency that are possible, and go without -memoryd")
	}
	if o.s3 != "" || o.service != "" {
		o.loopback = "" // has no bucket
	}
	o.users = strings.Split(*users, ",")
	o.run, err = regexp.Compile(*run)
	return o, list, err
}

// compare measures everything for every user and prints the table.
func compare(ctx context.Context, o options) error {
	b, err := newBench(o)
	if err != nil {
		return err
	}
	defer b.close()
	return o.eachUser(func(name string) (missed, failed []string, err error) {
		s, err := b.session(name)
		if err != nil {
			return nil, nil, err
		}
		rows, err := s.measure(ctx)
		s.close()
		if err != nil {
			return nil, nil, fmt.Errorf("as %s: %w", name, err)
		}
		printTable(os.Stdout, s, rows)
		for _, r := range rows {
			missed = append(missed, r.missed(s)...)
			failed = append(failed, r.problems...)
		}
		return missed, failed, nil
	})
}

// eachUser has everything measured for every user. The error says what failed,
// or with -strict which bars were missed.
func (o options) eachUser(measure func(name string) (missed, failed []string, err error)) error {
	var missed, failed []string
	for _, name := range o.users {
		m, f, err := measure(name)
		if err != nil {
			return err
		}
		missed, failed = append(missed, m...), append(failed, f...)
	}
	if len(failed) > 0 {
		return errors.New(strings.Join(failed, "; "))
	}
	if o.strict && len(missed) > 0 {
		return fmt.Errorf("bars missed: %s", strings.Join(missed, "; "))
	}
	return nil
}

func defaultUsers() string {
	if os.Geteuid() == 0 {
		return "root,nobody"
	}
	return currentUser()
}
