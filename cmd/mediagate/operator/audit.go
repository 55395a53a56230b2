package operator

import "context"

func auditList(ctx context.Context, c *call) error {
	answer, err := c.list(ctx, "/audit", "account", "by", "action", "object", "from", "to")
	return orShow(c, answer, err, "at", "by", "action", "object", "address")
}
