package openai

import (
	"encoding/json"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/providers/vendorhttp"
)

// params are the fields that the operation takes from the canonical request. The vendor's names are
// the same.
type params struct {
	Input          string      `json:"input"`
	Voice          string      `json:"voice"`
	ResponseFormat string      `json:"response_format,omitempty"`
	Speed          json.Number `json:"speed,omitempty"`
	Instructions   string      `json:"instructions,omitempty"`
	StreamFormat   string      `json:"stream_format"`
}

// request is the vendor's request. The canonical request already has the defaults of the gateway,
// so the vendor's defaults never apply.
type request struct {
	Model string `json:"model"`
	params
}

func decode(job mediagate.Job) (*request, error) {
	if job.Operation != opSpeech {
		return nil, mediagate.Errorf(mediagate.KindNotFound, "operation %q is unknown here", job.Operation)
	}
	// StreamFormat asks for the sound itself instead of events about it.
	r := &request{Model: job.Upstream, params: params{StreamFormat: "audio"}}
	if err := vendorhttp.DecodeParams(job.Params, &r.params); err != nil {
		return nil, err
	}
	return r, nil
}
