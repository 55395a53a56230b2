package api

import (
	"encoding/base64"
	"net/url"
	"slices"
	"time"

	"github.com/mediagate/mediagate"
)

// The lists in the shapes of other services, for their clients.

// mostListed is the largest page of such a list.
const mostListed = 1000

// anthropicList is a page as clients of Anthropic read it.
type anthropicList struct {
	Data    []anthropicModel `json:"data"`
	FirstID *string          `json:"first_id"`
	LastID  *string          `json:"last_id"`
	HasMore bool             `json:"has_more"`
}

type anthropicModel struct {
	Type        string `json:"type"`
	ID          string `json:"id"`
	DisplayName string `json:"display_name"`
	CreatedAt   string `json:"created_at"`
}

func (s *Server) listForAnthropic(c *call, q url.Values) error {
	limit, err := intQuery(q, "limit", 1, mostListed, defaultLimit)
	if err != nil {
		return err
	}
	models, err := s.visible(c)
	if err != nil {
		return err
	}
	begin, end := 0, len(models)
	if begin, err = place(models, q, "after_id", begin-1); err != nil {
		return err
	}
	if end, err = place(models, q, "before_id", end); err != nil {
		return err
	}
	models = models[min(begin+1, end):end]
	more := len(models) > limit
	switch {
	case !more:
	case q.Get("before_id") != "" && q.Get("after_id") == "":
		models = models[len(models)-limit:] // those right before it
	default:
		models = models[:limit]
	}
	page := anthropicList{Data: make([]anthropicModel, 0, len(models)), HasMore: more}
	for _, one := range models {
		page.Data = append(page.Data, anthropicModel{
			Type: "model", ID: one.id, DisplayName: one.id, CreatedAt: time.Unix(one.created, 0).UTC().Format(time.RFC3339),
		})
	}
	if len(models) > 0 {
		page.FirstID, page.LastID = &models[0].id, &models[len(models)-1].id
	}
	return c.cacheable(page)
}

// place is where the model stands that a parameter names.
func place(models []listed, q url.Values, name string, absent int) (int, error) {
	id := q.Get(name)
	if id == "" {
		return absent, nil
	}
	i, ok := slices.BinarySearchFunc(models, listed{id: id}, byID)
	if !ok {
		return 0, mediagate.Invalid(name, "%s must be the id of a model in the list", name)
	}
	return i, nil
}

// geminiList is a page as clients of Gemini read it.
type geminiList struct {
	Models []geminiModel `json:"models"`
	Next   string        `json:"nextPageToken,omitempty"`
}

type geminiModel struct {
	Name        string   `json:"name"`
	DisplayName string   `json:"displayName"`
	Methods     []string `json:"supportedGenerationMethods"`
}

// defaultPageSize is how many models a page of Gemini's shape has.
const defaultPageSize = 50

func (s *Server) handleGeminiModels(c *call) error {
	q := c.query()
	size, err := intQuery(q, "pageSize", 1, mostListed, defaultPageSize)
	if err != nil {
		return err
	}
	models, err := s.visible(c)
	if err != nil {
		return err
	}
	if token := q.Get("pageToken"); token != "" {
		last, err := base64.RawURLEncoding.DecodeString(token)
		if err != nil {
			return mediagate.Invalid("pageToken", "pageToken must be the nextPageToken of a page before")
		}
		// The model itself may be gone since.
		begin, there := slices.BinarySearchFunc(models, listed{id: string(last)}, byID)
		if there {
			begin++
		}
		models = models[begin:]
	}
	page := geminiList{Models: make([]geminiModel, 0, min(size, len(models)))}
	if len(models) > size {
		models = models[:size]
		page.Next = base64.RawURLEncoding.EncodeToString([]byte(models[size-1].id))
	}
	for _, one := range models {
		item := geminiModel{Name: "models/" + one.id, DisplayName: one.id, Methods: []string{}}
		if one.operation != "" {
			item.Methods = append(item.Methods, one.operation)
		}
		page.Models = append(page.Models, item)
	}
	return c.cacheable(page)
}

// foreignKeys are the keys where clients of Anthropic and Gemini put them.
func (c *call) foreignKeys() []string {
	header := c.Request().Header
	keys := slices.Concat(header.Values("X-Api-Key"), header.Values("X-Goog-Api-Key"), c.query()["key"])
	return slices.DeleteFunc(keys, func(key string) bool { return key == "" })
}
