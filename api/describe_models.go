package api

import (
	"encoding/json"
	"net/http"
)

// What the answers of the model endpoints look like.

// cachedHeaders are those of answers that clients may keep.
var cachedHeaders = []string{"Cache-Control", "ETag", "Vary"}

// notModified is the answer to whoever has it already.
var notModified = answer{status: http.StatusNotModified, about: "It is what the client has.", headers: cachedHeaders}

var (
	contractEndpoint = textParameter("endpoint", "Of a model that is submitted at several paths: which of them. The first without it.")
	geminiPage       = []parameter{
		intParameter("pageSize", "How many at most.", 1, mostListed, defaultPageSize),
		textParameter("pageToken", "nextPageToken of the page before."),
	}
)

func exampleParameters() parameters {
	return parameters{
		Operation: "video_generation", Method: http.MethodPost, Endpoint: "/v1/videos/generations",
		SchemaVersion: "2026-01-01", Source: sourceCatalog,
		InputSchema: json.RawMessage(`{"type":"object","properties":{"model":{"const":"alpha-v3"},"prompt":{"type":"string"}},"required":["model","prompt"]}`),
	}
}

func exampleModel() modelItem {
	p := exampleParameters()
	return modelItem{
		ID: "alpha-v3", Object: "model", Created: 1767225600, OwnedBy: ownedBy, EndpointTypes: []string{"openai"},
		Category: "video", Tags: []string{"Text to Video", "Image to Video"}, Parameters: &p,
	}
}

func exampleGemini() []answer {
	return []answer{{status: http.StatusOK, about: "A page in Gemini's shape.", headers: cachedHeaders, body: geminiList{
		Models: []geminiModel{{"models/alpha-v3", "alpha-v3", []string{"video_generation"}}},
	}}, notModified}
}

func exampleContract() []answer {
	return []answer{{status: http.StatusOK, about: "The contract.", headers: cachedHeaders, body: contract{
		ID: "alpha-v3", Category: "video", Tags: []string{"Text to Video", "Image to Video"}, parameters: exampleParameters(),
		Idempotency: idempotency(), Response: responseRules{
			Mode: "async", Ack: ackRules{http.StatusOK, "/data/0/task_id"},
			Poll:          pollRules{http.MethodGet, "/v1/tasks/{task_id}", 6, []string{"completed", "failed", "cancelled"}},
			ResultPointer: "/data/result/videos", MediaTypes: mediaTypes["video"], Webhook: webhookRules{"webhook", "/callback"},
		},
		Pricing: pricing{
			Currency: "USD", CreditsPerUnit: 1000, Unit: "second", Quantity: []string{"duration"},
			Rows: []pricingRow{{"alpha-v3 std", map[string]any{"mode": "std", "audio": false}, "0.084"}},
		},
	}}, notModified}
}

// ifNoneMatch is the header by which a client says what it has already.
var ifNoneMatch = textParameter("If-None-Match", "The ETag of the answer that the client has.")
