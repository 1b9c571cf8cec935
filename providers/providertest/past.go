package providertest

import (
	"errors"

	"github.com/wsmount/wsmount/providers"
)

func pastAt(t T, c Clones) {
	first := save(t, c.A, "a", "one")
	save(t, c.A, "dir/b", "kept")
	kept, err := c.A.Stat(t.Context(), loc("dir/b"))
	wantOK(t, "stat", err)
	second := headOf(t, c.A)
	save(t, c.A, "a", "two")
	wantTree(t, at(t, c.A, first), "", map[string]string{"a": "one"})
	past := at(t, c.A, second)
	wantTree(t, past, "", map[string]string{"a": "one", "dir/b": "kept"})
	wantMoved(t, past, "dir/b", kept)
	wantTree(t, at(t, c.A, headOf(t, c.A)), "", map[string]string{"a": "two", "dir/b": "kept"})
	wantTree(t, c.A, "", map[string]string{"a": "two", "dir/b": "kept"})
	save(t, c.A, "later", "x")
	wantGone(t, past, loc("later"))
	ended := at(t, c.A, first)
	wantOK(t, "close of the past", ended.Close())
	wantContent(t, c.A, loc("a"), "two")
}

func pastReadOnly(t T, c Clones) {
	r := save(t, c.A, "a", "one")
	past := at(t, c.A, r)
	if past.Capabilities().Writable {
		t.Errorf("the past says that it is writable")
	}
	_, err := past.Write(t.Context(), loc("a"), providers.String("x"), unconditional)
	wantErr(t, "write into the past", err, providers.ErrReadOnly)
	err = past.Delete(t.Context(), loc("a"), providers.DeleteOptions{If: providers.Unconditional()})
	wantErr(t, "delete in the past", err, providers.ErrReadOnly)
	wantContent(t, past, loc("a"), "one")
	wantContent(t, c.A, loc("a"), "one")
}

// pastFind: a revision is found by its name and by the beginning of it, and no other name finds
// one.
func pastFind(t T, c Clones) {
	first := save(t, c.A, "a", "one")
	second := save(t, c.A, "a", "two")
	s := must[providers.Snapshotter](t, c.A)
	names := []string{string(second)}
	if n := providers.MinShort + 8; len(second) > n {
		names = append(names, string(second[:n]))
	}
	for _, name := range names {
		found, err := s.Find(t.Context(), name)
		wantOK(t, "find "+name, err)
		if found.Revision != second || len(found.Parents) != 1 || found.Parents[0] != first {
			t.Errorf("%s is found as %v, want %s after %s", name, found, second, first)
		}
	}
	theirs := save(t, c.B, "b", "x")
	for _, name := range []string{"", "no such", string(theirs), string(second) + "0"} {
		if found, err := s.Find(t.Context(), name); !errors.Is(err, providers.ErrNotExist) && !errors.Is(err, providers.ErrInvalid) {
			t.Errorf("%q is found as %v, %v", name, found, err)
		}
	}
}

// pastUnknown: a revision that another clone has not pushed, or this one has not fetched, is
// unknown to this clone.
func pastUnknown(t T, c Clones) {
	ours := shared(t, c)
	theirs := save(t, c.B, "b", "x")
	s := must[providers.Syncer](t, c.A)
	for _, r := range []providers.Revision{"", "no such", theirs} {
		_, err := must[providers.Snapshotter](t, c.A).At(t.Context(), r)
		wantErr(t, "at "+string(r), err, providers.ErrNotExist)
		wantErr(t, "adopt of "+string(r), s.Adopt(t.Context(), ours, r), providers.ErrNotExist)
		for _, pair := range [][2]providers.Revision{{ours, r}, {r, ours}} {
			_, err = s.Base(t.Context(), pair[0], pair[1])
			wantErr(t, "base with "+string(r), err, providers.ErrNotExist)
		}
		if r == "" {
			continue
		}
		_, err = must[providers.Committer](t, c.A).Commit(t.Context(), providers.ChangeSet{Merge: r})
		wantErr(t, "merge of "+string(r), err, providers.ErrNotExist)
	}
	push(t, c.B, providers.PushOptions{})
	_, err := must[providers.Snapshotter](t, c.A).At(t.Context(), theirs)
	wantErr(t, "at what was not fetched", err, providers.ErrNotExist)
	if headOf(t, c.A) != ours {
		t.Errorf("the head moved from %q to %q", ours, headOf(t, c.A))
	}
}
