package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// requests are what a mount has asked of its service, by the service's name.
type requests map[string]struct {
	Count    int64 `json:"count"`
	Sent     int64 `json:"sent"`
	Received int64 `json:"received"`
}

// asked is what wsmount has asked so far; others do not say.
func (t *bucketTree) asked(ctx context.Context) (requests, error) {
	if t.kind != wsmount {
		return nil, nil
	}
	st, err := t.status(ctx)
	if err != nil || len(st.Parts) == 0 {
		return nil, err
	}
	return st.Parts[0].Copy.Requests, nil
}

// since is what was asked after before.
func (r requests) since(before requests) requests {
	out := requests{}
	for name, c := range r {
		b := before[name]
		c.Count, c.Sent, c.Received = c.Count-b.Count, c.Sent-b.Sent, c.Received-b.Received
		if c.Count > 0 {
			out[name] = c
		}
	}
	return out
}

func (r requests) String() string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(r)) {
		parts = append(parts, fmt.Sprintf("%d %s", r[name].Count, name))
	}
	return strings.Join(parts, ", ")
}

func (r requests) total() (count int64, sent, received float64) {
	for _, c := range r {
		count += c.Count
		sent += float64(c.Sent) / mib
		received += float64(c.Received) / mib
	}
	return count, sent, received
}
