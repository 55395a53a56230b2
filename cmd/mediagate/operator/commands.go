package operator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
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

// ledgerCheck fails when an invariant is broken, after it has said which.
func ledgerCheck(ctx context.Context, c *call) error {
	if err := c.parse(); err != nil {
		return err
	}
	answer, err := c.client.do(ctx, http.MethodGet, "/ledger/check", nil)
	if err != nil {
		return err
	}
	var report struct {
		OK       bool     `json:"ok"`
		Checked  int      `json:"checked"`
		Problems []string `json:"problems"`
	}
	if err := json.Unmarshal(answer, &report); err != nil {
		return fmt.Errorf("the answer is not readable: %w", err)
	}
	if c.format == "json" {
		if err := c.show(answer); err != nil {
			return err
		}
	} else {
		for _, p := range report.Problems {
			_, _ = fmt.Fprintln(c.out, p)
		}
		_, _ = fmt.Fprintf(c.out, "%d accounts, keys and tasks checked, %d problems\n", report.Checked, len(report.Problems))
	}
	if !report.OK {
		return errors.New("the ledger does not hold")
	}
	return nil
}
