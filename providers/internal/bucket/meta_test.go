package bucket

import (
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
)

// takes2K is a service that takes as much as S3.
var takes2K = Service{Metadata: 2 << 10}

// What others write, and what is nobody's.
func TestDecodeMeta(t *testing.T) {
	all := recordAttributes
	for _, c := range []struct {
		name string
		raw  map[string]string
		want meta
	}{
		{"nothing", nil, meta{kind: providers.KindFile}},
		{"s3fs file", map[string]string{"mode": "33188", "uid": "1000", "gid": "100", "mtime": "1700000000"},
			meta{kind: providers.KindFile, attr: providers.Attr{Valid: all, Mode: 0o644, UID: 1000, GID: 100, ModTime: time.Unix(1700000000, 0)}}},
		{"s3fs link", map[string]string{"mode": "41471", "mtime": "1700000000.000000007"},
			meta{kind: providers.KindSymlink, attr: providers.Attr{Valid: providers.AttrMode | providers.AttrModTime, Mode: 0o777, ModTime: time.Unix(1700000000, 7)}}},
		{"s3fs directory with sticky bit", map[string]string{"mode": "17407"},
			meta{kind: providers.KindFile, attr: providers.Attr{Valid: providers.AttrMode, Mode: 0o1777}}},
		{"rclone", map[string]string{"mode": "100640", "mtime": "1354040105.1234", "btime": "2006-01-02T15:04:05Z"},
			meta{kind: providers.KindFile, attr: providers.Attr{Valid: providers.AttrMode | providers.AttrModTime, Mode: 0o640, ModTime: time.Unix(1354040105, 123400000)},
				user: map[string]string{"btime": "2006-01-02T15:04:05Z"}}},
		{"rclone directory", map[string]string{"mode": "40755"},
			meta{kind: providers.KindFile, attr: providers.Attr{Valid: providers.AttrMode, Mode: 0o755}}},
		{"octal without a type", map[string]string{"mode": "644"},
			meta{kind: providers.KindFile, attr: providers.Attr{Valid: providers.AttrMode, Mode: 0o644}}},
		{"geesefs link", map[string]string{"--symlink-target": "..%2Fa%20b"}, meta{kind: providers.KindSymlink, target: "../a b", targetBy: metaTarget}},
		{"rclone's time in azureblob", map[string]string{"mtime": "2001-09-09T03:46:40.000000007+02:00"},
			meta{kind: providers.KindFile, attr: providers.Attr{Valid: providers.AttrModTime, ModTime: time.Unix(1e9, 7)}}},
		{"rclone's times in gcs", map[string]string{"mtime": "2001-09-09T01:46:40.5Z", "goog-reserved-file-mtime": "1000000000"},
			meta{kind: providers.KindFile, attr: providers.Attr{Valid: providers.AttrModTime, ModTime: time.Unix(1e9, 5e8)}}},
		{"gcsfuse has changed a file of rclone's", map[string]string{"mtime": "2001-09-09T01:46:40Z", "goog-reserved-file-mtime": "1000000000", "gcsfuse_mtime": "2005-03-18T01:58:31Z", "wsmount-op": "of what was there before"},
			meta{kind: providers.KindFile, attr: providers.Attr{Valid: providers.AttrModTime, ModTime: time.Unix(1111111111, 0)}}},
		{"gcloud storage cp --preserve-posix", map[string]string{"goog-reserved-posix-mode": "640", "goog-reserved-posix-uid": "1000", "goog-reserved-posix-gid": "100",
			"goog-reserved-file-mtime": "1700000000", "goog-reserved-file-atime": "1800000000"},
			meta{kind: providers.KindFile, attr: providers.Attr{Valid: all, Mode: 0o640, UID: 1000, GID: 100, ModTime: time.Unix(1700000000, 0)},
				user: map[string]string{"goog-reserved-file-atime": "1800000000"}}},
		{"s3fs beside Google's", map[string]string{"mode": "33188", "goog-reserved-posix-mode": "600", "uid": "1", "gid": "2", "goog-reserved-posix-uid": "3", "goog-reserved-posix-gid": "4"},
			meta{kind: providers.KindFile, attr: providers.Attr{Valid: providers.AttrMode | providers.AttrOwner, Mode: 0o644, UID: 1, GID: 2}}},
		{"gcsfuse link before 3.9", map[string]string{"gcsfuse_symlink_target": "../a b%2F"},
			meta{kind: providers.KindSymlink, target: "../a b%2F", targetBy: GcsfuseTarget}},
		{"gcsfuse link", map[string]string{"gcsfuse_symlink_target": "a", "goog-reserved-file-is-symlink": "true"},
			meta{kind: providers.KindSymlink, target: "a", targetBy: GcsfuseTarget, inContent: true}},
		{"link of Google's tools", map[string]string{"goog-reserved-file-is-symlink": "true"}, meta{kind: providers.KindSymlink, inContent: true}},
		{"no link of Google's tools", map[string]string{"goog-reserved-file-is-symlink": "false"},
			meta{kind: providers.KindFile, user: map[string]string{"goog-reserved-file-is-symlink": "false"}}},
		{"blobfuse2 link", map[string]string{"Is_symlink": "true"}, meta{kind: providers.KindSymlink, inContent: true}},
		{"AzCopy --preserve-posix-properties", map[string]string{"permissions": "33184", "posix_owner": "1000", "posix_group": "100", "modtime": "1700000000000000007", "posix_nlink": "1"},
			meta{kind: providers.KindFile, attr: providers.Attr{Valid: all, Mode: 0o640, UID: 1000, GID: 100, ModTime: time.Unix(1700000000, 7)},
				user: map[string]string{"posix_nlink": "1"}}},
		{"s3fs beside AzCopy's", map[string]string{"permissions": "33184", "modtime": "1", "mode": "33188", "mtime": "2"},
			meta{kind: providers.KindFile, attr: providers.Attr{Valid: providers.AttrMode | providers.AttrModTime, Mode: 0o644, ModTime: time.Unix(2, 0)}}},
		{"AzCopy link", map[string]string{"permissions": "41471", "is_symlink": "true"},
			meta{kind: providers.KindSymlink, inContent: true, attr: providers.Attr{Valid: providers.AttrMode, Mode: 0o777}}},
		{"names like AzCopy's", map[string]string{"permissions": "all", "posix_owner": "1", "posix_group": "2", "modtime": "3"},
			meta{kind: providers.KindFile, user: map[string]string{"permissions": "all", "posix_owner": "1", "posix_group": "2", "modtime": "3"}}},
		{"capitals of a server", map[string]string{"Mode": "33152", "Wsmount-Op": "op"},
			meta{kind: providers.KindFile, attr: providers.Attr{Valid: providers.AttrMode, Mode: 0o600}, op: "op"}},
		{"a mode that is none", map[string]string{"mode": "dark"}, meta{kind: providers.KindFile, user: map[string]string{"mode": "dark"}}},
		{"half an owner", map[string]string{"uid": "5"}, meta{kind: providers.KindFile, user: map[string]string{"uid": "5"}}},
		{"a time that is none", map[string]string{"mtime": "1.5e9"}, meta{kind: providers.KindFile, user: map[string]string{"mtime": "1.5e9"}}},
		{"encoded words", map[string]string{"a": "=?UTF-8?Q?gr=C3=BCn?= =?UTF-8?B?IQ==?=", "b": "=?plain", "c": "=?UTF-8?B??="},
			meta{kind: providers.KindFile, user: map[string]string{"a": "grün!", "b": "=?plain", "c": ""}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := decodeMeta(c.raw)
			same := got.kind == c.want.kind && got.attr.Valid == c.want.attr.Valid && got.attr.Mode == c.want.attr.Mode &&
				got.attr.UID == c.want.attr.UID && got.attr.GID == c.want.attr.GID && got.attr.ModTime.Equal(c.want.attr.ModTime) &&
				maps.Equal(got.user, c.want.user) && got.op == c.want.op && got.target == c.want.target &&
				got.targetBy == c.want.targetBy && got.inContent == c.want.inContent
			assert.True(t, same, "got", got, "want", c.want)
		})
	}
}

