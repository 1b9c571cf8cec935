// Package conceal takes the places of the host out of texts, for programs that may know how
// a mount is doing and not where things lie outside of it.
//
//	hide := conceal.Places("/mnt/ws", []string{"/srv/a"})
//	hide.Replace("open /srv/a/f: no space left") // open f: no space left
package conceal

import (
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/wsmount/wsmount/cache/exactjson"
)

// Places shortens a path below one of dirs to the part below, so that a reason still names the
// file. It knows paths as they are, and as they stand in the quotes of a log and of JSON.
// The path shown stays, wherever it lies; "" names nothing. One of dirs that is a URL is a
// service, which is called a store.
func Places(shown string, dirs []string) *strings.Replacer {
	dirs = append(slices.Clone(dirs), shown)
	slices.SortFunc(dirs, func(a, b string) int { return len(b) - len(a) }) // a replacer tries them in order
	var pairs []string
	for i, dir := range dirs {
		if dir == "" || dir == "/" || slices.Contains(dirs[:i], dir) {
			continue
		}
		if u, err := url.Parse(dir); err == nil && u.Host != "" {
			pairs = append(pairs, strings.TrimRight(dir, "/"), "the store")
			if strings.ContainsAny(u.Host, ".:") { // else it may be a word
				pairs = append(pairs, u.Host, "the store")
			}
			continue
		}
		asGo := strconv.Quote(dir)
		asJSON, _ := exactjson.Marshal(dir)
		for _, form := range []string{dir, asGo[1 : len(asGo)-1], string(asJSON[1 : len(asJSON)-1])} {
			if dir == shown {
				pairs = append(pairs, form, form)
				continue
			}
			pairs = append(pairs, form+"/", "", form, "a directory of the host")
		}
	}
	return strings.NewReplacer(pairs...)
}
