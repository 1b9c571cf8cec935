// Package grant compares requests of a manifest with grants of the
// host: addresses with patterns, paths with roots, keys with prefixes.
//
// It promises that every comparison is on whole parts: a grant for
// guilds/acme is none for guilds/acme-evil, one for @acme/* is none for
// @acme-evil/ops, and a path is below a root only if no ".." is needed to
// see it.
//
//	ok := grant.Matches("@acme/*", "acme", "ops")
package grant

import (
	"fmt"
	"path"
	"path/filepath"
	"strings"
)

// Check says whether pattern can be read: "@owner/*", "@owner/slug" or "*",
// which matches every owner.
func Check(pattern string) error {
	if pattern == "*" {
		return nil
	}
	owner, slug, ok := parts(pattern)
	if !ok || !isSlug(owner) || slug != "*" && !isSlug(slug) {
		return fmt.Errorf("%q is not a pattern of addresses: write \"@owner/*\", \"@owner/slug\" or \"*\"", pattern)
	}
	return nil
}

// Matches compares one pattern with the address @owner/slug. A pattern that
// Check refuses matches nothing.
func Matches(pattern, owner, slug string) bool {
	if Check(pattern) != nil || owner == "" {
		return false
	}
	if pattern == "*" {
		return true
	}
	o, s, _ := parts(pattern)
	return o == owner && (s == "*" || s == slug)
}

// MatchesAny returns the first pattern that matches.
func MatchesAny(patterns []string, owner, slug string) (string, bool) {
	for _, p := range patterns {
		if Matches(p, owner, slug) {
			return p, true
		}
	}
	return "", false
}

func parts(pattern string) (owner, slug string, ok bool) {
	rest, at := strings.CutPrefix(pattern, "@")
	owner, slug, ok = strings.Cut(rest, "/")
	return owner, slug, at && ok
}

func isSlug(s string) bool {
	return s != "" && s[0] != '-' && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
}

// Below says whether target is root or lies below it. Both are absolute
// real paths: symbolic links are the caller's to resolve.
func Below(root, target string) bool {
	if !filepath.IsAbs(root) || !filepath.IsAbs(target) {
		return false
	}
	root, target = filepath.Clean(root), filepath.Clean(target)
	return root == "/" || root == target || strings.HasPrefix(target, root+"/")
}

// Prefix says whether the keys below asked are among those below granted.
// An empty granted is the whole bucket. A key prefix is bytes, not a path,
// so that one which a reader could normalise is refused.
func Prefix(granted, asked string) bool {
	granted, asked = strings.Trim(granted, "/"), strings.Trim(asked, "/")
	if !plainKey(granted) || !plainKey(asked) {
		return false
	}
	return granted == "" || granted == asked || strings.HasPrefix(asked, granted+"/")
}

// Overlaps says whether two key prefixes, or two absolute paths, share
// anything: one is the other or lies below it.
func Overlaps(a, b string) bool {
	a, b = strings.Trim(path.Clean("/"+a), "/"), strings.Trim(path.Clean("/"+b), "/")
	return a == "" || b == "" || a == b || strings.HasPrefix(a, b+"/") || strings.HasPrefix(b, a+"/")
}

func plainKey(k string) bool {
	return k == "" || path.Clean("/"+k) == "/"+k && !strings.ContainsFunc(k, func(r rune) bool { return r < ' ' || r == 0x7f })
}
