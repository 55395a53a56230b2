package operator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

func accountColumns() []string {
	return []string{"id", "name", "group", "available", "held", "spent"}
}

func keyColumns() []string {
	return []string{"id", "name", "prefix", "account", "unlimited", "quota", "held", "spent"}
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
	name, group := c.flags.String("name", "", ""), c.flags.String("group", "", "")
	if err := errors.Join(c.parse(), required(map[string]*string{"name": name})); err != nil {
		return err
	}
	body := map[string]any{"name": *name}
	if *group != "" {
		body["group"] = *group
	}
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

func keysList(ctx context.Context, c *call) error {
	account := c.flags.String("account", "", "")
	limit, after := c.flags.Int("limit", 100, ""), c.flags.String("after", "", "")
	if err := c.parse(); err != nil {
		return err
	}
	query := page(*limit, *after)
	if *account != "" {
		query += "&account=" + url.QueryEscape(*account)
	}
	answer, err := c.client.do(ctx, http.MethodGet, "/keys?"+query, nil)
	if err != nil {
		return err
	}
	return c.show(answer, keyColumns()...)
}

func keysCreate(ctx context.Context, c *call) error {
	account, name := c.flags.String("account", "", ""), c.flags.String("name", "", "")
	unlimited, quota := c.flags.Bool("unlimited", false, ""), c.flags.String("quota", "", "")
	texts := map[string]*string{"group": c.flags.String("group", "", ""), "expires_at": c.flags.String("expires", "", "")}
	lists := map[string]*string{"models": c.flags.String("models", "", ""), "allow_ips": c.flags.String("allow-ips", "", "")}
	if err := errors.Join(c.parse(), required(map[string]*string{"account": account, "name": name})); err != nil {
		return err
	}
	body := map[string]any{"name": *name, "unlimited": *unlimited}
	if *quota != "" {
		body["quota"] = *quota
	}
	for field, text := range texts {
		if *text != "" {
			body[field] = *text
		}
	}
	if seconds, err := strconv.ParseInt(*texts["expires_at"], 10, 64); err == nil {
		body["expires_at"] = seconds
	}
	for field, text := range lists {
		if *text != "" {
			body[field] = strings.Split(*text, ",")
		}
	}
	answer, err := c.client.do(ctx, http.MethodPost, "/accounts/"+url.PathEscape(*account)+"/keys", body)
	if err != nil {
		return err
	}
	return c.show(answer, "id", "name", "key") // the only time that the key is shown
}

func keysRevoke(ctx context.Context, c *call) error {
	key := c.flags.String("key", "", "")
	if err := errors.Join(c.parse(), required(map[string]*string{"key": key})); err != nil {
		return err
	}
	if _, err := c.client.do(ctx, http.MethodDelete, "/keys/"+url.PathEscape(*key), nil); err != nil {
		return err
	}
	answer, err := json.Marshal(map[string]string{"id": *key, "state": "revoked"})
	if err != nil {
		return err
	}
	return c.show(answer, "id", "state")
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
