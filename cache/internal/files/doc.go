// Package files is about the content of files that is used: how it is fetched when it is
// read, and before.
package files
