//go:build !race

package cache

const (
	accidentStep  = 3
	exerciseSteps = "3000"
	modelRuns     = "10"
	largeSteps    = 60
	killSteps     = 3
	recallSeeds   = 40
)

var posixtestSlow map[string]string
