package client

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"mime/multipart"
	"net/http"
	"net/url"
)

// Model is a model that the key may use.
type Model struct {
	ID       string   `json:"id"`
	Category string   `json:"category"` // video, image or audio
	Tags     []string `json:"capability_tags"`

	Ends        string `json:"ends"`        // last day on which its vendor serves it, such as 2027-03-31; empty: unknown
	Replacement string `json:"replacement"` // another model to use instead; empty: none
}

// Models returns the models of a category, or all models if category is empty.
func (c *Client) Models(ctx context.Context, category string) ([]Model, error) {
	query := url.Values{"expand": {"category"}}
	if category != "" {
		query.Set("category", category)
	}
	text, err := c.get(ctx, "/v1/models?"+query.Encode())
	if err != nil {
		return nil, err
	}
	var list struct{ Data []Model }
	err = json.Unmarshal(text, &list)
	return list.Data, err
}

// Schema returns the contract of a model: the endpoint for its requests, the fields that they
// may have (input_schema, a JSON Schema) and the prices. Music and speech have no contract. The
// error then has status 404.
func (c *Client) Schema(ctx context.Context, model string) (json.RawMessage, error) {
	return c.get(ctx, "/v1/model-schema?"+url.Values{"model": {model}}.Encode())
}

// Quote is the price of a request.
type Quote struct {
	Cost        json.Number `json:"cost"` // in the currency, at most six decimals
	CreditsCost json.Number `json:"credits_cost"`
	Currency    string      `json:"currency"`

	Raw json.RawMessage `json:"-"` // the whole answer, with the calculation
}

// Quote returns the amount that is held for the request when it is submitted. The request cannot
// cost more. Quote makes no task and charges nothing.
func (c *Client) Quote(ctx context.Context, r Request) (Quote, error) {
	endpoint, err := c.endpoint(ctx, r)
	if err != nil {
		return Quote{}, err
	}
	body := r.body()
	body["endpoint"] = endpoint
	text, err := c.post(ctx, "/v1/quote", body, nil)
	if err != nil {
		return Quote{}, err
	}
	q := Quote{Raw: text}
	err = json.Unmarshal(text, &q)
	return q, err
}

// The kinds of uploads.
const (
	Images = "images" // JPEG, PNG, WebP or GIF of at most 20 MiB
	Videos = "videos" // MP4, MOV or WebM of at most 100 MiB
	Audios = "audios" // MP3, WAV, M4A, OGG, FLAC or AAC of at most 20 MiB
)

// Upload stores a file for 72 hours and returns an address that requests may name. The kind is
// Images, Videos or Audios.
func (c *Client) Upload(ctx context.Context, kind, name string, file io.Reader) (address string, err error) {
	var form bytes.Buffer
	w := multipart.NewWriter(&form)
	part, err := w.CreateFormFile("file", name)
	if err == nil {
		_, err = io.Copy(part, file)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		return "", err
	}
	text, err := c.once(ctx, request{
		method: http.MethodPost, path: "/v1/uploads/" + kind, body: form.Bytes(),
		header: http.Header{"Content-Type": {w.FormDataContentType()}},
	})
	if err != nil {
		return "", err
	}
	var uploaded struct{ URL string }
	err = json.Unmarshal(text, &uploaded)
	return uploaded.URL, err
}
