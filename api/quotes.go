package api

import (
	"encoding/json"

	"github.com/mediagate/mediagate"
)

// quote is the hold that a submit would make.
type quote struct {
	Cost        json.Number `json:"cost"`
	CreditsCost json.Number `json:"credits_cost"`
	Currency    string      `json:"currency"`
	Breakdown   []quoteLine `json:"breakdown"`
}

type quoteLine struct {
	Item      string      `json:"item"`
	Quantity  int64       `json:"quantity"`
	UnitPrice json.Number `json:"unit_price"`
	Amount    json.Number `json:"amount"`
}

// handleQuote prices a submit by the same steps that a submit takes, and changes nothing.
func (s *Server) handleQuote(c *call) error {
	raw, body, err := s.readBody(c, c.models.fieldMasks[quotePath])
	if err != nil {
		return err
	}
	endpoint, isText := body["endpoint"].(string)
	switch {
	case body["endpoint"] == nil, isText && endpoint == "":
		return mediagate.Invalid(
			"endpoint", "endpoint is required: the full path of the submit",
		).Because(mediagate.ReasonRequired)
	case !isText:
		return mediagate.Invalid("endpoint", "endpoint must be a string").Because(mediagate.ReasonWrongType)
	case !c.models.endpoints[endpoint]:
		return mediagate.Invalid(
			"endpoint", "unknown endpoint %s", mediagate.Quote(endpoint),
		).Because(mediagate.ReasonNotOneOf)
	}
	delete(body, "endpoint")
	size := len(raw) - len(`"endpoint":"",`) - len(endpoint) // the submit's size
	names, err := c.strictNames(raw, "endpoint")
	if err != nil {
		return err
	}
	v, err := s.validate(c, submitRequest{endpoint: endpoint, body: body, size: size, strict: names})
	if err != nil {
		return err
	}
	c.bodyPermit.Release()
	sum := v.hold()
	answer := quote{
		Cost: sum.Number(), CreditsCost: sum.Credits(s.cfg.CreditsPerUnit), Currency: s.cfg.Currency,
		Breakdown: make([]quoteLine, 0, len(v.Charges)),
	}
	for _, charge := range v.Charges {
		answer.Breakdown = append(answer.Breakdown, quoteLine{
			Item: charge.Item, Quantity: charge.Quantity,
			UnitPrice: charge.UnitPrice.Number(), Amount: charge.Amount().Number(),
		})
	}
	return c.ok(answer)
}
