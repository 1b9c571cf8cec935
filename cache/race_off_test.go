//go:build !race

package cache

const (
	accidentStep  = 3
	exerciseSteps = "3000"
)
