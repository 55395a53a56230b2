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

// corsRule names the rule that is ours to change.
const corsRule = "mediagate"

// AllowPages lets pages of any origin read objects by their links, which are keys by
// themselves. A narrower rule would refuse pages that follow a redirect of the API: the
// browser sends "Origin: null" then. Where the bucket has CORS rules that somebody else
// made it changes nothing. It returns KindUnavailable, also for a service that knows no
// such rules.
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
			ID: aws.String(corsRule), AllowedOrigins: origins, AllowedMethods: []string{"GET", "HEAD"}, AllowedHeaders: []string{"*"},
			ExposeHeaders: []string{"Accept-Ranges", "Content-Disposition", "Content-Length", "Content-Range", "ETag"},
			MaxAgeSeconds: aws.Int32(600),
		}}},
	}, withContentMD5)
	return storageError(ctx, "setting the bucket's CORS rule", err)
}

// withContentMD5 sends the checksum that this call must have as all services know it.
func withContentMD5(o *s3.Options) {
	o.APIOptions = append(o.APIOptions, func(stack *middleware.Stack) error {
		_, _ = stack.Initialize.Remove("AWSChecksum:SetupInputContext")
		_, _ = stack.Finalize.Remove("AWSChecksum:ComputeInputPayloadChecksum")
		return smithyhttp.AddContentChecksumMiddleware(stack)
	})
}
