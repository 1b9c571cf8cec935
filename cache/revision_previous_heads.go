package cache

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"slices"

	"github.com/wsmount/wsmount/cache/internal/files"
	"github.com/wsmount/wsmount/providers"
)

// keyPreviousHeads are the revisions that the head was before, the last first: what a
// file began from that was changed meanwhile is in one of them.
const keyPreviousHeads = "pull/earlier"

// maxPreviousHeads bounds them: a file that many pulls passed by, while it was changed
// here, is merged no more.
const maxPreviousHeads = 32

// previousHeads are the revisions that the head was before.
func (v *View) previousHeads() (all []providers.Revision) {
	if note := v.table.Get(keyPreviousHeads); note != nil {
		_ = json.Unmarshal(note, &all) // damaged, it is as if they were forgotten
	}
	return all
}

// passedBy notes a revision that is not the head any more.
func (v *Volume) passedBy(r providers.Revision) error {
	if r == "" {
		return nil
	}
	return v.update(func(v *Tx) error {
		all := slices.DeleteFunc(v.previousHeads(), func(old providers.Revision) bool { return old == r })
		note, err := json.Marshal(slices.Insert(all, 0, r)[:min(len(all)+1, maxPreviousHeads)])
		if err == nil {
			v.table.Set(keyPreviousHeads, note)
		}
		return err
	})
}

// readPreviousHead reads a version that the backend had at a place in an earlier
// revision. iofs.ErrNotExist when none of them that are known had it.
func (v *Volume) readPreviousHead(ctx context.Context, at providers.Locator, version providers.Version) (io.ReadCloser, error) {
	locked := v.lock()
	all := locked.previousHeads()
	locked.unlock()
	s, ok := providers.As[providers.Snapshotter](v.p)
	if !ok {
		all = nil
	}
	for _, r := range all {
		past, err := s.At(ctx, r)
		if err != nil {
			continue // it has been thrown away
		}
		c, err := past.Read(ctx, at, providers.ReadOptions{Version: version})
		if err == nil {
			return &pastBody{c.Body, past}, nil
		}
		past.Close()
		if !notThere(err) && !files.IsElsewhere(err) {
			return nil, translate(err)
		}
	}
	return nil, fmt.Errorf("no revision that is known has that version: %w", iofs.ErrNotExist)
}

// pastBody is content of a revision, which is closed with it.
type pastBody struct {
	io.ReadCloser
	past providers.Provider
}

func (b *pastBody) Close() error { return errors.Join(b.ReadCloser.Close(), b.past.Close()) }
