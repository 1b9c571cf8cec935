package s3

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/testrun"
	"github.com/wsmount/wsmount/providers"
)

// issuer gives out credentials with a number, which lives for a minute, and is
// the service that takes the newest alone.
type issuer struct {
	fake  *fake
	now   time.Time
	issue int // of the newest
	asked int
	long  bool // does not say when they end
	kept  bool // gives out what it gave out last, whatever the service takes

	given string
}

func (i *issuer) reveal(context.Context) (map[string]string, error) {
	i.asked++
	if !i.kept {
		i.given = fmt.Sprintf("key-%d", i.issue)
	}
	fields := map[string]string{"access_key_id": i.given, "secret_access_key": "x"}
	if !i.long {
		fields["expiration"] = i.now.Add(time.Minute).Format(time.RFC3339)
	}
	return fields, nil
}

func (i *issuer) RoundTrip(r *http.Request) (*http.Response, error) {
	if !strings.Contains(r.Header.Get("Authorization"), fmt.Sprintf("Credential=key-%d/", i.issue)) {
		if r.Body != nil {
			r.Body.Close()
		}
		if r.Method == http.MethodHead { // AWS can say no more than this
			return refuse(r, 400, ""), nil
		}
		return refuse(r, 400, "ExpiredToken"), nil
	}
	return i.fake.RoundTrip(r)
}

func (i *issuer) open(t *testing.T, readOnly bool) *Provider {
	t.Helper()
	p, err := Drivers()[1].Open(t.Context(), providers.Settings{
		Config: map[string]string{"bucket": "b", "endpoint": "http://fake.invalid"}, Credentials: i.reveal,
		Transport: i, Now: func() time.Time { return i.now }, ReadOnly: readOnly,
	})
	assert.OK(t, err)
	t.Cleanup(func() { p.Close() })
	return p.(*Provider)
}

// Of one-minute credentials, a quarter is left when they are asked for again, so that no request
// meets their end.
func TestCredentialsAreRenewedAhead(t *testing.T) {
	i := &issuer{fake: newFake(), now: time.Unix(1_700_000_000, 0)}
	i.fake.put("a", "x", nil)
	p := i.open(t, true)
	for range 10 {
		i.now = i.now.Add(44 * time.Second)
		assert.OK(t, assert.ErrOf(p.Stat(t.Context(), providers.MustLocator("a"))))
		i.now = i.now.Add(2 * time.Second)
		i.issue++ // the service forgets the old ones: only who asks now goes on
		assert.OK(t, assert.ErrOf(p.Stat(t.Context(), providers.MustLocator("a"))))
	}
	assert.Equal(t, i.asked, 11, "asked ... times")
	assert.Equal(t, p.Requests()["HeadObject"].Requests, 20, "HEADs, want 20: none is refused")
}

// Once for each refusal, and only when there are others.
func TestRefusedCredentialsAreRenewed(t *testing.T) {
	i := &issuer{fake: newFake(), now: time.Unix(1_700_000_000, 0), long: true}
	i.fake.put("a", "x", nil)
	p := i.open(t, false)
	i.issue++
	assert.Is(t, assert.ErrOf(p.Stat(t.Context(), providers.MustLocator("a"))), nil, "stat")
	i.issue++
	_, err := p.Write(t.Context(), providers.MustLocator("b"), providers.String("content"), providers.WriteOptions{If: providers.Unconditional()})
	assert.True(t, err == nil && string(i.fake.objects["b"].content) == "content", "write", err)
	i.kept = true
	i.issue++
	before := p.Requests()["ListObjectsV2"].Requests
	assert.Is(t, assert.ErrOf(p.List(t.Context(), providers.Locator{}, providers.ListOptions{})), providers.ErrUnauthenticated, "list without new credentials")
	assert.Equal(t, p.Requests()["ListObjectsV2"].Requests-before, 1, "LISTs")
}

// Not in errors, whatever goes wrong.
func TestSecretsDoNotShow(t *testing.T) {
	secret := secrets{"access_key_id": "AKIASHOWN", "secret_access_key": "s3cr3t", "expiration": "s3cr3t"}
	_, err := Drivers()[1].Open(t.Context(), providers.Settings{Config: map[string]string{"bucket": "b"}, Credentials: secret.reveal, Transport: newFake()})
	assert.True(t, errors.Is(err, providers.ErrUnauthenticated) && !strings.Contains(err.Error(), "s3cr3t"), "open:", err)
}

// Each way signs with its own, and with none nothing is signed.
func TestWhereCredentialsComeFrom(t *testing.T) {
	testrun.WithoutEnv(t, "AWS_")
	for name, value := range map[string]string{
		"AWS_ACCESS_KEY_ID": "key-of-the-environment", "AWS_SECRET_ACCESS_KEY": "x",
		"AWS_CONFIG_FILE": "/dev/null", "AWS_SHARED_CREDENTIALS_FILE": "/dev/null", "AWS_ENDPOINT_URL_S3": "http://elsewhere.invalid",
	} {
		t.Setenv(name, value)
	}
	for way, want := range map[string]string{"": "key-of-a-secret", "sdk": "key-of-the-environment", "none": ""} {
		var got []string
		f := newFake()
		_, err := Drivers()[0].Open(t.Context(), providers.Settings{
			Config:      map[string]string{"bucket": "b", "endpoint": "http://fake.invalid", "credentials": way},
			Credentials: secrets{"access_key_id": "key-of-a-secret", "secret_access_key": "x"}.reveal,
			ReadOnly:    true,
			Transport: answering(func(r *http.Request) (*http.Response, error) {
				got = append(got, r.URL.Host, r.Header.Get("Authorization"))
				return f.RoundTrip(r)
			}),
		})
		if err != nil || len(got) != 2 || got[0] != "fake.invalid" {
			t.Errorf("%q: %q, %v", way, got, err)
			continue
		}
		if signed := got[1] != ""; signed != (want != "") || !strings.Contains(got[1], want) {
			t.Errorf("%q signs %q, want %q", way, got[1], want)
		}
	}
}

// What is signed with a new secret is signed with no key that was made of an old one, though the
// id is the same.
func TestAnIDGetsAnotherSecret(t *testing.T) {
	at := time.Unix(1_700_000_000, 0)
	signed := func(s *signer, secret string) string {
		r := assert.Of(http.NewRequestWithContext(t.Context(), http.MethodGet, "http://fake.invalid/b/a%20b", nil)).OK(t)
		c := aws.Credentials{AccessKeyID: "id", SecretAccessKey: secret}
		assert.OK(t, s.SignHTTP(t.Context(), c, r, "UNSIGNED-PAYLOAD", "s3", "us-east-1", at))
		return r.Header.Get("Authorization")
	}
	s := &signer{}
	old := signed(s, "old")
	got, want := signed(s, "new"), signed(&signer{}, "new")
	assert.True(t, got == want && got != old, got, want)
}

// Not with each request that the service refuses.
func TestRefusedCredentialsAreAskedForNowAndThen(t *testing.T) {
	i := &issuer{fake: newFake(), now: time.Unix(1_700_000_000, 0), long: true}
	i.fake.put("a", "x", nil)
	p := i.open(t, true)
	i.issue++
	i.kept = true
	i.asked = 0
	for range 10 {
		i.now = i.now.Add(time.Second / 5)
		assert.Is(t, assert.ErrOf(p.List(t.Context(), providers.Locator{}, providers.ListOptions{})), providers.ErrUnauthenticated)
	}
	assert.Equal(t, i.asked, 2, "asked ... times")
}
