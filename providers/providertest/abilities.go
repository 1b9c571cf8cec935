package providertest

import (
	"context"
	"iter"

	"github.com/wsmount/wsmount/providers"
)

var abilityChecks = []Check{
	{Name: "ability/announced-is-there", Run: abilityThere},
	{Name: "ability/capabilities-are-constant", Run: abilityConstant},
	{Name: "copy/operation-id", Needs: repeatable(providers.AbilityCopy), Run: copyOperation},
	{Name: "copy/content", Needs: able(providers.AbilityCopy), Run: copyContent},
	{Name: "copy/conditions", Needs: able(providers.AbilityCopy), Run: copyConditions},
	{Name: "move/operation-id", Needs: repeatable(providers.AbilityMove), Run: moveOperation},
	{Name: "move/file", Needs: able(providers.AbilityMove), Run: moveFile},
	{Name: "move/directory", Needs: able(providers.AbilityMove), Run: moveDirectory},
	{Name: "move/conditions", Needs: able(providers.AbilityMove), Run: moveConditions},
}

// plainChecks are for providers that are not wrappers, whose types have all abilities.
var plainChecks = []Check{
	{Name: "ability/not-announced-is-refused", Run: abilityRefused},
}

// repeatable is able with operation ids.
func repeatable(a providers.Ability) providers.Capabilities {
	return providers.Capabilities{OperationIDs: true, Abilities: a}
}

// abilityRefused: methods of a type whose ability is not announced do not work either.
func abilityRefused(t T, p providers.Provider) {
	put(t, p, loc("a"), "content")
	for ability, call := range abilityCalls(p) {
		if !p.Capabilities().Abilities.Has(ability) {
			wantErr(t, ability.String()+", which is not announced", call(t.Context()), providers.ErrUnsupported)
		}
	}
	wantNames(t, list(t, p, loc(""), providers.ListOptions{}), "a")
}

// abilityCalls are a call of each ability that p's type has.
func abilityCalls(p providers.Provider) map[providers.Ability]func(context.Context) error {
	drop := func(_ any, err error) error { return err }
	yes := providers.Unconditional()
	calls := map[providers.Ability]func(context.Context) error{}
	if c, ok := p.(providers.Copier); ok {
		calls[providers.AbilityCopy] = func(ctx context.Context) error {
			return drop(c.Copy(ctx, loc("a"), loc("b"), providers.CopyOptions{If: yes}))
		}
	}
	if c, ok := p.(providers.Mover); ok {
		calls[providers.AbilityMove] = func(ctx context.Context) error {
			return drop(c.Move(ctx, loc("a"), loc("b"), providers.MoveOptions{Source: yes, Target: yes}))
		}
	}
	if c, ok := p.(providers.AttrSetter); ok {
		calls[providers.AbilityAttr] = func(ctx context.Context) error {
			return drop(c.SetAttr(ctx, loc("a"), providers.SetAttrOptions{If: yes}))
		}
	}
	if c, ok := p.(providers.Multiparter); ok {
		calls[providers.AbilityParts] = func(ctx context.Context) error { return drop(c.StartParts(ctx, loc("b"), unconditional)) }
	}
	if c, ok := p.(providers.Watcher); ok {
		calls[providers.AbilityWatch] = func(ctx context.Context) error { return firstOf(c.Watch(ctx, loc(""))) }
	}
	if c, ok := p.(providers.Committer); ok {
		calls[providers.AbilityCommit] = func(ctx context.Context) error {
			return drop(c.Commit(ctx, providers.ChangeSet{Changes: []providers.Change{change("b", "x", yes)}}))
		}
	}
	if c, ok := p.(providers.Snapshotter); ok {
		calls[providers.AbilitySnapshot] = func(ctx context.Context) error { return drop(c.At(ctx, "r")) }
	}
	if c, ok := p.(providers.Pusher); ok {
		calls[providers.AbilityPush] = func(ctx context.Context) error { return drop(c.Push(ctx, providers.PushOptions{})) }
	}
	if c, ok := p.(providers.Syncer); ok {
		calls[providers.AbilitySync] = func(ctx context.Context) error { return drop(c.Fetch(ctx)) }
	}
	if c, ok := p.(providers.Rebaser); ok {
		calls[providers.AbilityRebase] = func(ctx context.Context) error { return drop(c.Rebase(ctx, "r", "s", "t", nil)) }
	}
	if c, ok := p.(providers.Differ); ok {
		calls[providers.AbilityDiffer] = func(ctx context.Context) error { return drop(c.Differences(ctx, "r", "s")) }
	}
	if c, ok := p.(providers.Brancher); ok {
		calls[providers.AbilityBranch] = func(ctx context.Context) error { return drop(c.Branches(ctx)) }
	}
	return calls
}

