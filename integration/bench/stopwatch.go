package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// daemonVariable names the daemon's process to a worker that shall count
// processor time.
const daemonVariable = "BENCH_DAEMON"

// A stopwatch takes the time of a worker's work: what the clock on the wall
// says, or, with -clock cpu, the processor time of the worker, of the programs
// that it ran and of the daemon. On a machine that others use at the same time
// only the second can be compared.
type stopwatch struct {
	wall   time.Time
	daemon string // empty: by the wall
	cpu    time.Duration
}

func startWatch() stopwatch {
	s := stopwatch{wall: time.Now(), daemon: os.Getenv(daemonVariable)}
	s.cpu = s.spent()
	return s
}

// rate is n by the seconds since the start.
func (s stopwatch) rate(n int) float64 {
	if s.daemon == "" {
		return float64(n) / time.Since(s.wall).Seconds()
	}
	return float64(n) / (s.spent() - s.cpu).Seconds()
}

func (s stopwatch) seconds() float64 { return 1 / s.rate(1) }

func (s stopwatch) perMinute() float64 { return 60 * s.rate(1) }

func (s stopwatch) spent() time.Duration {
	if s.daemon == "" {
		return 0
	}
	return usage(unix.RUSAGE_SELF) + usage(unix.RUSAGE_CHILDREN) + threads(s.daemon)
}

func usage(who int) time.Duration {
	var r unix.Rusage
	if unix.Getrusage(who, &r) != nil {
		return 0
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// threads is the processor time of a process's threads, 0 of no process.
// schedstat counts nanoseconds, where stat has hundredths of a second.
func threads(pid string) time.Duration {
	var total time.Duration
	tasks, _ := filepath.Glob("/proc/" + pid + "/task/*/schedstat")
	for _, task := range tasks {
		data, err := os.ReadFile(task)
		if err != nil {
			continue // the thread has ended
		}
		spent, _, _ := strings.Cut(string(data), " ")
		ns, _ := strconv.ParseInt(spent, 10, 64)
		total += time.Duration(ns)
	}
	return total
}
