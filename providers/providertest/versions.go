package providertest

import (
	"fmt"

	"github.com/wsmount/wsmount/providers"
)

var versionChecks = []Check{
	{Name: "version/other-content-has-another", Run: versionOther},
	{Name: "version/never-comes-back", Needs: providers.Capabilities{UniqueVersions: true}, Run: versionUnique},
	{Name: "version/all-verbs-agree", Run: versionAgrees},
	{Name: "version/reading-changes-nothing", Run: versionStays},
	{Name: "version/operation-id", Needs: providers.Capabilities{OperationIDs: true}, Run: operationID},
}

func versionOther(t T, p providers.Provider) {
	before := put(t, p, loc("a"), "0")
	for i := range 20 { // the same size, in one moment
		now := put(t, p, loc("a"), fmt.Sprint((i+1)%10))
		if now.Version.Matches(before.Version) {
			t.Fatalf("write %d left the version %+v", i, now.Version)
		}
		before = now
	}
}

func versionUnique(t T, p providers.Provider) {
	var seen []providers.Version
	for i := range 20 { // the same size, in one moment, often the same bytes
		info := put(t, p, loc("a"), fmt.Sprint(i%2))
		for _, old := range seen {
			if old.Matches(info.Version) {
				t.Fatalf("write %d has the version of an earlier one, %+v", i, old)
			}
		}
		seen = append(seen, info.Version)
	}
	if seen[0].ETag == "" || seen[0].Size != 1 {
		t.Errorf("version %+v", seen[0])
	}
	// A name that was deleted and made again has another version.
	wantOK(t, "delete", p.Delete(t.Context(), loc("a"), providers.DeleteOptions{If: providers.Unconditional()}))
	if again := put(t, p, loc("a"), "1"); seen[len(seen)-1].Matches(again.Version) {
		t.Errorf("a deleted version came back: %+v", again.Version)
	}
}

func versionAgrees(t T, p providers.Provider) {
	written := put(t, p, loc("a"), "x")
	stat, err := p.Stat(t.Context(), loc("a"))
	wantOK(t, "stat", err)
	read := wantContent(t, p, loc("a"), "x")
	listed := list(t, p, loc(""), providers.ListOptions{})
	if len(listed) != 1 {
		t.Fatalf("list: %d entries", len(listed))
	}
	for verb, info := range map[string]providers.Info{"stat": stat, "read": read, "list": listed[0]} {
		if !info.Version.Matches(written.Version) {
			t.Errorf("%s says version %+v, write said %+v", verb, info.Version, written.Version)
		}
	}
}

func versionStays(t T, p providers.Provider) {
	written := put(t, p, loc("dir/a"), "x")
	put(t, p, loc("dir/other"), "y")
	wantContent(t, p, loc("dir/a"), "x")
	list(t, p, loc("dir"), providers.ListOptions{})
	stat, err := p.Stat(t.Context(), loc("dir/a"))
	wantOK(t, "stat", err)
	if stat.Version != written.Version && !stat.Version.Matches(written.Version) {
		t.Errorf("version went from %+v to %+v by itself", written.Version, stat.Version)
	}
}

// operationID: a repetition after a lost answer is no conflict with its first attempt, and does
// not hide one with others.
func operationID(t T, p providers.Provider) {
	write := func(content, op string, cond providers.Condition) (providers.Info, error) {
		return p.Write(t.Context(), loc("a"), providers.String(content), providers.WriteOptions{If: cond, Op: op})
	}
	first, err := write("one", "op-1", providers.IfAbsent())
	wantOK(t, "write", err)
	again, err := write("one", "op-1", providers.IfAbsent())
	wantOK(t, "repeated creation", err)
	if !again.Version.Matches(first.Version) {
		t.Errorf("the repetition made version %+v from %+v", again.Version, first.Version)
	}
	_, err = write("two", "op-2", providers.IfAbsent())
	wantErr(t, "creation by another operation", err, providers.ErrExist)
	_, err = write("two", "", providers.IfAbsent())
	wantErr(t, "creation without operation", err, providers.ErrExist)
	second, err := write("two", "op-2", providers.IfVersion(first.Version))
	wantOK(t, "replacement", err)
	again, err = write("two", "op-2", providers.IfVersion(first.Version))
	wantOK(t, "repeated replacement", err)
	if !again.Version.Matches(second.Version) {
		t.Errorf("the repetition made version %+v from %+v", again.Version, second.Version)
	}
	_, err = write("one", "op-1", providers.IfAbsent())
	wantErr(t, "repetition when others wrote since", err, providers.ErrExist)
	wantContent(t, p, loc("a"), "two")
}
