package main

import (
	"context"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"

	"github.com/wsmount/wsmount/integration/azureserver"
	"github.com/wsmount/wsmount/integration/gcsserver"
	"github.com/wsmount/wsmount/integration/s3server"
)

// A bucketService has one bucket, and knows how programs are told of it.
type bucketService struct {
	endpoint string            // where it listens
	path     string            // behind that in wsmount's configuration
	bucket   string            // its name
	config   string            // what wsmount's configuration says of it, beside endpoint and prefix
	secrets  map[string]string // wsmount's
	s3fs     string            // its password file; "": it cannot

	// As a url is asked, in place of the endpoint:
	client func(url string) (bucketClient, error)
	rclone func(url string) (remote string, err error)

	found func(url string) // tells the service where it is found; nil: it need not know
	stop  func()
}

// The services that the benchmark serves itself, in memory.
const (
	inAzure = "azure"
	inGCS   = "gcs"
)

// startService runs what the options name.
func startService(ctx context.Context, o options, dir string) (*bucketService, error) {
	switch o.service {
	case inAzure:
		return azureService(), nil
	case inGCS:
		return gcsService(ctx), nil
	}
	return s3Service(ctx, o.s3, filepath.Join(dir, "server"))
}

func s3Service(ctx context.Context, program, data string) (*bucketService, error) {
	if err := os.Mkdir(data, 0o700); err != nil {
		return nil, err
	}
	program, err := filepath.Abs(program)
	if err != nil {
		return nil, err
	}
	s, err := s3server.Launch(ctx, s3server.Kind(filepath.Base(program)), program, data)
	if err != nil {
		return nil, err
	}
	return &bucketService{
		endpoint: s.Endpoint, bucket: s.Bucket, config: "kind: s3, region: us-east-1, bucket: " + s.Bucket,
		secrets: map[string]string{"access_key_id": s.AccessKey, "secret_access_key": s.SecretKey}, s3fs: s.AccessKey + ":" + s.SecretKey + "\n",
		client: func(url string) (bucketClient, error) { return newS3Client(s, url), nil },
		rclone: func(url string) (string, error) {
			return fmt.Sprintf("type = s3\nprovider = Minio\nendpoint = %s\naccess_key_id = %s\nsecret_access_key = %s\n", url, s.AccessKey, s.SecretKey), nil
		},
		stop: s.Stop,
	}, nil
}

func azureService() *bucketService {
	web, account := httptest.NewServer(azureserver.New()), "/"+azureserver.Account
	return &bucketService{
		endpoint: web.URL, path: account, bucket: azureserver.Container, config: "kind: azure, bucket: " + azureserver.Container,
		secrets: map[string]string{"account_name": azureserver.Account, "account_key": azureserver.AccountKey},
		client:  func(url string) (bucketClient, error) { return newAzureClient(url + account) },
		rclone: func(url string) (string, error) {
			signed, err := azureserver.SignedURL(url + account)
			return "type = azureblob\nsas_url = " + signed + "\n", err
		},
		stop: web.Close,
	}
}

func gcsService(ctx context.Context) *bucketService {
	s := gcsserver.New()
	web := httptest.NewServer(s)
	return &bucketService{
		endpoint: web.URL, bucket: gcsserver.Bucket, config: "kind: gcs, bucket: " + gcsserver.Bucket, secrets: map[string]string{"token": "of-nobody"},
		client: func(url string) (bucketClient, error) { return newGCSClient(ctx, url) },
		rclone: func(url string) (string, error) {
			return "type = google cloud storage\nanonymous = true\nbucket_policy_only = true\nendpoint = " + url + "/storage/v1/\n", nil
		},
		found: func(url string) { s.Set(func() { s.Endpoint = url }) }, // where it sends who downloads
		stop:  web.Close,
	}
}
