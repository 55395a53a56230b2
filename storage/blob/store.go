package blob

import (
	"bytes"
	"cmp"
	"context"
	"math"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/feature/s3/transfermanager"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"golang.org/x/net/idna"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/internal/limit"
)

// Config says which bucket is used.
type Config struct {
	Endpoint        string // empty: the public one of AWS for the region
	PublicEndpoint  string // where clients reach the store; links point there. Empty: Endpoint
	Region          string // empty: us-east-1
	Bucket          string
	AccessKeyID     string // with SecretAccessKey; both empty: the SDK's own chain
	SecretAccessKey string
	PathStyle       bool // the bucket is part of the path, not of the host

	// Memory bounds the bytes that all copies hold at once, shared by Limits.Owner. Its capacity
	// is at least MinMemory. nil: DefaultMemory.
	Memory *limit.Limit
	// ClientMemory bounds the bytes that clients' files hold at once. Half of it is for media
	// within requests. Callers of PutFile bound the other half themselves. 0: DefaultClientMemory.
	ClientMemory int64

	Now func() time.Time // nil: time.Now
}

// The bounds of one upload. S3 accepts no part below 5 MiB, except the last one, and at most
// maxParts parts.
const (
	partSize    = 5 << 20
	uploadWidth = 3
	clientWidth = 1 // one part is enough, since clients are slower than the store
	maxParts    = 10_000
)

// A call stops early; the caller waits for the end of a long outage.
const (
	maxCallTries    = 3
	maxCallBackoff  = 500 * time.Millisecond
	dialTimeout     = 5 * time.Second
	headerTimeout   = 60 * time.Second // long enough for the store to join the parts of a large file
	cleanupTimeout  = 10 * time.Second // for an abort after the caller's context has ended
	idleConnections = 32
)

// Store is one bucket. It is safe for concurrent use.
type Store struct {
	bucket  string
	region  string
	links   *url.URL // the bucket as clients reach it; objects are below it
	client  *s3.Client
	uploads *transfermanager.Client
	memory  budget // of copies
	clients budget // of uploads; it bounds nothing, see PutFile
	inline  budget // of media within requests, which were received as a whole
	creds   aws.CredentialsProvider
	signer  *v4.Signer
	now     func() time.Time
	http    *http.Transport
}

