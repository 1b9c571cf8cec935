// Package tied starts programs that end with the test.
package tied

import (
	"os/exec"
	"runtime"
	"syscall"
)

// Start starts a program that gets a signal when this process ends, even by
// SIGKILL. ended is closed when the program has ended, and why says with what;
// nobody else may call cmd.Wait.
//
// The kernel takes the end of the thread that started the program for that of
// the process. So one thread does nothing else until the program has ended: any
// other could end before, as those do on which tests act as another user.
func Start(cmd *exec.Cmd, signal syscall.Signal) (ended <-chan struct{}, why func() error, err error) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = signal
	started, done := make(chan error, 1), make(chan struct{})
	var result error
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			result = cmd.Wait()
			close(done)
		}
	}()
	return done, func() error { <-done; return result }, <-started
}
