package providertest

import "github.com/wsmount/wsmount/providers"

func needs(c providers.Conditions) providers.Capabilities {
	return providers.Capabilities{Conditions: c}
}

var conditionChecks = []Check{
	{Name: "condition/required", Run: conditionRequired},
	{Name: "condition/create", Needs: needs(providers.Conditions{Create: providers.GuardChecked}), Run: conditionCreate},
	{Name: "condition/replace", Needs: needs(providers.Conditions{Replace: providers.GuardChecked}), Run: conditionReplace},
	{Name: "condition/delete", Needs: needs(providers.Conditions{Delete: providers.GuardChecked}), Run: conditionDelete},
	{Name: "condition/delete-absent", Run: conditionDeleteAbsent},
}

func conditionRequired(t T, p providers.Provider) {
	put(t, p, loc("a"), "before")
	for name, cond := range map[string]providers.Condition{
		"no condition": {}, "an empty version": providers.IfVersion(providers.Version{}), "an unknown condition": {Kind: 99},
	} {
		_, err := p.Write(t.Context(), loc("a"), providers.String("after"), providers.WriteOptions{If: cond})
		wantErr(t, "write with "+name, err, providers.ErrInvalid)
		err = p.Delete(t.Context(), loc("a"), providers.DeleteOptions{If: cond})
		wantErr(t, "delete with "+name, err, providers.ErrInvalid)
	}
	_, err := p.Write(t.Context(), loc("a"), providers.String("after"), providers.WriteOptions{If: providers.IfDir()})
	wantErr(t, "write with IfDir", err, providers.ErrInvalid)
	err = p.Delete(t.Context(), loc("a"), providers.DeleteOptions{If: providers.IfAbsent()})
	wantErr(t, "delete with IfAbsent", err, providers.ErrInvalid)
	wantContent(t, p, loc("a"), "before")
}

func conditionCreate(t T, p providers.Provider) {
	absent := providers.WriteOptions{If: providers.IfAbsent()}
	_, err := p.Write(t.Context(), loc("a"), providers.String("first"), absent)
	wantOK(t, "creation", err)
	_, err = p.Write(t.Context(), loc("a"), providers.String("second"), absent)
	wantErr(t, "second creation", err, providers.ErrExist)
	wantContent(t, p, loc("a"), "first")
}

func conditionReplace(t T, p providers.Provider) {
	first := put(t, p, loc("a"), "first")
	replace := func(content string, v providers.Version) (providers.Info, error) {
		return p.Write(t.Context(), loc("a"), providers.String(content), providers.WriteOptions{If: providers.IfVersion(v)})
	}
	second, err := replace("other", first.Version) // of the same size
	wantOK(t, "replacement", err)
	_, err = replace("third", first.Version)
	wantErr(t, "replacement of an old version", err, providers.ErrConflict)
	_, err = replace("third", nobodys)
	wantErr(t, "replacement of what no entry was", err, providers.ErrConflict)
	wantContent(t, p, loc("a"), "other")
	wantOK(t, "delete", p.Delete(t.Context(), loc("a"), providers.DeleteOptions{If: providers.IfVersion(second.Version)}))
	_, err = replace("third", second.Version)
	wantErr(t, "replacement of nothing", err, providers.ErrConflict)
	wantGone(t, p, loc("a"))
}

// nobodys is a version that no entry has: a Write on its condition asks a provider for the
// outcome of an operation.
var nobodys = providers.Version{ETag: "wsmount: none", Size: -1}

func conditionDelete(t T, p providers.Provider) {
	first := put(t, p, loc("a"), "first")
	second := put(t, p, loc("a"), "other")
	err := p.Delete(t.Context(), loc("a"), providers.DeleteOptions{If: providers.IfVersion(nobodys)})
	wantErr(t, "delete of what no entry was", err, providers.ErrConflict)
	err = p.Delete(t.Context(), loc("a"), providers.DeleteOptions{If: providers.IfVersion(first.Version)})
	wantErr(t, "delete of an old version", err, providers.ErrConflict)
	wantContent(t, p, loc("a"), "other")
	wantOK(t, "delete", p.Delete(t.Context(), loc("a"), providers.DeleteOptions{If: providers.IfVersion(second.Version)}))
	wantGone(t, p, loc("a"))
}

func conditionDeleteAbsent(t T, p providers.Provider) {
	info := put(t, p, loc("file"), "x")
	for _, name := range []string{"nothing", "no/parent", "file/below"} {
		l := loc(name)
		wantOK(t, "unconditional delete of "+name, p.Delete(t.Context(), l, providers.DeleteOptions{If: providers.Unconditional()}))
		err := p.Delete(t.Context(), l, providers.DeleteOptions{If: providers.IfVersion(info.Version)})
		wantErr(t, "delete of a version of "+name, err, providers.ErrNotExist)
		err = p.Delete(t.Context(), l, providers.DeleteOptions{If: providers.IfDir()})
		wantErr(t, "delete of the directory "+name, err, providers.ErrNotExist)
	}
	wantContent(t, p, loc("file"), "x")
}
