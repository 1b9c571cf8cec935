//go:build soak

package s3server

// Kinds are those that tests run against.
func Kinds() []Kind { return []Kind{MinIO, Versitygw} }
