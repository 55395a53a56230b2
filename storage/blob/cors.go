package blob

import (
	"context"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// corsRule is the id of the CORS rule that this package makes.
const corsRule = "mediagate"

// AllowPages lets pages of any origin read objects by their links. Each link is a credential by
// itself, so a check of the origin would add no protection. It would even refuse pages that follow a
// redirect of the API, since the browser then sends "Origin: null". AllowPages changes nothing if
// the bucket has CORS rules of another author. Returns KindUnavailable, also for a service without
// CORS rules.
func (s *Store) AllowPages(ctx context.Context) error {
	has, err := s.client.GetBucketCors(ctx, &s3.GetBucketCorsInput{Bucket: &s.bucket})
	if err != nil && apiCode(err) != "NoSuchCORSConfiguration" {
		return storageError(ctx, "asking for the bucket's CORS rules", err)
	}
	var rules []types.CORSRule
	if err == nil {
		rules = has.CORSRules
	}
	origins := []string{"*"}
	if slices.ContainsFunc(rules, func(r types.CORSRule) bool {
		return aws.ToString(r.ID) != corsRule || slices.Equal(r.AllowedOrigins, origins)
	}) {
		return nil
	}
	_, err = s.client.PutBucketCors(ctx, &s3.PutBucketCorsInput{
		Bucket: &s.bucket, CORSConfiguration: &types.CORSConfiguration{CORSRules: []types.CORSRule{{
			ID:             aws.String(corsRule),
			AllowedOrigins: origins,
			AllowedMethods: []string{"GET", "HEAD"},
			AllowedHeaders: []string{"*"},
			ExposeHeaders:  []string{"Accept-Ranges", "Content-Disposition", "Content-Length", "Content-Range", "ETag"},
			MaxAgeSeconds:  aws.Int32(600),
		}}},
	}, withContentMD5)
	return storageError(ctx, "setting the bucket's CORS rule", err)
}

// withContentMD5 sends the required checksum of a call as Content-MD5, which all services know.
func withContentMD5(o *s3.Options) {
	o.APIOptions = append(o.APIOptions, func(stack *middleware.Stack) error {
		_, _ = stack.Initialize.Remove("AWSChecksum:SetupInputContext")
		_, _ = stack.Finalize.Remove("AWSChecksum:ComputeInputPayloadChecksum")
		return smithyhttp.AddContentChecksumMiddleware(stack)
	})
}
