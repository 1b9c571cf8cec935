package azure

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/sas"

	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/internal/bucket"
)

// secret authenticates requests: a key of the account, a signature, or a token. The zero secret
// is for anonymous requests.
type secret struct{ account, key, signature, token string }

// session is the client of the container with a secret. The SDK binds clients to credentials,
// so each secret has a session of its own.
type session struct {
	secret
	container *container.Client
	signer    *container.SharedKeyCredential // of the key, if it is one
}

func same(a, b *session) bool { return a == b || a != nil && b != nil && a.secret == b.secret }

// newLogin chooses the source of credentials.
func newLogin(c config, s providers.Settings, options azcore.ClientOptions) (*bucket.Login[*session], error) {
	var fetch func(context.Context) (secret, time.Time, error)
	switch {
	case c.Credentials == "none":
		fetch = func(context.Context) (secret, time.Time, error) { return secret{}, time.Time{}, nil }
	case c.Credentials == "sdk":
		machine, err := machineLogin()
		if err != nil {
			return nil, err
		}
		fetch = func(ctx context.Context) (secret, time.Time, error) { return tokenOf(ctx, machine, s.Minted) }
	case s.Credentials == nil:
		return nil, fmt.Errorf("no credentials given: %w", providers.ErrUnauthenticated)
	default:
		fetch = func(ctx context.Context) (secret, time.Time, error) { return named(ctx, c, s) }
	}
	return bucket.NewLogin(s.Now, same, func(ctx context.Context) (*session, time.Time, error) {
		found, ends, err := fetch(ctx)
		if err != nil {
			return nil, time.Time{}, err
		}
		made, err := newSession(c, found, options)
		return made, ends, err
	}), nil
}

// machineLogin is the login of this machine: a service principal named by its environment, a
// workload's identity, or its own. It asks services of the host's own, which the transport of
// the container's requests does not admit. The logins of people's tools are left out: each is
// another program to run.
func machineLogin() (azcore.TokenCredential, error) {
	var chain []azcore.TokenCredential
	if c, err := azidentity.NewEnvironmentCredential(nil); err == nil {
		chain = append(chain, c)
	}
	if c, err := azidentity.NewWorkloadIdentityCredential(nil); err == nil {
		chain = append(chain, c)
	}
	own := &azidentity.ManagedIdentityCredentialOptions{}
	own.Retry = policy.RetryOptions{MaxRetries: 1, TryTimeout: identityTime} // there may be no service to ask
	if c, err := azidentity.NewManagedIdentityCredential(own); err == nil {
		chain = append(chain, c)
	}
	return azidentity.NewChainedTokenCredential(chain, nil)
}

// identityTime bounds the wait for the machine's own identity.
const identityTime = 5 * time.Second

// tokenOf asks for a token for storage, and calls minted with it.
func tokenOf(ctx context.Context, from azcore.TokenCredential, minted func(string)) (secret, time.Time, error) {
	t, err := from.GetToken(ctx, policy.TokenRequestOptions{Scopes: []string{"https://storage.azure.com/.default"}})
	if err != nil {
		return secret{}, time.Time{}, &bucket.Fault{Kind: providers.ErrUnauthenticated, Err: fmt.Errorf("this machine's login: %w", err)}
	}
	if minted != nil {
		minted(t.Token)
	}
	return secret{token: t.Token}, t.ExpiresOn, nil
}

// named reads the named credentials.
func named(ctx context.Context, c config, s providers.Settings) (secret, time.Time, error) {
	fields, ends, err := bucket.Reveal(ctx, s)
	if err != nil {
		return secret{}, time.Time{}, err
	}
	found, err := secretOf(fields, c)
	if err != nil {
		return secret{}, time.Time{}, &bucket.Fault{Kind: providers.ErrUnauthenticated, Err: err}
	}
	if ends.IsZero() {
		ends = found.ends()
	}
	return found, ends, nil
}

// secretOf reads credentials: a connection string, a key, or a signature; the first one present
// counts.
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
	case found.token != "":
		o.PerRetryPolicies = []policy.Policy{bearer(found.token)}
		s.container, err = container.NewClientWithNoCredential(c.url(), o)
	case found.signature != "":
		s.container, err = container.NewClientWithNoCredential(c.url()+"?"+found.signature, o)
	default:
		s.container, err = container.NewClientWithNoCredential(c.url(), o)
	}
	return s, err
}

// bearer adds a token to each request. The SDK's own policy would send a request again by
// itself when the service refuses it.
type bearer string

// Do implements policy.Policy.
func (b bearer) Do(r *policy.Request) (*http.Response, error) {
	r.Raw().Header.Set("Authorization", "Bearer "+string(b))
	return r.Next()
}

// bearer is the token with which the service reads the source of a copy; nil: the URL suffices.
func (s *session) bearer() *string {
	if s.token == "" {
		return nil
	}
	return to.Ptr("Bearer " + s.token)
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

// once is a pipeline without retries: only the caller knows whether repeating is safe.
func once(transport policy.Transporter) azcore.ClientOptions {
	return azcore.ClientOptions{
		Transport: transport, Retry: policy.RetryOptions{MaxRetries: -1}, Telemetry: policy.TelemetryOptions{Disabled: true},
		PerCallPolicies: []policy.Policy{begins{}},
	}
}
