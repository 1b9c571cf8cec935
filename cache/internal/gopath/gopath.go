// Package gopath keeps the program from reading the user's home directory before main: it may
// lie in a mount that does not answer, and then every command would hang without a message.
//
// Pebble's error package looks for Go's sources at its initialization, in $GOPATH, or in ~/go
// without that (github.com/cockroachdb/errors/withstack). They are never needed. A package that
// imports nothing but go/build is initialized before that one, by the order in the
// specification of Go: after their imports, and packages that are ready by their paths.
//
//	import _ "github.com/wsmount/wsmount/cache/internal/gopath"
package gopath

import "go/build"

func init() { build.Default.GOPATH = "" }
