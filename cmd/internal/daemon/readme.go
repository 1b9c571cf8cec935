package daemon

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/wsmount/wsmount/cmd/internal/readme"
	"github.com/wsmount/wsmount/cmd/internal/syncpolicy"
	"github.com/wsmount/wsmount/cmd/internal/wrap"
	"github.com/wsmount/wsmount/mountspec"
	"github.com/wsmount/wsmount/mountspec/host"
	"github.com/wsmount/wsmount/mountspec/policy"
)

// readme describes this part for an agent that knows only files: the changes that
// it may make, when and how they are sent, how conflicts end, and where to look
// when something failed. It names nothing of the host.
func (p *part) readme() []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "This is %s, mounted by wsmount. The files of this directory tell how it is\n"+
		"doing. They are no part of the workspace, and are not listed, changed or sent.\n", p.Name)
	for _, s := range []struct {
		title string
		lines []string
	}{
		{"CODE", p.tellCode()},
		{"WRITING", p.tellWriting()},
		{"WORKSPACES INSIDE", p.tellNested()},
		{"SENDING", p.tellSending()},
		{"CHANGES OF OTHERS", p.tellOthers()},
		{"EARLIER VERSIONS", p.tellHistory()},
		{"WHEN SOMETHING FAILS", readme.Failures},
	} {
		if len(s.lines) > 0 {
			fmt.Fprintf(&b, "\n%s\n  %s\n", s.title, strings.Join(s.lines, "\n  "))
		}
	}
	return []byte(b.String())
}

// tellCode says that the workspace is a code project (AIP-34, Workspace as repo).
func (p *part) tellCode() []string {
	if p.Code == nil {
		return nil
	}
	lines := []string{"The workspace is a code project: " + p.Code.String() + "."}
	if p.Code.Description != "" {
		lines = append(lines, wrap.Lines(strings.Join(strings.Fields(p.Code.Description), " "), 76)...)
	}
	return lines
}

func (p *part) tellWriting() []string {
	switch {
	case p.Unavailable != "":
		return []string{"Not available: errors.log says why."}
	case p.closed() != "":
		return []string{"CLOSED: " + p.closed() + ".", "Whatever is opened fails with EACCES, \"Permission denied\"."}
	case p.readOnly() != "":
		return []string{"READ-ONLY: " + p.readOnly() + ".", "Every change fails with EROFS, \"Read-only file system\". Write somewhere else."}
	}
	lines := []string{"You may write here."}
	if len(p.Governing) > 0 {
		lines = append(lines, "But these say how this is mounted, and cannot be changed from inside:", "  "+strings.Join(p.Governing, ", "))
	}
	if p.Durability != "disk" {
		lines = append(lines, "Nothing of it is kept for good: it is "+p.Durability+".")
	}
	return lines
}

// tellNested names the workspaces that are mounted right inside; none in a closed part.
func (p *part) tellNested() (lines []string) {
	if p.closed() != "" {
		return nil
	}
	for _, n := range p.nested() {
		is := map[string]string{"": "is " + n.Workspace, "unavailable": "is not available"}[n.State]
		lines = append(lines, fmt.Sprintf("%s/ %s", n.At, cmp.Or(is, "is "+n.Workspace+", "+n.State)))
	}
	if lines != nil {
		lines = append(lines, "Each has a .wsmount of its own, which tells how it is: what is said here does not hold",
			"there. rename and link between them and here fail with EXDEV: copy instead.")
	}
	return lines
}

func (p *part) tellSending() []string {
	w, ok := p.volume.(*workingCopy)
	switch {
	case p.Unavailable != "" || p.ReadOnly != "" || p.readOnly() != "" && !ok:
		return nil
	case p.readOnly() != "": // for now: something may have been written before
		return []string{readme.Waiting}
	case !ok:
		return []string{"The files are a directory: what you write is there at once, and nothing is sent."}
	case w.syncer.sync.Mode != mountspec.ModePullPush && !w.noWait:
		return []string{"close and fsync return when the store has the file. When they fail, it is still",
			"here, and wsmount tries again by itself. Names, modes and removals follow in order.", readme.Waiting}
	}
	return slices.Concat(w.tellHalt(true), w.syncer.tellSending(), []string{readme.Waiting})
}

// tellHalt describes the present halts of commits, or of pulls.
func (w *workingCopy) tellHalt(commit bool) (lines []string) {
	for _, h := range w.Status().Halted {
		if h.Commit == commit {
			lines = append(lines, "STOPPED NOW, since "+h.Since.UTC().Format(time.RFC3339)+": "+h.Reason+".",
				"Ask who runs wsmount to look at it: --confirm of `wsmount "+haltVerb(h)+"` allows it.")
		}
	}
	return lines
}

// tellSending is for a working copy whose closes do not wait for the store.
func (k *syncer) tellSending() []string {
	s := k.sync
	lines := []string{"What you write is kept on this machine's disk at once, also if wsmount crashes."}
	if k.writeThrough || s.Mode != mountspec.ModePullPush {
		return append(lines, "It is sent "+syncpolicy.When(s.Commit.On)+".")
	}
	if !k.decide(policy.Commit).Allow {
		return append(lines, "Policy does not let wsmount send it.")
	}
	lines = append(lines, "It is committed "+syncpolicy.When(s.Commit.On)+".")
	switch {
	case !k.decide(policy.Push).Allow:
		lines = append(lines, "Policy does not let wsmount push commits to others.")
	case s.Push.On.Resolve() == mountspec.EventCommitCompleted:
		lines = append(lines, "Each commit is pushed to the others by itself.")
	default:
		lines = append(lines, "Commits are pushed to the others "+syncpolicy.When(s.Push.On)+".")
	}
	if syncpolicy.HasBranches(s) {
		lines = append(lines, "They go to a branch, "+strings.ReplaceAll(string(s.Push.Branch), "-", " ")+`: "branch" in status.json.`)
	}
	if k.r.Location.Service == host.ServiceGit {
		lines = append(lines, "New files that a .gitignore names stay here.")
	}
	return lines
}

func (p *part) tellOthers() []string {
	w, ok := p.volume.(*workingCopy)
	switch {
	case p.Unavailable != "":
		return nil
	case !ok:
		return []string{"Changes of others are here at once, or within a second. Nothing can conflict:", "the last who writes a file wins."}
	case w.syncer.sync.Mode != mountspec.ModePullPush:
		return slices.Concat(w.tellHalt(false), []string{"Changes of others are here within a second."}, w.tellConflict())
	}
	return slices.Concat(w.tellHalt(false), []string{"Changes of others come " + syncpolicy.When(w.syncer.sync.Pull.On) + "."}, w.tellConflict())
}

// tellConflict describes how a file ends that was changed locally and by others.
func (w *workingCopy) tellConflict() []string {
	if w.readOnly {
		return nil
	}
	r := w.syncer.r
	return readme.Conflict(conflictPolicy(r.Storage.Sync.Conflict, r.Location.Service))
}

func (p *part) tellHistory() []string {
	w, ok := p.volume.(*workingCopy)
	if !ok {
		return nil
	}
	lines := []string{"history/PATH/ has versions of a file from before it was changed or removed here,",
		"named by their time: ls .wsmount/history/PATH; cp brings one back. Of a file that",
		"changes all the time it is one in 2 seconds; the oldest go when there are many."}
	if w.syncer.r.Location.Service == host.ServiceGit {
		lines = append(lines, "history/COMMIT/PATH is a file as it was in a commit; ls .wsmount/history lists the last.")
	}
	return lines
}
