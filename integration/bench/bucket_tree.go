package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// A bucketTree is a bucket as a program mounts it, or the disk.
type bucketTree struct {
	*tree
	b       *bucketBench
	program string // what mounts; empty: the disk
	cache   string // the directory with all that the program keeps
	prefix  string // what of the bucket is mounted
}

// A bucketSession is all work of one user.
type bucketSession struct {
	*session
	b       *bucketBench
	mounts  []*bucketTree
	disk    *bucketTree
	missing []string // mounts that are not installed
}

// drainTime is what a mount may take to send the large file when it is unmounted.
const drainTime = 3 * time.Minute

func (b *bucketBench) bucketSession(name string) (*bucketSession, error) {
	plain, err := b.empty(name)
	if err != nil {
		return nil, err
	}
	plain.env = []string{fmt.Sprintf("%s=%d", sizeVariable, b.o.size)}
	s := &bucketSession{session: plain, b: b}
	for _, k := range []kind{wsmount, rclone, s3fs} {
		if k == s3fs && b.service.s3fs == "" {
			continue
		}
		program := b.programs[k]
		if k != wsmount {
			if program, err = exec.LookPath(string(k)); err != nil {
				s.missing = append(s.missing, string(k))
				continue
			}
		}
		s.mounts = append(s.mounts, s.newMount(k, program))
	}
	s.disk = s.newMount(disk, "")
	s.disk.dir = s.disk.cache
	for _, t := range append(s.mounts, s.disk) {
		s.trees = append(s.trees, t.tree) // the session ends them
		if err := s.mkdir(t.dir, t.cache); err != nil {
			return nil, err
		}
	}
	return s, errors.Join(s.allow(), b.fillDisk(s.disk.dir))
}

func (s *bucketSession) newMount(k kind, program string) *bucketTree {
	dir := filepath.Join(s.home, "at-"+string(k))
	t := &bucketTree{tree: &tree{kind: k, s: s.session, dir: dir, output: dir + ".log", grace: drainTime}, b: s.b, program: program,
		cache: filepath.Join(s.home, "kept-"+string(k))}
	if k == wsmount {
		t.cache = filepath.Join(s.home, "state")
	}
	return t
}

// allow lets the user's host reach the server, and gives the programs what they
// log in with.
func (s *bucketSession) allow() error {
	service := s.b.service
	login, err := json.Marshal(service.secrets)
	if err != nil {
		return err
	}
	remote, err := service.rclone(s.b.url)
	if err != nil {
		return err
	}
	err = s.mkdir(s.home+"/config", s.home+"/config/wsmount")
	for path, text := range map[string]string{
		s.home + "/login.json": string(login),
		s.home + "/config/wsmount/config.yaml": fmt.Sprintf("secrets: { org/bench/bucket: { file: %q, format: json } }\n"+
			"allow_endpoints: [ %q ]\nallow_write_back: [ \"@bench/*\" ]\n", s.home+"/login.json", s.b.url),
		s.home + "/s3fs.password": service.s3fs,
		s.home + "/rclone.conf":   "[bench]\n" + remote,
	} {
		err = errors.Join(err, os.WriteFile(path, []byte(text), 0o600), s.own(path))
	}
	return err
}

// mount shows what is there before, or a prefix of its own that is empty, to a
// program that has seen nothing yet.
func (t *bucketTree) mount(ctx context.Context, w bucketWorkload) error {
	if t.program == "" {
		return nil
	}
	t.b.mounts++
	t.prefix = foreign
	if !w.foreign {
		t.prefix = fmt.Sprintf("mount-%d/", t.b.mounts)
		// s3fs mounts no prefix that is not there.
		if err := t.b.near.put(ctx, t.prefix, nil); err != nil {
			return err
		}
	}
	if err := errors.Join(os.RemoveAll(t.cache), t.s.mkdir(t.cache)); err != nil {
		return err
	}
	if err := t.prepareProgram(w); err != nil {
		return err
	}
	return t.begin(ctx)
}

