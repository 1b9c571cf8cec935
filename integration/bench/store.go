package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"time"
)

// storeBar is what a program may take that reads one file of memory, from its start to its end.
const storeBar = 15 * time.Millisecond

// compareStore measures whole processes of `wsmount store read`, of each kind of memory in turn,
// and of one that does nothing, which the machine takes for starting it.
func compareStore(ctx context.Context, o options) (err error) {
	dir, err := os.MkdirTemp(o.dir, "bench-store-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	program, err := filepath.Abs(o.wsmount)
	if err != nil {
		return err
	}
	kinds := []string{"device-local", "vault", "-"}
	for _, memory := range []string{filepath.Join(dir, ".agentm", "memory"), filepath.Join(dir, "vault")} {
		if err := errors.Join(os.MkdirAll(memory, 0o700), os.WriteFile(filepath.Join(memory, "note.md"), []byte("# Note\n"), 0o600)); err != nil {
			return err
		}
	}
	took := map[string][]time.Duration{}
	for range o.store {
		for _, kind := range kinds {
			cmd := exec.CommandContext(ctx, program, "store", "read", "note.md", "--backend", kind)
			if kind == "-" {
				cmd = exec.CommandContext(ctx, "/bin/true")
			}
			cmd.Env = []string{"HOME=" + dir, "PATH=" + os.Getenv("PATH"), "MEMORY_VAULT_PATH=" + filepath.Join(dir, "vault")}
			began := time.Now()
			out, err := cmd.CombinedOutput()
			took[kind] = append(took[kind], time.Since(began))
			if err != nil || kind != "-" && string(out) != "# Note\n" {
				return fmt.Errorf("store read of %s: %w: %s", kind, err, out)
			}
		}
	}
	fmt.Printf("\na process of store read, %d times, Linux %s, %d processors, load %s\n\n", o.store, kernel(), runtime.NumCPU(), load())
	fmt.Printf("%-28s %10s %10s  %s\n", "memory", "least", "median", "bar")
	var missed error
	for _, kind := range kinds {
		name, bar := kind, "<= "+ms(storeBar)
		if kind == "-" {
			name, bar = "none: /bin/true", "-"
		} else if medianTime(took[kind]) > storeBar {
			bar += " !"
			missed = errors.Join(missed, fmt.Errorf("store read of %s: bar missed", kind))
		}
		fmt.Printf("%-28s %10s %10s  %s\n", name, ms(slices.Min(took[kind])), ms(medianTime(took[kind])), bar)
	}
	if !o.strict {
		return nil
	}
	return missed
}
