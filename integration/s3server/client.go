package s3server

import (
	"bytes"
	"context"
	"io"
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// Client asks the server itself, past whatever lies between it and wsmount. It is
// another one after Restart with another secret: a client signs with what it made
// of the first that it saw.
func (s *Server) Client() *s3.Client {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.client == nil || s.signs != s.SecretKey {
		key := aws.Credentials{AccessKeyID: s.AccessKey, SecretAccessKey: s.SecretKey}
		s.signs = s.SecretKey
		s.client = s3.New(s3.Options{Region: s.Region, BaseEndpoint: &s.Endpoint, UsePathStyle: true,
			RequestChecksumCalculation: aws.RequestChecksumCalculationWhenRequired,
			Credentials:                aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) { return key, nil })})
	}
	return s.client
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

// PutPacked is Put of what is stored packed.
func (s *Server) PutPacked(ctx context.Context, key string, content []byte) error {
	_, err := s.Client().PutObject(ctx, &s3.PutObjectInput{Bucket: &s.Bucket, Key: &key, Body: bytes.NewReader(content), ContentEncoding: aws.String("gzip")})
	return err
}

// Keys are those of all objects below a prefix but wsmount's own, without the
// prefix.
func (s *Server) Keys(ctx context.Context, prefix string) ([]string, error) {
	found, err := s.ETags(ctx, prefix)
	return slices.Sorted(maps.Keys(found)), err
}
