package cache

import (
	"os"
	"testing"

	"github.com/wsmount/wsmount/integration/testrun"
	"github.com/wsmount/wsmount/integration/tier"
)

func TestMain(m *testing.M) {
	tier.Checks(3, 50) // there are many models
	os.Exit(testrun.Main(m))
}
