//go:build !race

package table

const fullStep = 61
