package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"strings"
)

// mountStatus is what is needed of `wsmount status --json`.
type mountStatus struct {
	OpenFiles []struct {
		Path   string `json:"path"`
		IOMode string `json:"ioMode"`
	} `json:"openFiles"`
	Passthrough struct {
		On     bool   `json:"on"`
		Reason string `json:"reason"`
	} `json:"passthrough"`
	Parts []struct {
		Unsaved struct {
			Files int `json:"files"`
			Names int `json:"names"`
		} `json:"unsaved"`
		Copy struct {
			Requests requests `json:"requests"`
		} `json:"workingCopy"`
	} `json:"parts"`
}

func (t *tree) status(ctx context.Context) (mountStatus, error) {
	var st mountStatus
	out, err := t.s.command(ctx, t.s.b.programs[wsmount], "status", "--json", t.dir).Output()
	if err != nil {
		return st, fmt.Errorf("status of %s: %w", t.dir, err)
	}
	return st, json.Unmarshal(out, &st)
}

// ioMode opens the workload's file as a program would and asks the daemon how
// the kernel serves it.
func (t *tree) ioMode(ctx context.Context, w workload) (string, error) {
	c := t.s.command(ctx, t.s.b.programs[""], workerCommand, phaseHold, w.name, t.dir)
	release, err := c.StdinPipe()
	if err != nil {
		return "", err
	}
	opened, err := c.StdoutPipe()
	if err != nil {
		return "", err
	}
	if err := c.Start(); err != nil {
		return "", err
	}
	defer func() { release.Close(); _ = c.Wait() }()
	if _, err := bufio.NewReader(opened).ReadString('\n'); err != nil {
		return "", fmt.Errorf("%s: the file could not be opened: %w", w.name, err)
	}
	st, err := t.status(ctx)
	if err != nil {
		return "", err
	}
	for _, f := range st.OpenFiles {
		if strings.HasSuffix(f.Path, w.where()+"/"+w.probe) {
			return f.IOMode, nil
		}
	}
	return "", fmt.Errorf("%s: status does not list the open file", w.name)
}

// wantedMode is the io mode that must be seen, or empty.
func (s *session) wantedMode() string {
	switch s.b.o.io {
	case "any":
		return ""
	case "auto":
		if s.root {
			return "passthrough"
		}
		return "cached"
	}
	return s.b.o.io
}
