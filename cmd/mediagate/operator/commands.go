package operator

import (
	"context"
	"errors"
	"net/http"
	"net/url"
)

func accountColumns() []string {
	return []string{"id", "name", "group", "available", "held", "spent"}
}

func accountsList(ctx context.Context, c *call) error {
	limit, after := c.flags.Int("limit", 100, ""), c.flags.String("after", "", "")
	if err := c.parse(); err != nil {
		return err
	}
	answer, err := c.client.do(ctx, http.MethodGet, "/accounts?"+page(*limit, *after), nil)
	if err != nil {
		return err
	}
	return c.show(answer, accountColumns()...)
}

func accountsCreate(ctx context.Context, c *call) error {
	name, body := c.flags.String("name", "", ""), c.settings("group", "rate", "in_flight", "erase_inputs")
	if err := errors.Join(c.parse(), required(map[string]*string{"name": name})); err != nil {
		return err
	}
	body["name"] = *name
	answer, err := c.client.do(ctx, http.MethodPost, "/accounts", body)
	if err != nil {
		return err
	}
	return c.show(answer, accountColumns()...)
}

func accountsGrant(ctx context.Context, c *call) error {
	account := c.flags.String("account", "", "")
	amount, reference := c.flags.String("amount", "", ""), c.flags.String("reference", "", "")
	err := errors.Join(c.parse(), required(map[string]*string{"account": account, "amount": amount, "reference": reference}))
	if err != nil {
		return err
	}
	answer, err := c.client.do(ctx, http.MethodPost, "/accounts/"+url.PathEscape(*account)+"/grants",
		map[string]any{"amount": *amount, "reference": *reference})
	if err != nil {
		return err
	}
	return c.show(answer, "id", "amount", "reference", "available")
}