// begin starts the program. wsmount's mount is in the kernel's table a moment
// before its status is.
func (t *bucketTree) begin(ctx context.Context) error {
	err := t.start(ctx)
	if err != nil || t.kind != wsmount {
		return err
	}
	for end := time.Now().Add(stopTime); ; time.Sleep(5 * time.Millisecond) {
		if _, err = t.status(ctx); err == nil || time.Now().After(end) || ctx.Err() != nil {
			return err
		}
	}
}

// prepareProgram finds the command line.
func (t *bucketTree) prepareProgram(w bucketWorkload) error {
	bucket := t.b.service.bucket
	switch t.kind {
	case rclone:
		t.tree.program = []string{t.program, "mount", "--config", t.s.home + "/rclone.conf", "--vfs-cache-mode", "full", "--cache-dir", t.cache,
			"bench:" + bucket + "/" + t.prefix, t.dir}
		return nil
	case s3fs:
		t.tree.program = []string{t.program, bucket + ":/" + t.prefix[:len(t.prefix)-1], t.dir, "-f", "-o", "url=" + t.b.url,
			"-o", "use_path_request_style", "-o", "passwd_file=" + t.s.home + "/s3fs.password", "-o", "use_cache=" + t.cache, "-o", "umask=0022"}
		return nil
	}
	return t.register(w)
}

// register makes a workspace of the prefix, once: the host grants write-back, and
// the secret, to registered ones alone, and a place to one of them.
func (t *bucketTree) register(w bucketWorkload) error {
	name := strings.TrimSuffix(t.prefix, "/")
	dir := filepath.Join(t.s.home, "workspace-"+name)
	manifest := dir + "/WORKSPACE.md"
	t.tree.program = []string{t.program, "mount", "-f", manifest, t.dir}
	if w.writeBack {
		t.tree.program = []string{t.program, "mount", "-f", "--write-back", manifest, t.dir}
	}
	if _, err := os.Stat(manifest); err == nil {
		return nil
	}
	text := fmt.Sprintf(bucketManifest, name, t.b.service.config, t.b.url+t.b.service.path, t.prefix)
	if err := errors.Join(t.s.mkdir(dir), os.WriteFile(manifest, []byte(text), 0o644)); err != nil {
		return err
	}
	return t.s.registryAdd(dir)
}

const bucketManifest = `---
schema: workspace/v1
id: "@bench/%s"
version: 1.0.0
name: Benchmark
description: A bucket of small and large files to measure.
owner: { type: user, id: bench, slug: bench }
storage:
  inline:
    provider: self-bucket
    config: { %s, endpoint: %q, prefix: %q, credentials_ref: org/bench/bucket }
---
`

// forget mounts again, with what is kept on the disk and not in memory.
func (t *bucketTree) forget(ctx context.Context) error {
	if err := t.stop(); err != nil {
		return err
	}
	if err := dropPages(t.cache); err != nil || t.program == "" {
		return err
	}
	return t.begin(ctx)
}

// dropPages makes the next read of every file below dir come from the disk. It
// leaves other programs' files alone, and anybody may do it.
func dropPages(dir string) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		// Pages that were not written yet would stay.
		if err := f.Sync(); err != nil {
			return err
		}
		return unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED)
	})
}

// saved waits until wsmount has sent everything.
func (t *bucketTree) saved(ctx context.Context) error {
	for end := time.Now().Add(drainTime); ; {
		st, err := t.status(ctx)
		if err != nil {
			return err
		}
		unsaved := 0
		for _, p := range st.Parts {
			unsaved += p.Unsaved.Files + p.Unsaved.Names
		}
		switch {
		case unsaved == 0:
			return nil
		case time.Now().After(end):
			return fmt.Errorf("%d changes are unsaved after %v", unsaved, drainTime)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}
