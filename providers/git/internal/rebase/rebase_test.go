package rebase_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/git/internal/odb"
	"github.com/wsmount/wsmount/providers/git/internal/rebase"
)

// Only the three contents of a file that both sides changed are fetched, and if they cannot be,
// that is the error.
func TestFetches(t *testing.T) {
	c := &mergeCases{t: t, dir: t.TempDir()}
	file := func(text string) genFile { return genFile{"100644", text} }
	first := c.commit(0, genTree{"both": file("1\n2\n"), "ours": file("a\n"), "theirs": file("b\n")})
	c.commit(first, genTree{"both": file("0\n2\n"), "ours": file("a\nx\n"), "theirs": file("b\n")})
	c.commit(first, genTree{"both": file("1\n3\n"), "ours": file("a\n"), "theirs": file("b\ny\n")})
	in, ids := c.load()
	var fetched []odb.ID
	var failure error
	in.Fetch = func(_ context.Context, blobs ...odb.ID) error {
		fetched = append(fetched, blobs...)
		return failure
	}
	tip := assert.Of(rebase.Rebase(t.Context(), in, ids[1], ids[2], ids[3], combineLines)).OK(t)
	var want []odb.ID
	for _, commit := range []int{1, 3, 2} { // base, ours and theirs of the merge
		out := assert.Of(c.git(nil, "rev-parse", fmt.Sprintf("c%d:both", commit))).OK(t)
		want = append(want, plumbing.NewHash(strings.TrimSpace(out)))
	}
	assert.Slice(t, fetched, want)
	assert.Equal(t, assert.Of(in.Commit(tip)).OK(t).Parents[0], ids[3])

	failure = errors.New("no such content")
	tip, err := rebase.Rebase(t.Context(), in, ids[1], ids[2], ids[3], combineLines)
	assert.Is(t, err, failure)
	assert.True(t, tip.IsZero(), tip)
}

// A line that begins with what the other side has is empty, and one with a merge commit cannot be
// made anew.
func TestLines(t *testing.T) {
	c := &mergeCases{t: t, dir: t.TempDir()}
	file := func(text string) genTree { return genTree{"a": genFile{"100644", text}} }
	first := c.commit(0, file("1\n"))
	second := c.commit(first, file("2\n"))
	third := c.commit(second, file("3\n"))
	other := c.commit(first, genTree{"b": genFile{"100644", "b\n"}, "a": genFile{"100644", "1\n"}})
	c.number++
	merge := c.number
	fmt.Fprintf(&c.stream, "commit refs/heads/c%d\nmark :%d\ncommitter A <a@b.test> 1700000000 +0000\ndata 1\nc\nfrom :%d\nmerge :%d\n\n", merge, merge, third, other)
	in, ids := c.load()
	tip := assert.Of(rebase.Rebase(t.Context(), in, ids[first], ids[second], ids[third], combineLines)).OK(t)
	assert.Equal(t, tip, ids[third], "all of the line is in the other one")

	tip = assert.Of(rebase.Rebase(t.Context(), in, ids[first], ids[third], ids[other], combineLines)).OK(t)
	made := assert.Of(in.Commit(tip)).OK(t)
	before := assert.Of(in.Commit(made.Parents[0])).OK(t)
	assert.True(t, slices.Equal(before.Parents, []odb.ID{ids[other]}), "two commits are not two", before.Parents)
	again := assert.Of(rebase.Rebase(t.Context(), in, ids[first], ids[third], ids[other], combineLines)).OK(t)
	assert.Equal(t, again, tip, "made twice")

	_, err := rebase.Rebase(t.Context(), in, ids[first], ids[merge], ids[other], combineLines)
	assert.Is(t, err, providers.ErrUnsupported, "a merge")
}
