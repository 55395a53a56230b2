package app

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"strings"
	"testing"

	"github.com/mediagate/mediagate/api"
)

// secretive are settings with each kind of secret.
func secretive() (c Config, secrets map[string]string) {
	secrets = map[string]string{
		"admin key": "adm-0123456789/abcdef+0123456789ab", "encryption key": base64.StdEncoding.EncodeToString([]byte("0123456789abcdef0123456789ABCDEF")),
		"database": "db password/with?marks", "database parameter": "parameter-of-database", "s3": "s3-secret/access+key==",
		"credential": `ven"dor key with quotes`, "callback": "callback-secret-1",
		"private key": "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC", "key id": "0f1e2d3c4b5a69788796",
	}
	c = Defaults()
	c.AdminKey, c.EncryptionKeys = secrets["admin key"], []string{secrets["encryption key"]}
	c.DatabaseURL = "postgres://gate:" + url.PathEscape(secrets["database"]) + "@db/gate?sslpassword=" + secrets["database parameter"]
	c.S3.SecretAccessKey = secrets["s3"]
	account, err := json.Marshal(map[string]string{
		"type": "service_account", "private_key_id": secrets["key id"],
		"private_key": "-----BEGIN PRIVATE KEY-----\n" + secrets["private key"] + "\n-----END PRIVATE KEY-----\n",
	})
	if err != nil {
		panic(err)
	}
	secrets["whole account"] = string(account)
	secrets["credential apart"] = "credential-apart-0123456789"
	c.ChannelCredentials = Credentials{"c": {"api_key": secrets["credential apart"]}}
	secrets["temporal"] = "temporal-api-key-0123456789"
	c.Temporal.APIKey = secrets["temporal"]
	secrets["moderation"], secrets["moderation's password"] = "sk-of-the-endpoint-0123456789", "password-of-the-endpoint"
	c.Moderation.APIKey = secrets["moderation"]
	c.Moderation.URL = "https://me:" + secrets["moderation's password"] + "@example.com/v1/moderations"
	c.Channels = []Channel{
		{Name: "a", Provider: "kling", Credentials: map[string]string{"api_key": secrets["credential"]}, CallbackSecret: secrets["callback"]},
		{Name: "b", Provider: "vertex", Credentials: map[string]string{"service_account": string(account)}},
	}
	return c, secrets
}

// forms are the ways in which a secret may be written.
func forms(secret string) map[string]string {
	quoted, _ := json.Marshal(secret)
	return map[string]string{
		"plain": secret, "quoted": string(quoted), "in a query": url.QueryEscape(secret), "in a path": url.PathEscape(secret),
		"base64": base64.StdEncoding.EncodeToString([]byte(secret)), "base64 for URLs": base64.RawURLEncoding.EncodeToString([]byte(secret)),
		"hex": hex.EncodeToString([]byte(secret)),
	}
}

// TestLogHoldsNoSecrets checks that no secret of the settings gets into the log, in any text.
func TestLogHoldsNoSecrets(t *testing.T) {
	t.Parallel()
	c, secrets := secretive()
	key, _ := api.NewKey()
	hook := "whsec_" + base64.StdEncoding.EncodeToString([]byte("0123456789abcdef0123456789abcdef"))
	secrets["API key"], secrets["webhook secret"] = key, hook
	for name, secret := range secrets {
		for form, text := range forms(secret) {
			if strings.HasSuffix(name, " secret") || name == "API key" {
				if form != "plain" && form != "quoted" {
					continue // not known by the settings: found by their look only
				}
			}
			t.Run(name+" "+form, func(t *testing.T) {
				t.Parallel()
				var out bytes.Buffer
				logger := NewLogger(c, &out)
				logger.Info("it is "+text, "value", text, "error", fmt.Errorf("refused %s: %w", text, errors.New(text)), "group", slog.GroupValue(slog.String(text, "x")))
				line := out.String()
				var record map[string]any
				if err := json.Unmarshal([]byte(line), &record); err != nil {
					t.Fatalf("no JSON any more: %v\n%s", err, line)
				}
				again, _ := json.Marshal(text)
				for _, sought := range []string{text, strings.Trim(string(again), `"`)} {
					if strings.Contains(line, sought) || strings.Contains(fmt.Sprint(record), sought) {
						t.Errorf("logged: %s", line)
					}
				}
			})
		}
	}
}

func TestScrubLeavesTheRest(t *testing.T) {
	t.Parallel()
	c, _ := secretive()
	const text = `{"msg":"serves","key":"mgk_abcdef","mark":"whsec_","short":"db"}` + "\n"
	if got := c.Scrub(text); got != text {
		t.Errorf("%q became %q", text, got)
	}
	if n, err := Scrub(io.Discard, "0123456789").Write([]byte("0123456789 0123456789")); n != 21 || err != nil {
		t.Errorf("wrote %d, %v", n, err)
	}
	if got := c.Scrub("postgres://db"); got != "postgres://db" {
		t.Error(got)
	}
}

// TestSettingsAreNeverPrinted checks that settings print as `mediagate config` prints them, in
// every format.
func TestSettingsAreNeverPrinted(t *testing.T) {
	t.Parallel()
	c, secrets := secretive()
	g := &Gateway{Config: c}
	var out bytes.Buffer
	for _, value := range []any{c, &c, c.S3, c.Temporal, c.Channels, c.Channels[0], &c.Channels[1], g, struct{ Config Config }{c}} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
			fmt.Fprintf(&out, verb+"\n", value)
		}
		slog.New(slog.NewJSONHandler(&out, nil)).Info("it", "value", value)
		slog.New(slog.NewTextHandler(&out, nil)).Info("it", "value", value)
		document, err := json.Marshal(value)
		if err == nil {
			out.Write(document)
		}
	}
	for name, secret := range secrets {
		for form, text := range forms(secret) {
			if strings.Contains(out.String(), text) {
				t.Errorf("the %s is printed, %s", name, form)
			}
		}
	}
	if !strings.Contains(out.String(), "provider: kling") {
		t.Errorf("nothing is printed: %s", out.String())
	}
}