// What is written is read back, in s3fs's words.
func TestEncodeMeta(t *testing.T) {
	user := map[string]string{"plain": "a b", "empty": "", "blank": " a ", "two": "a  b", "bytes": "\x00\xff\n", "umlaut": "grün", "word": "=?UTF-8?B?eA==?="}
	m := meta{kind: providers.KindSymlink, user: user, op: "op", attr: providers.Attr{Valid: attributes, Mode: 0o750, UID: 1, GID: 2, ModTime: time.Unix(-5, 7)}}
	raw := assert.Of(m.encode(takes2K)).OK(t)
	for key, want := range map[string]string{"mode": "41448", "uid": "1", "gid": "2", "mtime": "-5.000000007", "wsmount-op": "op", "plain": "a b"} {
		assert.Equal(t, raw[key], want, key)
	}
	for key, value := range raw {
		if value == "" || value != strings.TrimSpace(value) || strings.IndexFunc(value, func(c rune) bool { return c < ' ' || c > '~' }) >= 0 {
			t.Errorf("%s: %q is nothing for a header", key, value)
		}
	}
	got := decodeMeta(raw)
	assert.True(t, maps.Equal(got.user, user) && got.kind == m.kind && got.attr.ModTime.Equal(m.attr.ModTime) && got.attr.Mode == 0o750, "read back as", got)
}

