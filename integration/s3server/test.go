package s3server

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/integration/testrun"
	"github.com/wsmount/wsmount/integration/tier"
)

// Default is the kind for a test that needs one server, whichever.
func Default() Kind { return Kinds()[0] }

// Start runs a server with one empty bucket until the test ends.
func Start(t testing.TB, kind Kind) *Server {
	t.Helper()
	return start(t, kind, func(*Server) {})
}

// StartAs is Start of one whose bucket has that name, in a region.
func StartAs(t testing.TB, bucket, region string) *Server {
	t.Helper()
	return start(t, Versitygw, func(s *Server) { s.Bucket, s.Region = bucket, region })
}

func start(t testing.TB, kind Kind, change func(*Server)) *Server {
	t.Helper()
	s, err := launch(t.Context(), kind, tier.RequireBuilt(t, string(kind)), place(t), change)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	return s
}

// StartVersioned is Start of a Versitygw whose bucket has versioning.
func StartVersioned(t testing.TB) *Server {
	t.Helper()
	s := start(t, Versitygw, func(s *Server) { s.versions = place(t) })
	_, err := s.Client().PutBucketVersioning(t.Context(), &s3.PutBucketVersioningInput{Bucket: &s.Bucket,
		VersioningConfiguration: &types.VersioningConfiguration{Status: types.BucketVersioningStatusEnabled}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// place is a new directory, in memory where files there have attributes of their own, in
// which Versitygw keeps what it knows of objects: no test asks how soon a server's disk is.
func place(t testing.TB) string {
	t.Helper()
	dir := testrun.InMemory(t)
	if err := unix.Setxattr(dir, "user.wsmount", nil, 0); err != nil {
		return t.TempDir()
	}
	return dir
}
