// Package crash proves on the built program that a working copy loses nothing
// that a program was told is safe: when the daemon is killed, when the machine
// loses power, when its disk is full, and when the storage cannot be reached.
//
//	go test ./integration/crash -kills 200 -cuts 100
package crash

import (
	"testing"

	"github.com/wsmount/wsmount/integration/internal/crasher"
	"github.com/wsmount/wsmount/integration/internal/harness"
)

func TestMain(m *testing.M) {
	if crasher.IsClient() {
		crasher.Main()
		return
	}
	harness.Main(m)
}