// Each service gets the words of its programs, and they are read back.
func TestWords(t *testing.T) {
	attr := providers.Attr{Valid: recordAttributes, Mode: 0o640, UID: 1, GID: 2, ModTime: time.Unix(1e9, 5e8)}
	file, link := meta{kind: providers.KindFile, attr: attr}, meta{kind: providers.KindSymlink}
	told := link
	told.target, told.targetBy, told.inContent = "a", GcsfuseTarget, true
	azure, google := Words{Dates: true, Link: BlobLink}, Words{Dates: true, Google: true, Link: GoogLink, Target: GcsfuseTarget}
	far := meta{kind: providers.KindFile, attr: providers.Attr{Valid: providers.AttrModTime, ModTime: time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)}}
	for _, c := range []struct {
		name  string
		words Words
		m     meta
		want  map[string]string
	}{
		{"s3fs's file", Words{}, file, map[string]string{"mode": "33184", "uid": "1", "gid": "2", "mtime": "1000000000.500000000"}},
		{"s3fs's link", Words{}, link, map[string]string{"mode": "41471"}},
		{"Azure's file", azure, file, map[string]string{"mode": "33184", "uid": "1", "gid": "2", "mtime": "2001-09-09T01:46:40.5Z"}},
		{"Azure's link", azure, link, map[string]string{"mode": "41471", "is_symlink": "true"}},
		{"a time that is no date", azure, far, map[string]string{"mtime": "253402300800"}},
		{"Google's file", google, file, map[string]string{"goog-reserved-posix-mode": "640", "goog-reserved-posix-uid": "1", "goog-reserved-posix-gid": "2",
			"goog-reserved-file-mtime": "1000000000", "mtime": "2001-09-09T01:46:40.5Z"}},
		{"Google's link", google, told, map[string]string{"goog-reserved-file-is-symlink": "true", "gcsfuse_symlink_target": "a"}},
		{"gcsfuse's link before 3.9", google, meta{kind: providers.KindSymlink, target: "a ü", targetBy: GcsfuseTarget}, map[string]string{"gcsfuse_symlink_target": "a ü"}},
		{"GeeseFS's link", google, meta{kind: providers.KindSymlink, target: "a b", targetBy: metaTarget}, map[string]string{"--symlink-target": "a%20b"}},
		{"what a working copy has as a user's", google, meta{user: map[string]string{"gcsfuse_mtime": "2005-03-18T01:58:31Z", "mtime": "2005-03-18T01:58:31Z", "is_symlink": "perhaps"}},
			map[string]string{"is_symlink": "perhaps"}},
	} {
		raw := assert.Of(c.m.encode(Service{Words: c.words, Metadata: 2 << 10})).OK(t, c.name)
		assert.True(t, maps.Equal(raw, c.want), c.name, "got", raw, "want", c.want)
		got := decodeMeta(raw)
		assert.False(t, len(c.m.user) == 0 && (got.kind != c.m.kind || !got.attr.ModTime.Equal(c.m.attr.ModTime) || got.target != c.m.target), c.name, "read back as", got)
	}
	told.target = strings.Repeat("x", 3<<10)
	raw := assert.Of(told.encode(Service{Words: google, Metadata: 2 << 10})).OK(t, "a target that does not fit is in the content alone")
	assert.Equal(t, raw[GcsfuseTarget], "")
}

func TestEncodeMetaRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		user map[string]string
		want error
	}{
		"too much":       {map[string]string{"a": strings.Repeat("x", takes2K.Metadata)}, providers.ErrTooLarge},
		"too much coded": {map[string]string{"a": strings.Repeat("\xff", takes2K.Metadata*3/4)}, providers.ErrTooLarge},
		"a name of ours": {map[string]string{"mtime": "1"}, providers.ErrInvalid},
		"capitals":       {map[string]string{"Colour": "red"}, providers.ErrInvalid},
		"no header":      {map[string]string{"a:b": "red"}, providers.ErrInvalid},
	} {
		assert.Is(t, assert.ErrOf((meta{user: c.user}).encode(takes2K)), c.want, name)
	}
}

// Links of others are links here, with their targets as content, and stay what they are when
// their attributes change.
func TestForeignLinks(t *testing.T) {
	f := newFake()
	p := openFake(t, f, nil)
	f.put("pre/geesefs", "", map[string]string{"--Symlink-Target": "a%2Fb"})
	f.put("pre/s3fs", "a/b", map[string]string{"mode": "41471"})
	f.put("pre/blobfuse2", "a/b", map[string]string{"Is_symlink": "true"})
	f.put("pre/gcsfuse3.8", "", map[string]string{"gcsfuse_symlink_target": "a/b"})
	f.put("pre/gcsfuse", "a/b", map[string]string{"gcsfuse_symlink_target": "a/b", "goog-reserved-file-is-symlink": "true"})
	for _, name := range []string{"geesefs", "s3fs", "blobfuse2", "gcsfuse3.8", "gcsfuse"} {
		l := providers.MustLocator(name)
		for range 2 {
			content, info, err := providers.Fetch(t.Context(), p, l, providers.ReadOptions{})
			assert.True(t, err == nil && string(content) == "a/b" && info.Kind == providers.KindSymlink && info.Size == 3, name, content, info.Kind, "of", info.Size, err)
			part, _, err := providers.Fetch(t.Context(), p, l, providers.ReadOptions{Offset: 1, Length: 1, Version: info.Version})
			assert.True(t, err == nil && string(part) == "/", "range of", name, part, err)
			set := providers.SetAttrOptions{If: providers.IfVersion(info.Version), Attr: providers.Attr{Valid: providers.AttrModTime, ModTime: time.Unix(1, 0)}}
			assert.Is(t, assert.ErrOf(p.SetAttr(t.Context(), l, set)), nil, "setattr of", name)
		}
	}
}
