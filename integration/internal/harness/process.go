package harness

import (
	"fmt"
	"os"
	"slices"
	"strings"
)

// IsIn says whether a process waits in one of some system calls. In -1 is one that waits in
// none, or has ended and is not waited for yet.
func IsIn(pid int, calls ...int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/syscall", pid))
	call, _, _ := strings.Cut(string(text), " ")
	return err == nil && slices.ContainsFunc(calls, func(n int) bool { return call == fmt.Sprint(n) })
}
