//go:build race

package cache

// The race detector is slow: it sees every tenth accident, fewer runs of the models,
// and fewer steps of the POSIX suite's exercises and of changes to large content.
// make model does without it, for hours.
const (
	accidentStep  = 10
	exerciseSteps = "300"
	modelRuns     = "4"
	largeSteps    = 20
	killSteps     = 1
	recallSeeds   = 10
)

var posixtestSlow = map[string]string{"OpenSymlinkRace": "takes a minute; the built program runs it on a bucket"}
