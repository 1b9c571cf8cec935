package assert

import "time"

// Hangs is when something that a test waits for is taken to hang. No test says how soon
// anything has to be: that is up to the machine.
const Hangs = 3 * time.Minute

// Await waits until something holds that another goroutine or process brings about, and
// says whether it ever did.
func Await(holds func() bool) bool {
	for begin := time.Now(); !holds(); {
		waited := time.Since(begin)
		if waited > Hangs {
			return false
		}
		time.Sleep(min(time.Millisecond+waited/8, 100*time.Millisecond)) // what is asked costs time as well
	}
	return true
}

// Eventually waits until something holds, and ends the test when it never does.
func Eventually(t T, what string, holds func() bool) {
	t.Helper()
	if !Await(holds) {
		t.Fatalf("waited in vain: %s", what)
	}
}
