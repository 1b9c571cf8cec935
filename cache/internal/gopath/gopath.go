// Package gopath keeps the program from looking into the user's home directory before main: that
// may lie in a mount that does not answer, and then no command would say so, but all would hang.
//
// What Pebble reports errors with looks for Go's sources at its initialization, in $GOPATH, or in
// ~/go without that (github.com/cockroachdb/errors/withstack). They are never needed. A package
// that imports nothing but go/build is initialized before that one, as the specification of Go
// orders them: by what they import, and of those that wait for nothing by their paths.
//
//	import _ "github.com/wsmount/wsmount/cache/internal/gopath"
package gopath

import "go/build"

func init() { build.Default.GOPATH = "" }
