package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/wsmount/wsmount/integration/azureserver"
)

// An azureClient is Microsoft's SDK.
type azureClient struct {
	api       *container.Client
	transport *http.Transport
}

func newAzureClient(endpoint string) (*azureClient, error) {
	key, err := container.NewSharedKeyCredential(azureserver.Account, azureserver.AccountKey)
	if err != nil {
		return nil, err
	}
	c := &azureClient{transport: plainTransport()}
	c.api, err = container.NewClientWithSharedKeyCredential(endpoint+"/"+azureserver.Container, key, &container.ClientOptions{ClientOptions: azcore.ClientOptions{
		Transport: &http.Client{Transport: c.transport}, Retry: policy.RetryOptions{MaxRetries: -1},
	}})
	return c, err
}

func (c *azureClient) close() { c.transport.CloseIdleConnections() }

func (c *azureClient) put(ctx context.Context, key string, data []byte) error {
	_, err := c.api.NewBlockBlobClient(key).Upload(ctx, streaming.NopCloser(bytes.NewReader(data)), nil)
	return err
}

func (c *azureClient) open(ctx context.Context, key string) (io.ReadCloser, error) {
	out, err := c.api.NewBlobClient(key).DownloadStream(ctx, nil)
	return out.Body, err
}

func (c *azureClient) isMissing(err error) bool {
	return bloberror.HasCode(err, bloberror.BlobNotFound)
}

func (c *azureClient) getRange(ctx context.Context, key string, off int64, buf []byte) error {
	out, err := c.api.NewBlobClient(key).DownloadStream(ctx, &blob.DownloadStreamOptions{Range: blob.HTTPRange{Offset: off, Count: int64(len(buf))}})
	if err != nil {
		return err
	}
	defer out.Body.Close()
	_, err = io.ReadFull(out.Body, buf)
	return err
}

func (c *azureClient) list(ctx context.Context, prefix string) (keys int, err error) {
	for pages := c.api.NewListBlobsFlatPager(&container.ListBlobsFlatOptions{Prefix: &prefix}); pages.More(); {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return keys, err
		}
		keys += len(page.Segment.BlobItems)
	}
	return keys, nil
}

func (c *azureClient) putLarge(ctx context.Context, key string, blocks int) error {
	b, ids := c.api.NewBlockBlobClient(key), make([]string, largeParts(blocks))
	err := eachLargePart(blocks, func(i int, part []byte) error {
		ids[i] = base64.StdEncoding.EncodeToString(fmt.Appendf(nil, "%08d", i))
		_, err := b.StageBlock(ctx, ids[i], streaming.NopCloser(bytes.NewReader(part)), nil)
		return err
	})
	if err == nil {
		_, err = b.CommitBlockList(ctx, ids, nil)
	}
	return err
}
