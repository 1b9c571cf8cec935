package s3server

import (
	"bytes"
	"context"
	"io"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// Client asks the server itself, past whatever lies between it and wsmount.
func (s *Server) Client() *s3.Client {
	return s3.New(s3.Options{Region: "us-east-1", BaseEndpoint: &s.Endpoint, UsePathStyle: true,
		RequestChecksumCalculation: aws.RequestChecksumCalculationWhenRequired,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: s.AccessKey, SecretAccessKey: s.SecretKey}, nil
		})})
}

// Get is the content of an object.
func (s *Server) Get(ctx context.Context, key string) ([]byte, error) {
	out, err := s.Client().GetObject(ctx, &s3.GetObjectInput{Bucket: &s.Bucket, Key: &key})
	if err != nil {
		return nil, err
	}
	defer out.Body.Close()
	return io.ReadAll(out.Body)
}

// Put makes an object.
func (s *Server) Put(ctx context.Context, key string, content []byte, metadata map[string]string) error {
	_, err := s.Client().PutObject(ctx, &s3.PutObjectInput{Bucket: &s.Bucket, Key: &key, Body: bytes.NewReader(content), Metadata: metadata})
	return err
}

// Keys are those of all objects below a prefix but wsmount's own, without the
// prefix.
func (s *Server) Keys(ctx context.Context, prefix string) ([]string, error) {
	var keys []string
	pages := s3.NewListObjectsV2Paginator(s.Client(), &s3.ListObjectsV2Input{Bucket: &s.Bucket, Prefix: &prefix})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		for _, o := range page.Contents {
			if key := strings.TrimPrefix(aws.ToString(o.Key), prefix); !strings.HasPrefix(key, ".wsmount/") {
				keys = append(keys, key)
			}
		}
	}
	return keys, nil
}
