package cache

import (
	"flag"
	"os"
	"testing"

	"github.com/wsmount/wsmount/integration/testrun"
	"github.com/wsmount/wsmount/integration/tier"
)

func TestMain(m *testing.M) {
	fewerChecks()
	os.Exit(testrun.Main(m))
}

// fewerChecks sets how often the models are tried, unless the command line says so
// (-rapid.checks): there are many of them.
func fewerChecks() {
	flag.Parse()
	said := false
	flag.Visit(func(f *flag.Flag) { said = said || f.Name == "rapid.checks" })
	if !said {
		flag.Set("rapid.checks", tier.Pick("3", "50"))
	}
}
