//go:build !soak

package gitserver

import "github.com/wsmount/wsmount/integration/gitserver/internal/openapi"

// described is no description: nothing is held to one.
func described() (*openapi.Description, error) { return nil, nil }
