package providertest

import (
	"bytes"
	"fmt"
	"maps"
	"time"

	"github.com/wsmount/wsmount/providers"
)

var attrChecks = []Check{
	{Name: "attr/kept", Run: attrKept},
	{Name: "attr/times", Needs: providers.Capabilities{Attributes: providers.AttrModTime}, Run: attrTimes},
	{Name: "attr/directory", Needs: emptyDirs, Run: attrDirectory},
	{Name: "attr/metadata", Needs: providers.Capabilities{Metadata: true}, Run: attrMetadata},
	{Name: "attr/set", Needs: able(providers.AbilityAttr), Run: attrSet},
	{Name: "attr/xattrs", Needs: providers.Capabilities{Attributes: providers.AttrXattrs}, Run: attrXattrs},
	{Name: "attr/set-xattrs", Needs: setXattrs, Run: attrSetXattrs},
	{Name: "attr/set-operation-id", Needs: repeatable(providers.AbilityAttr), Run: attrSetOperation},
	{Name: "attr/set-conditions", Needs: able(providers.AbilityAttr), Run: attrSetConditions},
}

func able(a providers.Ability) providers.Capabilities { return providers.Capabilities{Abilities: a} }

// sampleAttr is the part of an unusual set of attributes that p keeps. Whole seconds: not every
// backend has finer times.
func sampleAttr(p providers.Provider, mode uint32, second int64) providers.Attr {
	return providers.Attr{
		Valid: p.Capabilities().Attributes &^ providers.AttrExec, // which AttrMode includes
		Mode:  mode, UID: 1234, GID: 4321, ModTime: time.Unix(second, 0),
		Xattrs: map[string][]byte{"user.mode": fmt.Appendf(nil, "%o", mode)},
	}
}

// wantAttr compares the attributes that want has.
func wantAttr(t T, what string, got providers.Info, want providers.Attr) {
	t.Helper()
	a := got.Attr
	if !a.Valid.Has(want.Valid) {
		t.Errorf("%s: attributes %s, want at least %s", what, a.Valid, want.Valid)
	}
	if want.Valid.Has(providers.AttrMode) && a.Mode != want.Mode {
		t.Errorf("%s: mode %o, want %o", what, a.Mode, want.Mode)
	}
	if a.Valid.Has(providers.AttrExec) && a.Mode != map[bool]uint32{true: 0o755, false: 0o644}[want.Mode&0o100 != 0] {
		t.Errorf("%s: mode %o of one that was given %o", what, a.Mode, want.Mode)
	}
	if want.Valid.Has(providers.AttrOwner) && (a.UID != want.UID || a.GID != want.GID) {
		t.Errorf("%s: owner %d:%d, want %d:%d", what, a.UID, a.GID, want.UID, want.GID)
	}
	if want.Valid.Has(providers.AttrXattrs) && !maps.EqualFunc(a.Xattrs, want.Xattrs, bytes.Equal) {
		t.Errorf("%s: extended attributes %q, want %q", what, a.Xattrs, want.Xattrs)
	}
	if want.Valid.Has(providers.AttrModTime) && !got.ModTime().Equal(want.ModTime) {
		t.Errorf("%s: mtime %v, want %v", what, got.ModTime(), want.ModTime)
	}
}

func attrKept(t T, p providers.Provider) {
	for _, mode := range []uint32{0o755, 0o600, 0o440} {
		want := sampleAttr(p, mode, 1_000_000_007)
		given := want
		given.Valid |= providers.AttrMode
		written, err := p.Write(t.Context(), loc("a"), providers.String("x"),
			providers.WriteOptions{If: providers.Unconditional(), Attr: given})
		wantOK(t, "write", err)
		wantAttr(t, "write", written, want)
		stat, err := p.Stat(t.Context(), loc("a"))
		wantOK(t, "stat", err)
		wantAttr(t, "stat", stat, want)
		if more := stat.Attr.Valid &^ p.Capabilities().Attributes; more != 0 {
			t.Errorf("attributes %s are told and not announced", more)
		}
	}
}

// attrTimes: a modification time may be one that nanoseconds since 1970 in 64 bits cannot hold.
// Whole seconds, of a year that every file system keeps.
func attrTimes(t T, p providers.Provider) {
	want := providers.Attr{Valid: providers.AttrModTime, ModTime: time.Date(2400, 2, 29, 1, 2, 3, 0, time.UTC)}
	written, err := p.Write(t.Context(), loc("a"), providers.String("x"), providers.WriteOptions{If: providers.Unconditional(), Attr: want})
	wantOK(t, "write", err)
	wantAttr(t, "write", written, want)
	stat, err := p.Stat(t.Context(), loc("a"))
	wantOK(t, "stat", err)
	wantAttr(t, "stat", stat, want)
	if listed := list(t, p, loc(""), providers.ListOptions{})[0]; p.Capabilities().ListComplete || listed.Attr.Valid != 0 {
		wantAttr(t, "list", listed, want)
	}
}

