package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/wsmount/wsmount/integration/s3server"
)

// A bucketClient is the SDK without anything of wsmount: what can be reached at
// most, another who writes, and the witness of what has arrived.
type bucketClient struct {
	api       *s3.Client
	transport *http.Transport
	bucket    string
}

func newBucketClient(server *s3server.Server, endpoint string) *bucketClient {
	login := aws.Credentials{AccessKeyID: server.AccessKey, SecretAccessKey: server.SecretKey}
	transport := &http.Transport{MaxIdleConns: 256, MaxIdleConnsPerHost: 128, DisableCompression: true}
	return &bucketClient{bucket: server.Bucket, transport: transport, api: s3.New(s3.Options{
		Region: "us-east-1", UsePathStyle: true, BaseEndpoint: &endpoint, HTTPClient: &http.Client{Transport: transport},
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) { return login, nil }),
		// The cheapest way: no checksums, and bodies are not signed.
		RequestChecksumCalculation: aws.RequestChecksumCalculationWhenRequired,
		ResponseChecksumValidation: aws.ResponseChecksumValidationWhenRequired,

		DisableLogOutputChecksumValidationSkipped: true,
	})}
}

func (c *bucketClient) close() { c.transport.CloseIdleConnections() }

var unsigned = s3.WithAPIOptions(v4.SwapComputePayloadSHA256ForUnsignedPayloadMiddleware)

func (c *bucketClient) put(ctx context.Context, key string, data []byte) error {
	_, err := c.api.PutObject(ctx, &s3.PutObjectInput{Bucket: &c.bucket, Key: &key, Body: bytes.NewReader(data)}, unsigned)
	return err
}

// open begins to read an object.
func (c *bucketClient) open(ctx context.Context, key string) (io.ReadCloser, error) {
	out, err := c.api.GetObject(ctx, &s3.GetObjectInput{Bucket: &c.bucket, Key: &key})
	if err != nil {
		return nil, err
	}
	return out.Body, nil
}

// get reads a whole object.
func (c *bucketClient) get(ctx context.Context, key string) ([]byte, error) {
	body, err := c.open(ctx, key)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	return io.ReadAll(body)
}

// getRange reads len(buf) bytes at off.
func (c *bucketClient) getRange(ctx context.Context, key string, off int64, buf []byte) error {
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
func (c *bucketClient) list(ctx context.Context, prefix string) (keys int, err error) {
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
func (c *bucketClient) putLarge(ctx context.Context, key string, blocks int) error {
	begun, err := c.api.CreateMultipartUpload(ctx, &s3.CreateMultipartUploadInput{Bucket: &c.bucket, Key: &key})
	if err != nil {
		return err
	}
	done := make([]types.CompletedPart, (blocks+partBlocks-1)/partBlocks)
	buffers := sync.Pool{New: func() any { return new([partBlocks * block]byte) }}
	err = inParallel(len(done), largeWays, func(i int) error {
		part := buffers.Get().(*[partBlocks * block]byte)
		defer buffers.Put(part)
		n := min(partBlocks, blocks-i*partBlocks)
		for b := range n {
			largeBlock(part[b*block:(b+1)*block], i*partBlocks+b)
		}
		number := int32(i + 1)
		out, err := c.api.UploadPart(ctx, &s3.UploadPartInput{Bucket: &c.bucket, Key: &key, UploadId: begun.UploadId,
			PartNumber: &number, Body: bytes.NewReader(part[:n*block])}, unsigned)
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

// How the large object goes to and fro.
const (
	partBlocks = 8
	largeWays  = 16
)

// inParallel does n things, so many at once, until one fails.
func inParallel(n, ways int, do func(i int) error) error {
	var next atomic.Int64
	var failed atomic.Bool
	errs := make(chan error, ways)
	for range ways {
		go func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= n || failed.Load() {
					errs <- nil
					return
				}
				if err := do(i); err != nil {
					failed.Store(true)
					errs <- err
					return
				}
			}
		}()
	}
	var first error
	for range ways {
		if err := <-errs; first == nil {
			first = err
		}
	}
	return first
}