// implemented are the abilities that p's type has, announced or not.
func implemented(p providers.Provider) providers.Ability {
	var all providers.Ability
	for ability := range abilityCalls(p) {
		all |= ability
	}
	if _, ok := p.(providers.Inspector); ok {
		all |= providers.AbilityInspect
	}
	if _, ok := p.(providers.Submoduler); ok {
		all |= providers.AbilitySubmodule
	}
	return all
}

// firstOf is the first error or event of a Watch.
func firstOf(events iter.Seq2[providers.Event, error]) error {
	for _, err := range events {
		return err
	}
	return nil
}

func abilityThere(t T, p providers.Provider) {
	if lacking := p.Capabilities().Abilities &^ implemented(p); lacking != 0 {
		t.Errorf("%s: announced and not there", lacking)
	}
}

func abilityConstant(t T, p providers.Provider) {
	before := p.Capabilities()
	put(t, p, loc("a"), "x")
	if after := p.Capabilities(); after != before {
		t.Errorf("capabilities changed from %+v to %+v", before, after)
	}
}

func copyContent(t T, p providers.Provider) {
	c := must[providers.Copier](t, p)
	source := put(t, p, loc("a"), "content")
	made, err := c.Copy(t.Context(), loc("a"), loc("dir/b"), providers.CopyOptions{If: providers.IfAbsent(), Version: source.Version})
	wantOK(t, "copy", err)
	info := wantContent(t, p, loc("dir/b"), "content")
	if !info.Version.Matches(made.Version) || made.Locator != loc("dir/b") {
		t.Errorf("copy says %+v, read %+v", made, info)
	}
	put(t, p, loc("a"), "changed")
	wantContent(t, p, loc("dir/b"), "content")
}

func copyConditions(t T, p providers.Provider) {
	c := must[providers.Copier](t, p)
	old := put(t, p, loc("a"), "old")
	put(t, p, loc("a"), "new")
	target := put(t, p, loc("b"), "target")
	put(t, p, loc("dir/file"), "x")
	put(t, p, loc("other/file"), "x")
	for _, x := range []struct {
		what     string
		from, to string
		opts     providers.CopyOptions
		want     error
	}{
		{"without condition", "a", "b", providers.CopyOptions{}, providers.ErrInvalid},
		{"of nothing", "no", "c", providers.CopyOptions{If: providers.IfAbsent()}, providers.ErrNotExist},
		{"of an old version", "a", "c", providers.CopyOptions{If: providers.IfAbsent(), Version: old.Version}, providers.ErrConflict},
		{"over something", "a", "b", providers.CopyOptions{If: providers.IfAbsent()}, providers.ErrExist},
		{"over another version", "a", "b", providers.CopyOptions{If: providers.IfVersion(old.Version)}, providers.ErrConflict},
		{"of a directory", "dir", "c", providers.CopyOptions{If: providers.IfAbsent()}, providers.ErrIsDir},
		{"over a directory", "a", "dir", providers.CopyOptions{If: providers.Unconditional()}, providers.ErrIsDir},
		{"to the name of a directory", "a", "other", providers.CopyOptions{If: providers.IfAbsent()}, providers.ErrExist},
		{"below a file", "a", "b/x", providers.CopyOptions{If: providers.IfAbsent()}, providers.ErrNotDir},
	} {
		_, err := c.Copy(t.Context(), loc(x.from), loc(x.to), x.opts)
		if err == nil && !p.Capabilities().StrictTree && (x.to == "dir" || x.to == "other" || x.to == "b/x") {
			continue // the file is beside the directory; a check of Write tests that
		}
		wantErr(t, "copy "+x.what, err, x.want)
	}
	wantContent(t, p, loc("b"), "target")
	_, err := c.Copy(t.Context(), loc("a"), loc("b"), providers.CopyOptions{If: providers.IfVersion(target.Version)})
	wantOK(t, "copy over the version asked for", err)
	wantContent(t, p, loc("b"), "new")
}