// Open prepares a store. With static keys it makes no network call; without keys the SDK's
// chain reads its environment and files. Returns KindInvalid for a configuration that cannot
// work.
func Open(ctx context.Context, c Config) (*Store, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	if c.Region == "" {
		c.Region = "us-east-1"
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	creds, err := c.credentials(ctx)
	if err != nil {
		return nil, err
	}
	links, err := c.base(ctx, cmp.Or(c.PublicEndpoint, c.Endpoint))
	if err != nil {
		return nil, err
	}

	transport := awshttp.NewBuildableClient().
		WithDialerOptions(func(d *net.Dialer) { d.Timeout = dialTimeout }).
		WithTransportOptions(func(t *http.Transport) {
			t.ResponseHeaderTimeout = headerTimeout
			t.MaxIdleConnsPerHost = idleConnections
			t.WriteBufferSize = 64 << 10
		}).
		GetTransport()
	options := s3.Options{
		Region:       c.Region,
		Credentials:  creds,
		UsePathStyle: c.PathStyle,
		HTTPClient:   &http.Client{Transport: transport, CheckRedirect: noRedirect},
		Retryer: retry.NewStandard(func(o *retry.StandardOptions) {
			o.MaxAttempts = maxCallTries
			o.MaxBackoff = maxCallBackoff
		}),
		// Many S3 services refuse Amazon's checksums. TLS protects a body on its way, and without
		// TLS the hash in the signature does. Each result also keeps its hash.
		RequestChecksumCalculation: aws.RequestChecksumCalculationWhenRequired,
		ResponseChecksumValidation: aws.ResponseChecksumValidationWhenRequired,
	}
	if c.Endpoint != "" {
		options.BaseEndpoint = aws.String(c.Endpoint)
	}
	if c.Memory == nil {
		c.Memory = limit.New("copy_memory", DefaultMemory)
	}
	clientMemory := cmp.Or(c.ClientMemory, DefaultClientMemory)
	return &Store{
		bucket: c.Bucket, region: c.Region, links: links,
		client: s3.New(options),
		uploads: transfermanager.New(persistent{s3.New(options)}, func(o *transfermanager.Options) {
			o.RequestChecksumCalculation = options.RequestChecksumCalculation // overrides the client's setting
			o.PartSizeBytes = partSize
			o.MultipartUploadThreshold = partSize
			o.MaxUploadParts = maxParts
			o.FailTimeout = cleanupTimeout
		}),
		memory:  newBudget(c.Memory, uploadWidth),
		clients: newBudget(limit.New("client_memory", math.MaxInt64), clientWidth),
		inline:  newBudget(limit.New("inline_memory", max(MinMemory, clientMemory/2)), clientWidth),
		creds:   creds,
		signer:  v4.NewSigner(func(o *v4.SignerOptions) { o.DisableURIPathEscaping = true }),
		now:     c.Now,
		http:    transport,
	}, nil
}

// validate checks the configuration and rewrites the endpoints in their canonical form.
func (c *Config) validate() error {
	switch {
	case c.Bucket == "":
		return mediagate.Invalid("bucket", "is required")
	case (c.AccessKeyID == "") != (c.SecretAccessKey == ""):
		return mediagate.Invalid("access_key_id", "and secret_access_key are given together or not at all")
	case c.Memory != nil && c.Memory.Figures().Capacity < MinMemory:
		return mediagate.Invalid("memory", "is less than a single upload needs")
	case c.ClientMemory != 0 && c.ClientMemory < MinMemory:
		return mediagate.Invalid("client_memory", "is less than a single upload needs")
	}
	var ok bool
	if c.Endpoint, ok = canonical(c.Endpoint); !ok {
		return mediagate.Invalid("endpoint", "must be an http or https address without query, fragment or user")
	}
	if c.PublicEndpoint, ok = canonical(c.PublicEndpoint); !ok {
		return mediagate.Invalid("public_endpoint", "must be an http or https address without query, fragment or user")
	}
	return nil
}

// canonical writes an endpoint as a browser does, since a link's signature covers its host: in
// lower case and in ASCII, without the scheme's default port. It returns false for an address
// that is no endpoint.
func canonical(s string) (string, bool) {
	if s == "" {
		return "", true
	}
	u, err := url.Parse(s)
	switch {
	case err != nil, u.Scheme != "http" && u.Scheme != "https", u.Hostname() == "":
		return "", false
	case strings.ContainsAny(s, "?#"), u.User != nil:
		return "", false
	}
	if u.Host, err = idna.Punycode.ToASCII(strings.ToLower(u.Host)); err != nil {
		return "", false
	}
	u.Host = strings.TrimSuffix(u.Host, ":")
	if own := map[string]string{"http": ":80", "https": ":443"}[u.Scheme]; strings.HasSuffix(u.Host, own) {
		u.Host = strings.TrimSuffix(u.Host, own)
	}
	return strings.TrimSuffix(u.String(), "/"), true
}

func (c *Config) credentials(ctx context.Context) (aws.CredentialsProvider, error) {
	if c.AccessKeyID != "" {
		return credentials.NewStaticCredentialsProvider(c.AccessKeyID, c.SecretAccessKey, ""), nil
	}
	chain, err := config.LoadDefaultConfig(ctx, config.WithRegion(c.Region))
	if err != nil {
		return nil, &mediagate.Error{
			Kind: mediagate.KindInvalid, Param: "access_key_id",
			Message: "is not given, and the environment's credentials cannot be read", Err: err,
		}
	}
	return chain.Credentials, nil
}

// base returns the URL of the bucket at an endpoint. The bucket's objects are below it.
func (c *Config) base(ctx context.Context, at string) (*url.URL, error) {
	params := s3.EndpointParameters{
		Bucket: aws.String(c.Bucket), Region: aws.String(c.Region), ForcePathStyle: aws.Bool(c.PathStyle),
	}
	if at != "" {
		params.Endpoint = aws.String(at)
	}
	endpoint, err := s3.NewDefaultEndpointResolverV2().ResolveEndpoint(ctx, params)
	if err != nil {
		return nil, &mediagate.Error{
			Kind: mediagate.KindInvalid, Param: "bucket",
			Message: "has no address with this endpoint and region", Err: err,
		}
	}
	return &endpoint.URI, nil
}

func once(o *s3.Options) { o.Retryer = aws.NopRetryer{} }

// noRedirect keeps signed requests from being redirected to another host.
func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// Close closes idle connections.
func (s *Store) Close() { s.http.CloseIdleConnections() }

// Ping checks whether the bucket answers, in a single try. Returns KindUnavailable.
func (s *Store) Ping(ctx context.Context) error {
	_, err := s.client.HeadBucket(ctx, &s3.HeadBucketInput{Bucket: &s.bucket}, once)
	return storageError(ctx, "asking for the bucket", err)
}

// probeKey is the key that Probe writes. It is in the folder of results, for which we need the
// right to write.
const probeKey = "results/probe"

// probeSize is more than a full store is likely to have free.
const probeSize = 64 << 10

// Probe checks whether the bucket accepts a file now, as Mirror writes it: Probe begins an upload,
// sends a part, and aborts the upload. A bucket that is full or read-only would still answer
// Ping. Probe does not try twice. Returns KindUnavailable.
func (s *Store) Probe(ctx context.Context) error {
	key := probeKey
	begun, err := s.client.CreateMultipartUpload(ctx, &s3.CreateMultipartUploadInput{
		Bucket:             &s.bucket,
		Key:                &key,
		ContentType:        aws.String("application/octet-stream"),
		ContentDisposition: aws.String(`inline; filename="probe"`),
	}, once)
	if err != nil {
		return storageError(ctx, "beginning an upload", err)
	}
	_, err = s.client.UploadPart(ctx, &s3.UploadPartInput{
		Bucket:     &s.bucket,
		Key:        &key,
		UploadId:   begun.UploadId,
		PartNumber: aws.Int32(1),
		Body:       bytes.NewReader(make([]byte, probeSize)),
	}, once)
	// If ctx ends before the abort, AbortStale removes the upload later.
	_, aborted := s.client.AbortMultipartUpload(ctx, &s3.AbortMultipartUploadInput{
		Bucket:   &s.bucket,
		Key:      &key,
		UploadId: begun.UploadId,
	}, once)
	if err == nil {
		err = aborted
	}
	return storageError(ctx, "writing to the bucket", err)
}

// EnsureBucket makes the bucket if it does not exist. Returns KindUnavailable.
func (s *Store) EnsureBucket(ctx context.Context) error {
	_, err := s.client.HeadBucket(ctx, &s3.HeadBucketInput{Bucket: &s.bucket})
	if err == nil || !isNoBucket(err) {
		return storageError(ctx, "asking for the bucket", err)
	}
	input := &s3.CreateBucketInput{Bucket: &s.bucket}
	if s.region != "us-east-1" { // S3 refuses this region as a constraint
		input.CreateBucketConfiguration = &types.CreateBucketConfiguration{
			LocationConstraint: types.BucketLocationConstraint(s.region),
		}
	}
	if _, err = s.client.CreateBucket(ctx, input); isOwnBucket(err) {
		return nil // another process was faster
	}
	return storageError(ctx, "making the bucket", err)
}