func attrDirectory(t T, p providers.Provider) {
	want := sampleAttr(p, 0o750, 1_000_000_007)
	made, err := p.Mkdir(t.Context(), loc("a/dir"), providers.MkdirOptions{Attr: want})
	wantOK(t, "mkdir", err)
	wantAttr(t, "mkdir", made, want)
	_, err = p.Mkdir(t.Context(), loc("a/dir"), providers.MkdirOptions{Attr: sampleAttr(p, 0o700, 5)})
	wantOK(t, "second mkdir", err)
	stat, err := p.Stat(t.Context(), loc("a/dir"))
	wantOK(t, "stat", err)
	wantAttr(t, "directory after a second mkdir", stat, want)
}

func attrMetadata(t T, p providers.Provider) {
	want := map[string]string{"colour": "gr\u00fcn", "bytes": "\x00\xff=%\n", "empty": ""}
	opts := providers.WriteOptions{If: providers.Unconditional(), Metadata: want}
	_, err := p.Write(t.Context(), loc("a"), providers.String("x"), opts)
	wantOK(t, "write", err)
	if info := wantContent(t, p, loc("a"), "x"); !maps.Equal(info.Metadata, want) {
		t.Errorf("metadata: got %q, want %q", info.Metadata, want)
	}
	if info := put(t, p, loc("a"), "y"); len(info.Metadata) != 0 {
		t.Errorf("metadata of the content before: %q", info.Metadata)
	}
}

// oddXattrs are names and values of every allowed form.
var oddXattrs = map[string][]byte{
	"user.plain": []byte("y"), "user.empty": {}, "user.bytes": {0, 0xfb, 0xef, 0xbe, '\n', 0xff},
	"user.quote\"back\\slash": []byte("1"), "user.a,b:c/d%e+f g": []byte("2"), "user.gr\u00fcn": []byte("3"),
	"system.posix_acl_access": {2, 0, 0, 0, 1, 0, 7, 0, 255, 255, 255, 255},
}

// attrXattrs: extended attributes belong to one version of an entry, and all are returned.
func attrXattrs(t T, p providers.Provider) {
	want := providers.Attr{Valid: providers.AttrXattrs, Xattrs: oddXattrs}
	written, err := p.Write(t.Context(), loc("dir/a"), providers.String("x"), providers.WriteOptions{If: providers.Unconditional(), Attr: want})
	wantOK(t, "write", err)
	wantAttr(t, "write", written, want)
	wantAttr(t, "read", wantContent(t, p, loc("dir/a"), "x"), want)
	listed := list(t, p, loc("dir"), providers.ListOptions{})[0]
	if p.Capabilities().ListComplete {
		wantAttr(t, "list", listed, want)
	} else if told := listed.Attr.Valid; listed.Untold == 0 && told != 0 && !told.Has(providers.AttrXattrs) {
		t.Errorf("a listing leaves extended attributes out without saying so: %+v", listed)
	}
	if info := put(t, p, loc("dir/a"), "y"); len(info.Attr.Xattrs) != 0 {
		t.Errorf("extended attributes of the content before: %q", info.Attr.Xattrs)
	}
}

var setXattrs = providers.Capabilities{Attributes: providers.AttrXattrs | providers.AttrModTime, Abilities: providers.AbilityAttr}

// attrSetXattrs: extended attributes are replaced together, removed with the last one, and stay
// when another attribute is changed.
func attrSetXattrs(t T, p providers.Provider) {
	setter := must[providers.AttrSetter](t, p)
	put(t, p, loc("dir/a"), "content")
	for _, c := range []struct {
		l, what string
		a       providers.Attr
		want    map[string][]byte
	}{
		{"dir/a", "set", providers.Attr{Valid: providers.AttrXattrs, Xattrs: oddXattrs}, oddXattrs},
		{"dir/a", "kept", providers.Attr{Valid: providers.AttrModTime, ModTime: time.Unix(7, 0)}, oddXattrs},
		{"dir/a", "removed", providers.Attr{Valid: providers.AttrXattrs}, nil},
		{"dir", "set", providers.Attr{Valid: providers.AttrXattrs, Xattrs: oddXattrs}, oddXattrs},
		{"dir", "kept", providers.Attr{Valid: providers.AttrModTime, ModTime: time.Unix(7, 0)}, oddXattrs},
		{"dir", "removed", providers.Attr{Valid: providers.AttrXattrs}, nil},
	} {
		wantOK(t, "fits", setter.Fits(c.a, nil))
		_, err := setter.SetAttr(t.Context(), loc(c.l), providers.SetAttrOptions{If: providers.Unconditional(), Attr: c.a})
		wantOK(t, "setattr", err)
		stat, err := p.Stat(t.Context(), loc(c.l))
		wantOK(t, "stat", err)
		wantAttr(t, c.l+": "+c.what, stat, providers.Attr{Valid: c.a.Valid &^ providers.AttrXattrs, ModTime: c.a.ModTime})
		if !maps.EqualFunc(stat.Attr.Xattrs, c.want, bytes.Equal) {
			t.Errorf("%s: %s: extended attributes %q, want %q", c.l, c.what, stat.Attr.Xattrs, c.want)
		}
	}
}

