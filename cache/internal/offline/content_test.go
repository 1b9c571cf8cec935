package offline

import (
	"errors"
	iofs "io/fs"
	"strings"
	"testing"
	"time"

	"github.com/wsmount/wsmount/cache/internal/revision"
	"github.com/wsmount/wsmount/cache/internal/state"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
	"github.com/wsmount/wsmount/cache/pins"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
)

// block is what a file takes of the disk in these tests.
const block = 60 << 10

// blocks makes files of a block each that the remote has.
func (r *run) blocks(paths ...string) {
	r.Helper()
	for _, path := range paths {
		r.puts(path, strings.Repeat("x", block))
		r.sent(path)
	}
}

// states says of which of these files there is content.
func (r *run) states(paths ...string) (has string) {
	r.Helper()
	for _, path := range paths {
		content, err := r.Content.Open(r.ino(path))
		if err == nil {
			content.Release()
		}
		v := r.tree.Lock()
		n := v.Inode(v.Record(link(v, path)).Ino)
		r.tree.Unlock()
		switch {
		case err == nil && n.State == table.Whole:
			has += path + " "
		case n.State == table.Whole:
			has += path + "(gone) "
		}
	}
	return strings.TrimSpace(has)
}

// The clean content of a working copy can be given up, but for what is pinned. After a clean
// end the table says so; after a kill it is left as it is, for the run that deals with that.
func TestContentOf(t *testing.T) {
	t.Parallel()
	for how, after := range map[string]string{"clean": "mine pinned", "killed": "clean(gone) mine pinned", "room": "clean(gone) mine pinned"} {
		r := begin(t, t.TempDir(), "")
		r.blocks("clean", "mine", "pinned")
		r.writes("mine", strings.Repeat("y", block), true)
		assert.OK(t, assert.Of(pins.Load(r.Path)).OK(t).Add("pinned"))
		_, _, err := ContentOf(r.Path, true, nil)
		assert.Is(t, err, state.ErrInUse, "of what is mounted")
		dir := r.Path
		if how == "killed" {
			dir = r.killed()
		} else {
			r.ends()
		}
		was, freed, err := ContentOf(dir, false, nil)
		assert.True(t, err == nil && freed == 0 && was == (ContentUsage{Clean: 2 * block, Unsaved: block}), how, was, freed, err)
		if how == "room" {
			assert.Of(MakeRoomIn(dir, 2*block, nil)).Equal(t, block)
		} else {
			is, freed, err := ContentOf(dir, true, nil)
			assert.True(t, err == nil && freed == block && is == (ContentUsage{Clean: block, Unsaved: block}), how, is, freed, err)
		}
		r = begin(t, dir, "")
		assert.Equal(t, r.states("clean", "mine", "pinned"), after, how)
		assert.Equal(t, r.Table.Session().Killed(), how == "killed", how, "is known to have been killed")
		r.ends()
	}
	assert.Is(t, assert.ErrOf(MakeRoomIn(t.TempDir(), 1, nil)), iofs.ErrNotExist)
}

// As much is given up as others need of the disk, and no more; of a file of which a part
// was fetched, that part counts.
func TestMakeRoomIn(t *testing.T) {
	r := begin(t, t.TempDir(), "")
	r.blocks("a", "b", "c", "mine")
	r.half("half")
	r.writes("mine", "y", true)
	assert.Is(t, assert.ErrOf(MakeRoomIn(r.Path, 1, nil)), state.ErrInUse)
	r.ends()
	u, _, err := ContentOf(r.Path, false, nil)
	assert.True(t, err == nil && u.Clean == 3*block+part, u, err)
	freed := assert.Of(MakeRoomIn(r.Path, 2*block, nil)).OK(t)
	assert.True(t, freed >= 2*block && freed <= block+part, "freed", freed)
	rest := assert.Of(MakeRoomIn(r.Path, 1<<30, nil)).OK(t)
	assert.Equal(t, freed+rest, u.Clean, "freed of all")
	assert.Of(MakeRoomIn(r.Path, 1, nil)).Equal(t, 0)
	u, _, err = ContentOf(r.Path, false, nil)
	assert.True(t, err == nil && u == (ContentUsage{Unsaved: block}), u, err)
}

// Where commits are lost that are not pushed, all content is unsaved, and nothing is given up.
func TestContentOfLostCommits(t *testing.T) {
	r := begin(t, t.TempDir(), "")
	r.blocks("a")
	noted := revision.Unpushed{Commits: 2, Since: time.Unix(1, 0)}
	r.does(func(tx *tree.Tx) {
		assert.OK(t, revision.SetUnpushed(tx, &noted))
		revision.SetSynced(tx, "head", "")
	})
	r.ends()
	asked := 0
	says := func(err error) Lost {
		return func(of *revision.Unpushed, on providers.Revision, whole bool) error {
			asked++
			assert.True(t, of.Commits == 2 && of.Since.Equal(noted.Since) && on == "head" && whole, "it is asked for", of, on, whole)
			return err
		}
	}
	lost := says(errors.New("no clone has them"))
	assert.Of(MakeRoomIn(r.Path, 1, lost)).Equal(t, 0)
	u, freed, err := ContentOf(r.Path, true, lost)
	assert.True(t, err == nil && freed == 0 && u == (ContentUsage{Unsaved: block, Lost: "no clone has them"}), u, freed, err)
	u, freed, err = ContentOf(r.Path, true, says(nil))
	assert.True(t, err == nil && freed == block && u == ContentUsage{}, u, freed, err)
	assert.Equal(t, asked, 3)
}
