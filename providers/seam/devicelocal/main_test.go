package devicelocal

import (
	"os"
	"testing"

	"github.com/wsmount/wsmount/integration/testrun"
)

func TestMain(m *testing.M) { os.Exit(testrun.Main(m)) }