func attrSet(t T, p providers.Provider) {
	setter := must[providers.AttrSetter](t, p)
	before := put(t, p, loc("a"), "content")
	want := sampleAttr(p, 0o640, 1_111_111_111)
	set, err := setter.SetAttr(t.Context(), loc("a"), providers.SetAttrOptions{If: providers.IfVersion(before.Version), Attr: want})
	wantOK(t, "setattr", err)
	wantAttr(t, "setattr", set, want)
	if p.Capabilities().UniqueVersions && set.Version.Matches(before.Version) {
		t.Errorf("setattr left the version %+v", set.Version)
	}
	info := wantContent(t, p, loc("a"), "content")
	wantAttr(t, "read", info, want)
	if !info.Version.Matches(set.Version) {
		t.Errorf("read says version %+v, setattr %+v", info.Version, set.Version)
	}
	put(t, p, loc("dir/file"), "x")
	_, err = setter.SetAttr(t.Context(), loc("dir"), providers.SetAttrOptions{If: providers.IfDir(), Attr: want})
	wantOK(t, "setattr of a directory", err)
	dir, err := p.Stat(t.Context(), loc("dir"))
	wantOK(t, "stat", err)
	wantAttr(t, "directory", dir, want)
	wantContent(t, p, loc("dir/file"), "x")
}

func attrSetConditions(t T, p providers.Provider) {
	setter := must[providers.AttrSetter](t, p)
	want := sampleAttr(p, 0o600, 7)
	old := put(t, p, loc("a"), "1")
	now := put(t, p, loc("a"), "2")
	put(t, p, loc("dir/file"), "x")
	for _, c := range []struct {
		what string
		l    string
		cond providers.Condition
		want error
	}{
		{"no condition", "a", providers.Condition{}, providers.ErrInvalid},
		{"absence", "a", providers.IfAbsent(), providers.ErrInvalid},
		{"an old version", "a", providers.IfVersion(old.Version), providers.ErrConflict},
		{"a directory", "a", providers.IfDir(), providers.ErrNotDir},
		{"a version of nothing", "no", providers.IfVersion(now.Version), providers.ErrNotExist},
		{"anything, of nothing", "no", providers.Unconditional(), providers.ErrNotExist},
		{"a version of a directory", "dir", providers.IfVersion(now.Version), providers.ErrConflict},
	} {
		_, err := setter.SetAttr(t.Context(), loc(c.l), providers.SetAttrOptions{If: c.cond, Attr: want})
		wantErr(t, "setattr that asks for "+c.what, err, c.want)
	}
	stat, err := p.Stat(t.Context(), loc("a"))
	wantOK(t, "stat", err)
	if !stat.Version.Matches(now.Version) {
		t.Errorf("a refused setattr changed the version: %+v, was %+v", stat.Version, now.Version)
	}
	_, err = setter.SetAttr(t.Context(), loc("a"), providers.SetAttrOptions{If: providers.Unconditional(), Attr: want})
	wantOK(t, "unconditional setattr", err)
}

// attrSetOperation: a repetition after a lost answer is no conflict with its first attempt, and
// does not hide one with others.
func attrSetOperation(t T, p providers.Provider) {
	setter := must[providers.AttrSetter](t, p)
	before := put(t, p, loc("a"), "content")
	opts := providers.SetAttrOptions{If: providers.IfVersion(before.Version), Attr: sampleAttr(p, 0o640, 7), Op: "op-1"}
	first, err := setter.SetAttr(t.Context(), loc("a"), opts)
	wantOK(t, "setattr", err)
	again, err := setter.SetAttr(t.Context(), loc("a"), opts)
	wantOK(t, "repeated setattr", err)
	if !again.Version.Matches(first.Version) {
		t.Errorf("the repetition made version %+v from %+v", again.Version, first.Version)
	}
	put(t, p, loc("a"), "another's")
	_, err = setter.SetAttr(t.Context(), loc("a"), opts)
	wantErr(t, "repetition when others wrote since", err, providers.ErrConflict)
	wantContent(t, p, loc("a"), "another's")
}

// must is As for an ability that is announced.
func must[A any](t T, p providers.Provider) A {
	t.Helper()
	a, ok := providers.As[A](p)
	if !ok {
		t.Fatalf("%T is announced and not there", a)
	}
	return a
}
