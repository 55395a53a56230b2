package app

import "testing"

// TestPublicURLTakesNoWebhooks checks that webhooks to public_url are refused, by name or by
// address, even if the address belongs to a load balancer and to no interface of the machine.
func TestPublicURLTakesNoWebhooks(t *testing.T) {
	t.Parallel()
	for public, own := range map[string]string{
		"https://gate.example.org":     "https://gate.example.org/hook",
		"https://8.8.4.4":              "http://8.8.4.4/hook",
		"https://[2001:4860:4860::8]":  "https://[2001:4860:4860::8]/hook",
		"https://[::ffff:8.8.4.4]:443": "http://8.8.4.4/hook",
	} {
		t.Run(public, func(t *testing.T) {
			t.Parallel()
			c := Defaults()
			c.PublicURL = public
			rules, err := c.rules()
			must(t, err)
			if _, err := rules.CheckWebhookURL(own); err == nil {
				t.Errorf("%s is taken as a webhook", own)
			}
			if _, err := rules.CheckWebhookURL("https://8.8.8.8/hook"); err != nil {
				t.Errorf("another address is not: %v", err)
			}
		})
	}
}
