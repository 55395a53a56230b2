package operator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"text/tabwriter"
)

func accountColumns() []string {
	return []string{"id", "name", "group", "available", "held", "spent"}
}

func accountsList(ctx context.Context, c *call) error {
	answer, err := c.list(ctx, "/accounts", "q")
	return orShow(c, answer, err, accountColumns()...)
}

// accountsShow prints an account with its limits and its unpaid jobs.
func accountsShow(ctx context.Context, c *call) error {
	id := c.target()
	if err := c.parse(); err != nil {
		return err
	}
	if id == "" {
		return errUsage{"name an account"}
	}
	answer, err := c.client.do(ctx, http.MethodGet, "/accounts/"+url.PathEscape(id), nil)
	if err != nil || c.format == "json" {
		return orShow(c, answer, err)
	}
	var account map[string]any
	if err := json.Unmarshal(answer, &account); err != nil {
		return fmt.Errorf("the answer is not readable: %w", err)
	}
	if jobs, ok := account["abandoned"].(map[string]any); ok {
		account["abandoned"] = fmt.Sprintf("%v jobs of cancelled tasks may still run, unpaid: %v", jobs["jobs"], jobs["cost"])
	}
	w := tabwriter.NewWriter(c.out, 0, 4, 2, ' ', 0)
	for _, name := range append(
		accountColumns(), "suspended", "rate", "in_flight", "unpaid", "uploads_per_day", "abandoned",
	) {
		if account[name] == nil {
			account[name] = "as account_defaults say"
		}
		_, _ = fmt.Fprintln(w, row(name, fmt.Sprint(account[name])))
	}
	return w.Flush()
}

func accountsCreate(ctx context.Context, c *call) error {
	name := c.flags.String("name", "", "")
	body := c.settings("group", "rate", "in_flight", "unpaid", "uploads_per_day", "erase_inputs")
	if err := errors.Join(c.parse(), required(map[string]*string{"name": name})); err != nil {
		return err
	}
	body["name"] = *name
	answer, err := c.client.do(ctx, http.MethodPost, "/accounts", body)
	return orShow(c, answer, err, accountColumns()...)
}

// accountsSuspend refuses new tasks of an account. Its running tasks continue.
func accountsSuspend(ctx context.Context, c *call) error { return suspendAccount(ctx, c, true) }

func accountsResume(ctx context.Context, c *call) error { return suspendAccount(ctx, c, false) }

func suspendAccount(ctx context.Context, c *call, suspended bool) error {
	id, reason := c.target(), c.flags.String("reason", "", "")
	if err := c.parse(); err != nil {
		return err
	}
	if id == "" {
		return errUsage{"name an account"}
	}
	if suspended && *reason == "" {
		return errUsage{"-reason is missing"}
	}
	body := withReason(map[string]any{"suspended": suspended}, *reason)
	answer, err := c.client.do(ctx, http.MethodPatch, "/accounts/"+url.PathEscape(id), body)
	return orShow(c, answer, err, append(accountColumns(), "suspended")...)
}

// withReason adds the reason to a body, unless it is empty.
func withReason(body map[string]any, reason string) map[string]any {
	if reason != "" {
		body["reason"] = reason
	}
	return body
}

func accountsGrant(ctx context.Context, c *call) error {
	account := c.flags.String("account", "", "")
	amount, reference := c.flags.String("amount", "", ""), c.flags.String("reference", "", "")
	err := errors.Join(
		c.parse(), required(map[string]*string{"account": account, "amount": amount, "reference": reference}),
	)
	if err != nil {
		return err
	}
	answer, err := c.client.do(ctx, http.MethodPost, "/accounts/"+url.PathEscape(*account)+"/grants",
		map[string]any{"amount": *amount, "reference": *reference})
	return orShow(c, answer, err, "id", "amount", "reference", "available")
}
