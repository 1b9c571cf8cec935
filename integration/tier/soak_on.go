//go:build soak

package tier

// Soak says that this is a test of make soak.
const Soak = true
