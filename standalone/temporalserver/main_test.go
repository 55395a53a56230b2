package temporalserver_test

import (
	"log/slog"
	"time"

	sdklog "go.temporal.io/sdk/log"
	"google.golang.org/protobuf/types/known/durationpb"
)

var (
	discard     = sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler))
	durationDay = durationpb.New(24 * time.Hour)
)
