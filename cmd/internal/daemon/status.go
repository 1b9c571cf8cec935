package daemon

import (
	"bytes"
	"fmt"
	"runtime"
	"slices"

	"github.com/wsmount/wsmount/cache/exactjson"
	"github.com/wsmount/wsmount/cmd/internal/control"
	"github.com/wsmount/wsmount/fs"
)

const (
	maxOpenFiles = 100     // shown in status
	countedFiles = 100_000 // looked at to count them by part
)

var _ control.Backend = (*Daemon)(nil)

// Status describes the mount as it is now. It waits for nothing but conflictCopies.
func (d *Daemon) Status() control.Status {
	s := control.Status{
		Schema: control.StatusSchema, Workspace: d.tree.Name, Mountpoint: d.tree.Mountpoint, Source: d.tree.Manifest,
		PID: d.record.PID, Version: d.opts.Version, Started: d.record.Started, Taken: d.opts.Now(),
		StateDir: d.dir.Path(), Log: d.logFile, ReadOnly: d.tree.ReadOnly(), Lasting: d.tree.ReadOnly(), Unverified: d.tree.Unverified,
		Durability: d.tree.Durability, OpenFiles: []control.OpenFile{}, Notes: d.outdated.After(d.tree.Notes), Places: d.places, UsedBy: d.users.list(),
	}
	s.State, s.NotSafe = d.end()
	d.describePlace(&s)
	var stats fs.Stats
	var open []fs.OpenFile
	if d.server != nil {
		stats = d.server.Stats()
		open, _ = d.server.OpenFiles(countedFiles)
		s.Passthrough.On, s.Passthrough.Reason = d.server.Passthrough()
	}
	s.Panics, s.Notifications = stats.Panics, stats.Notified
	for _, op := range stats.Ops {
		s.Operations += op.Count
	}
	for _, f := range open[:min(len(open), maxOpenFiles)] {
		s.OpenFiles = append(s.OpenFiles, control.OpenFile{Part: f.Part, Path: f.Path, IOMode: f.Mode, Opens: f.Opens, Writers: f.Writers})
	}
	if b := d.opts.Copy.Fetches; b != nil {
		u := b.Usage()
		s.Fetching = control.Fetching{Limit: u.Limit, Used: u.Used, Ahead: u.Ahead, Waiting: u.Waiting}
	}
	s.Hooks = d.hooks.Status()
	for _, p := range d.parts {
		s.Parts = append(s.Parts, p.status(filesOf(p, open), stats.Refused[p.name]))
	}
	sum(&s)
	return s
}

// sum fills in the totals of a status over its parts.
func sum(s *control.Status) {
	changeable := func(p control.Part) bool { return p.ReadOnly == "" && p.Unavailable == "" }
	s.ReadOnly = s.Lasting || len(s.Parts) > 0 && !slices.ContainsFunc(s.Parts, changeable)
	for _, p := range s.Parts {
		s.UnsavedBytes += p.Unsaved.Bytes
		s.ConflictsTotal += p.Conflicts
	}
}

// kernelStats are for the metrics.
func (d *Daemon) kernelStats() (s fs.Stats, mounted bool) {
	if d.server == nil {
		return s, false
	}
	return d.server.Stats(), true
}

// Work sums up the work under way in the parts.
func (d *Daemon) Work() control.Work {
	out := control.Work{Schema: control.WorkSchema}
	for _, p := range d.parts {
		copied, ok := p.volume.(*workingCopy)
		if !ok {
			continue
		}
		now := copied.Progress()
		out.Beat += now.Beat
		out.Fetch, out.Fetched = out.Fetch+copied.fetching.All.Load(), out.Fetched+copied.fetching.Done.Load()
		if now.What != "" {
			out.What, out.Part, out.Done, out.Total = now.What, p.name, now.Done, now.Total
		}
	}
	return out
}

func filesOf(p *part, open []fs.OpenFile) []fs.OpenFile {
	var out []fs.OpenFile
	for _, f := range open {
		if f.Part == p.name {
			out = append(out, f)
		}
	}
	return out
}

// partStatus is the content of .wsmount/status.json.
func (d *Daemon) partStatus(p *part) control.Part {
	var open []fs.OpenFile
	var refused uint64
	if d.server != nil {
		all, _ := d.server.OpenFiles(countedFiles)
		open, refused = filesOf(p, all), d.server.Stats().Refused[p.name]
	}
	return p.status(open, refused)
}

// saveStatus writes the status to the state directory unless nothing in it has
// changed but the time, so that an idle mount writes nothing.
func (d *Daemon) saveStatus() {
	s := d.Status()
	d.hooks.Observe(s)
	taken := s.Taken
	s.Taken = d.record.Started
	plain, err := exactjson.Marshal(s)
	if err != nil || bytes.Equal(plain, d.saved) {
		return
	}
	d.saved = plain
	s.Taken = taken
	b, err := exactjson.MarshalIndent(s, "", "  ")
	if err == nil {
		err = d.dir.SaveStatus(append(b, '\n'))
	}
	if err != nil {
		d.log.Error("cannot save the status", "err", err)
	}
}

// Debug returns data that only this process has: counters, its configuration
// without secrets (it holds none), and the stacks of its goroutines.
func (d *Daemon) Debug() control.Debug {
	stats, _ := exactjson.Marshal(d.server.Stats())
	config, _ := exactjson.Marshal(d.tree.describe(d.opts))
	stacks := make([]byte, 1<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	head := fmt.Sprintf("heap in use %d, from the system %d, collections %d\n\n", m.HeapInuse, m.Sys, m.NumGC)
	return control.Debug{Schema: control.DebugSchema, Stats: stats, Config: config, Goroutines: head + string(stacks)}
}
