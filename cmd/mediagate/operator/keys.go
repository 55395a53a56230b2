package operator

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
)

// keyColumns returns the columns that fit into a terminal. A list for one account omits the account
// and shows times instead.
func keyColumns(ofOneAccount bool) []string {
	if ofOneAccount {
		return []string{"id", "name", "prefix", "quota", "spent", "expires_at", "last_used_at"}
	}
	return []string{"id", "account", "name", "prefix", "quota", "spent"}
}

func keysList(ctx context.Context, c *call) error {
	answer, err := c.list(ctx, "/keys", "account")
	ofOneAccount := c.flags.Lookup("account").Value.String() != ""
	return orShow(c, answer, err, keyColumns(ofOneAccount)...)
}

func keysCreate(ctx context.Context, c *call) error {
	account, name := c.flags.String("account", "", ""), c.flags.String("name", "", "")
	body := c.settings("unlimited", "quota", "models", "group", "expires_at", "allow_ips",
		"caps.day", "caps.week", "caps.month", "rate", "in_flight", "scopes")
	body["unlimited"] = false
	if err := errors.Join(c.parse(), required(map[string]*string{"account": account, "name": name})); err != nil {
		return err
	}
	body["name"] = *name
	answer, err := c.client.do(ctx, http.MethodPost, "/accounts/"+url.PathEscape(*account)+"/keys", body)
	return orShow(c, answer, err, "id", "name", "key") // the only time that the key is shown
}

func keysRotate(ctx context.Context, c *call) error {
	key := c.flags.String("key", "", "")
	body := c.settings("grace_seconds")
	if err := errors.Join(c.parse(), required(map[string]*string{"key": key})); err != nil {
		return err
	}
	answer, err := c.client.do(ctx, http.MethodPost, "/keys/"+url.PathEscape(*key)+"/rotate", body)
	return orShow(c, answer, err, "id", "name", "key") // the only time that the new key is shown
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
	return orShow(c, answer, err, "id", "state")
}
