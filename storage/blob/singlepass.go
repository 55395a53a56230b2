package blob

import (
	"context"
	"net/url"

	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go/middleware"
)

// singlePass spares uploads over plain HTTP the SHA-256 by which the SDK would
// sign each part there. The part's CRC32, which the server checks, guards the
// data on its way as it does over TLS; against somebody on the wire plain HTTP
// has no defence anyway.
func singlePass(base *url.URL) func(*s3.Options) {
	return func(o *s3.Options) {
		if base.Scheme != "http" {
			return
		}
		o.APIOptions = append(o.APIOptions, func(stack *middleware.Stack) error {
			return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("UnsignedData", unsignedData), middleware.After)
		})
	}
}

func unsignedData(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (middleware.InitializeOutput, middleware.Metadata, error) {
	switch awsmiddleware.GetOperationName(ctx) {
	case "PutObject", "UploadPart":
		ctx = v4.SetPayloadHash(ctx, unsignedPayload)
	}
	return next.HandleInitialize(ctx, in)
}
