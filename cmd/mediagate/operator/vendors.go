package operator

import "context"

func vendorsList(ctx context.Context, c *call) error {
	answer, err := c.list(ctx, "/vendors")
	return orShow(c, answer, err, "name", "source", "operations", "credentials", "options")
}
