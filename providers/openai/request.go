package openai

import (
	"encoding/json"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/providers/vendorhttp"
)

// params are the gateway's fields that the operation takes, which have the
// vendor's names.
type params struct {
	Input          string      `json:"input"`
	Voice          string      `json:"voice"`
	ResponseFormat string      `json:"response_format,omitempty"`
	Speed          json.Number `json:"speed,omitempty"`
	Instructions   string      `json:"instructions,omitempty"`
	StreamFormat   string      `json:"stream_format"`
}

// request is the vendor's. Its defaults never decide: what the client left open
// stands in the canonical request.
type request struct {
	Model string `json:"model"`
	params
}

func decode(job mediagate.Job) (*request, error) {
	if job.Operation != opSpeech {
		return nil, mediagate.Errorf(mediagate.KindNotFound, "operation %q is unknown here", job.Operation)
	}
	r := &request{Model: job.Upstream, params: params{StreamFormat: "audio"}} // the sound itself, and no events about it
	if err := vendorhttp.DecodeParams(job.Params, &r.params); err != nil {
		return nil, err
	}
	return r, nil
}
