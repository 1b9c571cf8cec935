package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/wsmount/wsmount/integration/s3server"
)

// An s3Client is AWS's SDK.
type s3Client struct {
	api       *s3.Client
	transport *http.Transport
	bucket    string
}

func newS3Client(server *s3server.Server, endpoint string) *s3Client {
	login := aws.Credentials{AccessKeyID: server.AccessKey, SecretAccessKey: server.SecretKey}
	transport := plainTransport()
	return &s3Client{bucket: server.Bucket, transport: transport, api: s3.New(s3.Options{
		Region: "us-east-1", UsePathStyle: true, BaseEndpoint: &endpoint, HTTPClient: &http.Client{Transport: transport},
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) { return login, nil }),
		// The cheapest way: no checksums, and bodies are not signed.
		RequestChecksumCalculation: aws.RequestChecksumCalculationWhenRequired,
		ResponseChecksumValidation: aws.ResponseChecksumValidationWhenRequired,

		DisableLogOutputChecksumValidationSkipped: true,
	})}
}

func (c *s3Client) close() { c.transport.CloseIdleConnections() }

var unsigned = s3.WithAPIOptions(v4.SwapComputePayloadSHA256ForUnsignedPayloadMiddleware)

func (c *s3Client) put(ctx context.Context, key string, data []byte) error {
	_, err := c.api.PutObject(ctx, &s3.PutObjectInput{Bucket: &c.bucket, Key: &key, Body: bytes.NewReader(data)}, unsigned)
	return err
}

// open begins to read an object.
func (c *s3Client) open(ctx context.Context, key string) (io.ReadCloser, error) {
	out, err := c.api.GetObject(ctx, &s3.GetObjectInput{Bucket: &c.bucket, Key: &key})
	if err != nil {
		return nil, err
	}
	return out.Body, nil
}

func (c *s3Client) isMissing(err error) bool {
	var missing *types.NoSuchKey
	return errors.As(err, &missing)
}

// getRange reads len(buf) bytes at off.
func (c *s3Client) getRange(ctx context.Context, key string, off int64, buf []byte) error {
	span := fmt.Sprintf("bytes=%d-%d", off, off+int64(len(buf))-1)
	out, err := c.api.GetObject(ctx, &s3.GetObjectInput{Bucket: &c.bucket, Key: &key, Range: &span})
	if err != nil {
		return err
	}
	defer out.Body.Close()
	_, err = io.ReadFull(out.Body, buf)
	return err
}

// list counts the keys below prefix, page by page.
func (c *s3Client) list(ctx context.Context, prefix string) (keys int, err error) {
	pages := s3.NewListObjectsV2Paginator(c.api, &s3.ListObjectsV2Input{Bucket: &c.bucket, Prefix: &prefix})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return keys, err
		}
		keys += len(page.Contents)
	}
	return keys, nil
}

// putLarge writes an object of so many blocks in parallel parts.
func (c *s3Client) putLarge(ctx context.Context, key string, blocks int) error {
	begun, err := c.api.CreateMultipartUpload(ctx, &s3.CreateMultipartUploadInput{Bucket: &c.bucket, Key: &key})
	if err != nil {
		return err
	}
	done := make([]types.CompletedPart, largeParts(blocks))
	err = eachLargePart(blocks, func(i int, part []byte) error {
		number := int32(i + 1)
		out, err := c.api.UploadPart(ctx, &s3.UploadPartInput{Bucket: &c.bucket, Key: &key, UploadId: begun.UploadId,
			PartNumber: &number, Body: bytes.NewReader(part)}, unsigned)
		if err != nil {
			return err
		}
		done[i] = types.CompletedPart{ETag: out.ETag, PartNumber: &number}
		return nil
	})
	if err != nil {
		return err
	}
	_, err = c.api.CompleteMultipartUpload(ctx, &s3.CompleteMultipartUploadInput{Bucket: &c.bucket, Key: &key, UploadId: begun.UploadId,
		MultipartUpload: &types.CompletedMultipartUpload{Parts: done}})
	return err
}