// copyOperation: a copy that is repeated after a lost answer succeeds, also when its source has
// changed since; and it hides no conflict with others.
func copyOperation(t T, p providers.Provider) {
	c := must[providers.Copier](t, p)
	source := put(t, p, loc("a"), "content")
	opts := providers.CopyOptions{If: providers.IfAbsent(), Version: source.Version, Op: "op-1"}
	first, err := c.Copy(t.Context(), loc("a"), loc("b"), opts)
	wantOK(t, "copy", err)
	put(t, p, loc("a"), "changed")
	again, err := c.Copy(t.Context(), loc("a"), loc("b"), opts)
	wantOK(t, "repeated copy", err)
	if !again.Version.Matches(first.Version) {
		t.Errorf("the repetition made version %+v from %+v", again.Version, first.Version)
	}
	put(t, p, loc("b"), "another's")
	_, err = c.Copy(t.Context(), loc("a"), loc("b"), opts)
	wantErr(t, "repetition when others wrote since", err, providers.ErrExist, providers.ErrConflict)
	wantContent(t, p, loc("b"), "another's")
}

// moveOperation is copyOperation for a move, whose source is gone or changed.
func moveOperation(t T, p providers.Provider) {
	m := must[providers.Mover](t, p)
	source := put(t, p, loc("a"), "content")
	opts := providers.MoveOptions{Source: providers.IfVersion(source.Version), Target: providers.IfAbsent(), Op: "op-1"}
	first, err := m.Move(t.Context(), loc("a"), loc("b"), opts)
	wantOK(t, "move", err)
	for _, at := range []string{"nothing", "something"} {
		again, err := m.Move(t.Context(), loc("a"), loc("b"), opts)
		wantOK(t, "repeated move with "+at+" at the old name", err)
		if !again.Version.Matches(first.Version) || again.Locator != loc("b") {
			t.Errorf("the repetition says %+v, the move %+v", again, first)
		}
		put(t, p, loc("a"), "another's")
	}
	put(t, p, loc("dir/file"), "x")
	opts = providers.MoveOptions{Source: providers.IfDir(), Target: providers.IfAbsent(), Op: "op-2"}
	for range 2 {
		_, err = m.Move(t.Context(), loc("dir"), loc("moved"), opts)
		wantOK(t, "move of a directory", err)
	}
	_, err = m.Move(t.Context(), loc("a"), loc("moved"), providers.MoveOptions{
		Source: providers.Unconditional(), Target: providers.IfAbsent(), Op: "op-3"})
	wantErr(t, "move by another operation", err, providers.ErrExist)
	wantContent(t, p, loc("a"), "another's")
	wantContent(t, p, loc("moved/file"), "x")
}

