package azure

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/sas"

	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/internal/bucket"
)

// secret is what proves who asks: a key of the account, or a signature. The zero secret is
// of who asks without any.
type secret struct{ account, key, signature string }

// session is the container as who has a secret reaches it. The SDK binds clients to
// credentials, so each secret has a session of its own.
type session struct {
	secret
	container *container.Client
	signer    *container.SharedKeyCredential // of the key, if it is one
}

func same(a, b *session) bool { return a == b || a != nil && b != nil && a.secret == b.secret }

// newLogin chooses where credentials come from.
func newLogin(c config, s providers.Settings, options azcore.ClientOptions) (*bucket.Login[*session], error) {
	anonymous := c.Credentials == "none"
	if !anonymous && s.Credentials == nil {
		return nil, fmt.Errorf("no credentials given: %w", providers.ErrUnauthenticated)
	}
	return bucket.NewLogin(s.Now, same, func(ctx context.Context) (*session, time.Time, error) {
		if anonymous {
			made, err := newSession(c, secret{}, options)
			return made, time.Time{}, err
		}
		fields, ends, err := bucket.Reveal(ctx, s)
		if err != nil {
			return nil, time.Time{}, err
		}
		found, err := secretOf(fields, c)
		if err != nil {
			return nil, time.Time{}, &bucket.Fault{Kind: providers.ErrUnauthenticated, Err: err}
		}
		if ends.IsZero() {
			ends = found.ends()
		}
		made, err := newSession(c, found, options)
		return made, ends, err
	}), nil
}

// secretOf reads credentials: a connection string, a key, or a signature, of which the
// first that is there counts.
func secretOf(fields map[string]string, c config) (secret, error) {
	found := secret{account: fields["account_name"], key: fields["account_key"], signature: fields["sas_token"]}
	if text := fields["connection_string"]; text != "" {
		found = secret{}
		for part := range strings.SplitSeq(text, ";") {
			name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
			switch strings.ToLower(name) {
			case "accountname":
				found.account = value
			case "accountkey":
				found.key = value
			case "sharedaccesssignature":
				found.signature = value
			}
		}
	}
	found.signature = strings.TrimPrefix(found.signature, "?")
	if found.account == "" {
		found.account = c.account
	}
	if found.account == "" {
		found.account = c.accountOf()
	}
	switch {
	case found.key != "":
		found.signature = ""
	case found.signature == "":
		return secret{}, errors.New("the credentials have neither a connection_string nor an account_key nor a sas_token")
	}
	return found, nil
}

// ends is when a signature ends; zero: not known.
func (s secret) ends() time.Time {
	q, err := url.ParseQuery(s.signature)
	if err != nil {
		return time.Time{}
	}
	t, _ := time.Parse(time.RFC3339, q.Get("se"))
	return t
}

// newSession makes a client; nothing is sent.
func newSession(c config, found secret, options azcore.ClientOptions) (*session, error) {
	o := &container.ClientOptions{ClientOptions: options}
	s := &session{secret: found}
	var err error
	switch {
	case found.key != "":
		if s.signer, err = container.NewSharedKeyCredential(found.account, found.key); err != nil {
			return nil, &bucket.Fault{Kind: providers.ErrUnauthenticated, Err: errors.New("the account_key is not base64")}
		}
		s.container, err = container.NewClientWithSharedKeyCredential(c.url(), s.signer, o)
	case found.signature != "":
		s.container, err = container.NewClientWithNoCredential(c.url()+"?"+found.signature, o)
	default:
		s.container, err = container.NewClientWithNoCredential(c.url(), o)
	}
	return s, err
}

// readable is for how long the service may read the source of a copy.
const readable = time.Hour

// source is the URL by which the service itself reads a blob.
func (s *session) source(name, in string, now time.Time) (string, error) {
	plain := s.container.NewBlobClient(name).URL() // with the signature, if there is one
	if s.signer == nil {
		return plain, nil
	}
	signed, err := sas.BlobSignatureValues{
		Version: sas.Version, ContainerName: in, BlobName: name, ExpiryTime: now.Add(readable).UTC(),
		Permissions: (&sas.BlobPermissions{Read: true}).String(),
	}.SignWithSharedKey(s.signer)
	if err != nil {
		return "", err
	}
	return plain + "?" + signed.Encode(), nil
}

// once is a pipeline that repeats nothing: whoever calls knows what a repetition means.
func once(transport policy.Transporter) azcore.ClientOptions {
	return azcore.ClientOptions{
		Transport: transport, Retry: policy.RetryOptions{MaxRetries: -1}, Telemetry: policy.TelemetryOptions{Disabled: true},
	}
}
