package operator

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// client calls the admin API.
type client struct {
	base string
	key  string
	http *http.Client
}

// Variable returns the last value of a variable, which is the one that a process sees.
func Variable(environ []string, name string) (value string) {
	for _, pair := range environ {
		if v, ok := strings.CutPrefix(pair, name+"="); ok {
			value = v
		}
	}
	return value
}

// connect finds the address and the key in a standalone's folder or in the environment.
func connect(environ []string, data string) (*client, error) {
	c := &client{
		base: Variable(environ, "MEDIAGATE_URL"), key: Variable(environ, "MEDIAGATE_ADMIN_KEY"),
		http: &http.Client{Timeout: 60 * time.Second},
	}
	if data != "" {
		where, err := FindStandalone(data)
		if err != nil {
			return nil, err
		}
		c.base, c.key = cmp.Or(where.Admin, where.API), where.AdminKey
	}
	if c.base == "" || c.key == "" {
		return nil, errUsage{"set MEDIAGATE_URL and MEDIAGATE_ADMIN_KEY, or name a standalone's folder with -data"}
	}
	if u, err := url.Parse(c.base); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" ||
		strings.ContainsAny(c.base, "?#") {
		return nil, errUsage{"MEDIAGATE_URL must be an http or https URL without query and fragment"}
	}
	return c, nil
}

// errRefused is the message of a 400.
type errRefused struct{ text string }

func (e errRefused) Error() string { return e.text }

// do makes a call and returns the body of the answer. An error of the API keeps its message.
func (c *client) do(ctx context.Context, method, path string, body any) ([]byte, error) {
	var reader io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		reader = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(c.base, "/")+"/admin/v1"+path, reader)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+c.key)
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, 16<<20))
	if err != nil {
		return nil, err
	}
	if resp.StatusCode/100 == 2 {
		return answer, nil
	}
	var failed struct {
		Error struct {
			Message   string `json:"message"`
			RequestID string `json:"request_id"`
		} `json:"error"`
	}
	if json.Unmarshal(answer, &failed) == nil && failed.Error.Message != "" {
		text := fmt.Sprintf("%s (HTTP %d, request %s)", failed.Error.Message, resp.StatusCode, failed.Error.RequestID)
		if resp.StatusCode == http.StatusBadRequest {
			return nil, errRefused{text}
		}
		return nil, errors.New(text)
	}
	return nil, errors.New("the gateway answered HTTP " + resp.Status)
}
