package app_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mediagate/mediagate/cmd/mediagate/app"
)

func TestTrustedProxies(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		text  string // after complete
		env   string // of the variable
		flag  string
		want  app.Proxies
		shown string // by config
	}{
		"nothing":              {shown: "0"},
		"a number":             {text: "trusted_proxies: 2", want: app.Proxies{Hops: 2}, shown: "2"},
		"a list":               {text: "trusted_proxies: [10.0.0.0/8, '2001:db8::/32']", want: app.Proxies{Networks: []string{"10.0.0.0/8", "2001:db8::/32"}}, shown: "\n- 10.0.0.0/8\n- 2001:db8::/32"},
		"an address":           {text: "trusted_proxies: [192.0.2.7]", want: app.Proxies{Networks: []string{"192.0.2.7"}}, shown: "\n- 192.0.2.7"},
		"an empty list":        {text: "trusted_proxies: []", want: app.Proxies{Networks: []string{}}, shown: "0"},
		"a variable":           {text: "trusted_proxies: [10.0.0.0/8]", env: "3", want: app.Proxies{Hops: 3}, shown: "3"},
		"a variable's list":    {text: "trusted_proxies: 3", env: "10.0.0.0/8, 192.168.0.0/16", want: app.Proxies{Networks: []string{"10.0.0.0/8", "192.168.0.0/16"}}, shown: "\n- 10.0.0.0/8\n- 192.168.0.0/16"},
		"one in a variable":    {env: "10.0.0.0/8", want: app.Proxies{Networks: []string{"10.0.0.0/8"}}, shown: "\n- 10.0.0.0/8"},
		"a list as YAML":       {env: "[10.0.0.0/8]", want: app.Proxies{Networks: []string{"10.0.0.0/8"}}, shown: "\n- 10.0.0.0/8"},
		"a flag over variable": {env: "10.0.0.0/8", flag: "0", shown: "0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var env, args []string
			if test.env != "" {
				env = append(env, "MEDIAGATE_TRUSTED_PROXIES="+test.env)
			}
			if test.flag != "" {
				args = append(args, "-trusted-proxies", test.flag)
			}
			c, err := load(t, complete+test.text, env, args)
			must(t, err)
			if diff := cmp.Diff(test.want, c.TrustedProxies); diff != "" {
				t.Error(diff)
			}
			text, err := c.Print()
			must(t, err)
			_, after, _ := strings.Cut(text, "trusted_proxies:")
			shown, _, _ := strings.Cut(after, "\nlog_level")
			if got := strings.TrimPrefix(shown, " "); got != test.shown {
				t.Errorf("config prints %q, want %q", got, test.shown)
			}
		})
	}
}

func TestWrongTrustedProxies(t *testing.T) {
	t.Parallel()
	for value, want := range map[string][]string{
		"-1":                               {"trusted_proxies: must not be negative"},
		"10.0.0.0/8":                       {`trusted_proxies: must be a whole number or a list of CIDRs, not "10.0.0.0/8"`},
		"{a: b}":                           {"trusted_proxies: must be a whole number or a list of CIDRs"},
		"[10.0.0.1/8]":                     {`trusted_proxies[0]: "10.0.0.1/8" must not have bits set after its prefix, write 10.0.0.0/8`},
		"[10.0.0.0/8, 0.0.0.0/0, '::/0']":  {`trusted_proxies[1]: "0.0.0.0/0" must not be every address: anybody could then claim to be anybody`, `trusted_proxies[2]: "::/0" must not be every address: anybody could then claim to be anybody`},
		"['::ffff:0.0.0.0/96']":            {`trusted_proxies[0]: "::ffff:0.0.0.0/96" must not be every address: anybody could then claim to be anybody`},
		"[proxy.example.com, 10.0.0.0/33]": {`trusted_proxies[0]: "proxy.example.com" must be an IP address or a CIDR`, `trusted_proxies[1]: "10.0.0.0/33" must be an IP address or a CIDR`},
		"[[10.0.0.0/8]]":                   {"trusted_proxies: must be a list of texts, or a whole number"},
		"[1, '']":                          {`trusted_proxies[0]: "1" must be an IP address or a CIDR`, `trusted_proxies[1]: "" must be an IP address or a CIDR`},
	} {
		t.Run(value, func(t *testing.T) {
			t.Parallel()
			_, err := load(t, complete+"trusted_proxies: "+value, nil, nil)
			if diff := cmp.Diff(want, lines(err)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
