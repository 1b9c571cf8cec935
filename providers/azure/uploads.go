package azure

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"

	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/internal/bucket"
)

// goesOn is an error if an upload has ended. The service only has its blocks, which no request
// can drop, so only this process knows that it was aborted.
func (s *store) goesOn(u bucket.Upload) error {
	if _, ok := s.uploads.Load(u); !ok {
		return &bucket.Fault{Kind: providers.ErrConflict, Err: words(uploadGone)}
	}
	return nil
}

// idBytes are the random bytes of an upload, and idDigits those of a block's number: 48
// bytes together, which base64 writes as 64.
const (
	idBytes  = 20
	idDigits = 8
)

// blockID names a block. All blocks of a blob have names of the same length.
func blockID(u bucket.Upload, n int) string {
	return base64.StdEncoding.EncodeToString(fmt.Appendf(nil, "%s%0*d", u.ID, idDigits, n))
}

// Begin implements bucket.Store. Nothing is sent: blocks come first, and an object's metadata
// go with their list.
func (s *store) Begin(_ context.Context, key string, m bucket.Making) (string, error) {
	if err := replaceable(m.If); err != nil {
		return "", err
	}
	random := make([]byte, idBytes)
	rand.Read(random)
	id := fmt.Sprintf("%x", random)
	s.uploads.Store(bucket.Upload{Key: key, ID: id}, s.now())
	return id, nil
}

// Part implements bucket.Store. For a block without an MD5 sent ahead the service returns
// another checksum.
func (s *store) Part(ctx context.Context, u bucket.Upload, n int, body *bucket.Outgoing) (bucket.Part, error) {
	if err := s.goesOn(u); err != nil {
		return bucket.Part{}, err
	}
	id := blockID(u, n)
	out, err := call(ctx, s, body.Again, func(who *session) (blockblob.StageBlockResponse, error) {
		block := sent(body)
		out, err := who.container.NewBlockBlobClient(u.Key).StageBlock(ctx, id, block, nil)
		if err == nil {
			err = block.check(out.ContentCRC64)
		}
		return out, err
	})
	if err != nil {
		return bucket.Part{}, err
	}
	part := bucket.Part{ETag: id}
	if len(out.ContentMD5) > 0 {
		part.MD5 = fmt.Sprintf("%x", out.ContentMD5)
	}
	return part, nil
}

// CopyPart implements bucket.Store.
func (s *store) CopyPart(ctx context.Context, u bucket.Upload, n int, from bucket.Object, offset, size int64) (bucket.Part, error) {
	if err := s.goesOn(u); err != nil {
		return bucket.Part{}, err
	}
	id := blockID(u, n)
	_, err := call(ctx, s, nil, func(who *session) (blockblob.StageBlockFromURLResponse, error) {
		source, err := who.source(from.Key, s.config.Bucket, s.now())
		if err != nil {
			return blockblob.StageBlockFromURLResponse{}, err
		}
		return who.container.NewBlockBlobClient(u.Key).StageBlockFromURL(ctx, id, source, &blockblob.StageBlockFromURLOptions{
			Range: blob.HTTPRange{Offset: offset, Count: size}, SourceModifiedAccessConditions: sourceMatch(from), CopySourceAuthorization: who.bearer(),
		})
	})
	return bucket.Part{ETag: id}, err
}

// Complete implements bucket.Store. A completed or aborted upload is gone, even if the service
// would accept its blocks again.
func (s *store) Complete(ctx context.Context, u bucket.Upload, parts []bucket.Part, m bucket.Making) (bucket.Object, error) {
	if err := s.goesOn(u); err != nil {
		return bucket.Object{}, err
	}
	ids := make([]string, len(parts))
	for i, part := range parts {
		ids[i] = part.ETag
	}
	out, err := bucket.Tagged(s.tags, m.Headers.Tags, nil, func(tags string) (blockblob.CommitBlockListResponse, error) {
		return call(ctx, s, nil, func(who *session) (blockblob.CommitBlockListResponse, error) {
			return who.container.NewBlockBlobClient(u.Key).CommitBlockList(ctx, ids, &blockblob.CommitBlockListOptions{
				Metadata: metadata(m), HTTPHeaders: headers(m.Headers), Tier: tier(m.Headers), Tags: bucket.ParseTags(tags), AccessConditions: match(m.If),
			})
		})
	})
	if err != nil {
		return bucket.Object{}, err
	}
	s.uploads.Delete(u)
	return made(out.ETag, out.LastModified, out.Date, nil), nil
}

// Abort implements bucket.Store. The service drops the blocks after a week, or when the
// blob is made anew.
func (s *store) Abort(_ context.Context, u bucket.Upload) error {
	s.uploads.Delete(u)
	return nil
}

// AbortBefore implements bucket.Store. The service does not report uploads of other processes.
func (s *store) AbortBefore(_ context.Context, prefix string, before time.Time) (count int, err error) {
	s.uploads.Range(func(u, began any) bool {
		if strings.HasPrefix(u.(bucket.Upload).Key, prefix) && began.(time.Time).Before(before) {
			s.uploads.Delete(u)
			count++
		}
		return true
	})
	return count, nil
}
