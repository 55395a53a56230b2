package operator

import (
	"context"
	"net/http"
)

func vendorsList(ctx context.Context, c *call) error {
	limit, after := c.flags.Int("limit", 100, ""), c.flags.String("after", "", "")
	if err := c.parse(); err != nil {
		return err
	}
	answer, err := c.client.do(ctx, http.MethodGet, "/vendors?"+page(*limit, *after), nil)
	if err != nil {
		return err
	}
	return c.show(answer, "name", "source", "operations", "credentials", "options")
}