func moveFile(t T, p providers.Provider) {
	m := must[providers.Mover](t, p)
	source := put(t, p, loc("a"), "content")
	put(t, p, loc("dir/file"), "x")
	opts := providers.MoveOptions{Source: providers.IfVersion(source.Version), Target: providers.IfAbsent()}
	moved, err := m.Move(t.Context(), loc("a"), loc("dir/b"), opts)
	wantOK(t, "move", err)
	wantGone(t, p, loc("a"))
	info := wantContent(t, p, loc("dir/b"), "content")
	if !info.Version.Matches(moved.Version) || moved.Locator != loc("dir/b") {
		t.Errorf("move says %+v, read %+v", moved, info)
	}
	target := put(t, p, loc("c"), "overwritten")
	opts = providers.MoveOptions{Source: providers.IfVersion(moved.Version), Target: providers.IfVersion(target.Version)}
	_, err = m.Move(t.Context(), loc("dir/b"), loc("c"), opts)
	wantOK(t, "move over a version", err)
	wantContent(t, p, loc("c"), "content")
	wantNames(t, list(t, p, loc("dir"), providers.ListOptions{}), "dir/file")
}

func moveDirectory(t T, p providers.Provider) {
	m := must[providers.Mover](t, p)
	file := put(t, p, loc("a/x/file"), "content")
	put(t, p, loc("ab/other"), "neighbour")
	opts := providers.MoveOptions{Source: providers.IfDir(), Target: providers.IfAbsent()}
	_, err := m.Move(t.Context(), loc("a"), loc("ab/moved"), opts)
	wantOK(t, "move", err)
	wantGone(t, p, loc("a"))
	if now := wantContent(t, p, loc("ab/moved/x/file"), "content"); !now.Version.Matches(file.Version) {
		t.Errorf("the move of a directory above made version %+v from %+v", now.Version, file.Version)
	}
	wantContent(t, p, loc("ab/other"), "neighbour")
	_, err = m.Move(t.Context(), loc("ab"), loc("ab/moved/below"), opts)
	wantErr(t, "move of a directory below itself", err, providers.ErrInvalid)
	put(t, p, loc("c/file"), "x")
	_, err = m.Move(t.Context(), loc("ab"), loc("c"), opts)
	wantErr(t, "move of a directory over another", err, providers.ErrExist)
	wantContent(t, p, loc("c/file"), "x")
	opts.Target = providers.Unconditional()
	_, err = m.Move(t.Context(), loc("ab"), loc("c/file"), opts)
	wantErr(t, "move of a directory over a file", err, providers.ErrExist)
	wantContent(t, p, loc("c/file"), "x")
}

func moveConditions(t T, p providers.Provider) {
	m := must[providers.Mover](t, p)
	old := put(t, p, loc("a"), "old")
	now := put(t, p, loc("a"), "now")
	put(t, p, loc("b"), "target")
	put(t, p, loc("dir/file"), "x")
	yes, absent, version := providers.Unconditional(), providers.IfAbsent(), providers.IfVersion
	for _, x := range []struct {
		what           string
		from, to       string
		source, target providers.Condition
		want           error
	}{
		{"without conditions", "a", "c", providers.Condition{}, providers.Condition{}, providers.ErrInvalid},
		{"without target's", "a", "c", yes, providers.Condition{}, providers.ErrInvalid},
		{"of nothing", "no", "c", yes, absent, providers.ErrNotExist},
		{"of an old version", "a", "c", version(old.Version), absent, providers.ErrConflict},
		{"of a directory by Unconditional", "dir", "c", yes, absent, providers.ErrIsDir},
		{"of a file by IfDir", "a", "c", providers.IfDir(), absent, providers.ErrNotDir},
		{"over something", "a", "b", yes, absent, providers.ErrExist},
		{"over another version", "a", "b", yes, version(now.Version), providers.ErrConflict},
		{"over a directory", "a", "dir", yes, yes, providers.ErrIsDir},
		{"into nothing", "a", "no/c", yes, absent, providers.ErrNotExist},
		{"of the root", "", "c", providers.IfDir(), absent, providers.ErrInvalid},
	} {
		_, err := m.Move(t.Context(), loc(x.from), loc(x.to), providers.MoveOptions{Source: x.source, Target: x.target})
		wantErr(t, "move "+x.what, err, x.want)
	}
	wantContent(t, p, loc("a"), "now")
	wantContent(t, p, loc("b"), "target")
	wantNames(t, list(t, p, loc(""), providers.ListOptions{}), "a", "b", "dir")
}
