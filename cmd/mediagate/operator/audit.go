package operator

import (
	"context"
	"net/http"
)

func auditList(ctx context.Context, c *call) error {
	given := map[string]*string{}
	for _, name := range []string{"account", "by", "action", "object", "from", "to"} {
		given[name] = c.flags.String(name, "", "")
	}
	limit, after := c.flags.Int("limit", 100, ""), c.flags.String("after", "", "")
	if err := c.parse(); err != nil {
		return err
	}
	answer, err := c.client.do(ctx, http.MethodGet, "/audit?"+page(*limit, *after)+filters(given), nil)
	if err != nil {
		return err
	}
	return c.show(answer, "at", "by", "action", "object", "address")
}
