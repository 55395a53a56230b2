package operator

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
)

func channelColumns() []string {
	return []string{
		"name", "provider", "state", "reason", "since", "next_probe_at", "in_flight", "waiting", "oldest", "polling",
		"error_rate", "last_error", "retired",
	}
}

func channelsList(ctx context.Context, c *call) error {
	answer, err := c.list(ctx, "/channels")
	return orShow(c, answer, err, channelColumns()...)
}

func channelsEnable(ctx context.Context, c *call) error { return changeChannel(ctx, c, true) }

func channelsDisable(ctx context.Context, c *call) error { return changeChannel(ctx, c, false) }

func changeChannel(ctx context.Context, c *call, enabled bool) error {
	name, reason := c.flags.String("channel", "", ""), c.flags.String("reason", "", "")
	if len(c.args) > 0 && !strings.HasPrefix(c.args[0], "-") {
		c.args = append([]string{"-channel", c.args[0]}, c.args[1:]...)
	}
	if err := errors.Join(c.parse(), required(map[string]*string{"channel": name})); err != nil {
		return err
	}
	body := withReason(map[string]any{"enabled": enabled}, *reason)
	answer, err := c.client.do(ctx, http.MethodPatch, "/channels/"+url.PathEscape(*name), body)
	return orShow(c, answer, err, channelColumns()...)
}
