package main

import (
	"os"
	"path/filepath"

	"github.com/urfave/cli/v2"

	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/cmd/internal/mounts"
	"github.com/wsmount/wsmount/cmd/internal/state"
)

// stateRoot is the state directory that the command line and environment choose.
func stateRoot(c *cli.Context) (string, error) {
	return state.Root(c.String("state-dir"), os.Getenv)
}

// allMounts lists what the state directory knows.
func allMounts(c *cli.Context) ([]*state.Record, error) {
	root, err := stateRoot(c)
	if err != nil {
		return nil, err
	}
	return state.List(root)
}

// findMount returns the record of the mount that path lies in.
func findMount(c *cli.Context, path string) (*state.Record, error) {
	root, err := stateRoot(c)
	if err != nil {
		return nil, err
	}
	return mounts.Find(root, path)
}

// absolute makes a path absolute without following it.
func absolute(path string) (string, error) {
	p, err := filepath.Abs(path)
	if err != nil {
		return "", exit.New(exit.Usage, "%w", err)
	}
	return p, nil
}
