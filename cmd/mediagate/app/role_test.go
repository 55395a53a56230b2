package app_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mediagate/mediagate/cmd/mediagate/app"
)

// TestRolesNeedTheirSecrets checks that each process starts with only the secrets that it uses,
// and names a missing one.
func TestRolesNeedTheirSecrets(t *testing.T) {
	t.Parallel()
	const (
		base     = "database_url: postgres://gate@db/gate\nencryption_keys: [\"MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=\"]\n"
		adminKey = "admin_key: 0123456789abcdef0123456789abcdef\n"
		bare     = "channels: [{name: k, provider: kling, options: {generation: v2}}, {name: d, provider: dashscope}]\n"
		apart    = "channel_credentials: {k: {api_key: sk-0000000000000000}, d: {api_key: sk-1111111111111111}}\n"
	)
	noAdmin := "admin_key: must have at least 32 characters"
	noKeys := []string{"channels[0].credentials.api_key: is missing", "channels[1].credentials.api_key: is missing"}
	for name, test := range map[string]struct {
		role app.Role
		text string
		want []string
	}{
		"all":                             {app.RoleAll, adminKey + bare + apart, nil},
		"all without credentials":         {app.RoleAll, adminKey + bare, noKeys},
		"all without admin key":           {app.RoleAll, bare + apart, []string{noAdmin}},
		"api without credentials":         {app.RoleAPI, adminKey + bare, nil},
		"api with some":                   {app.RoleAPI, adminKey + bare + "channel_credentials: {d: {api_key: sk-1111111111111111}}\n", nil},
		"api without admin key":           {app.RoleAPI, bare, []string{noAdmin}},
		"api with a wrong option":         {app.RoleAPI, adminKey + "channels: [{name: k, provider: kling, options: {generation: v9}}]", []string{"channels[0].options.generation: must be legacy or v2"}},
		"api with half of a pair":         {app.RoleAPI, adminKey + "channels: [{name: k, provider: kling, credentials: {access_key: ak}}]", []string{"channels[0].credentials.secret_key: is missing"}},
		"api with an unknown credential":  {app.RoleAPI, adminKey + "channels: [{name: d, provider: dashscope, credentials: {password: x}}]", []string{"channels[0].credentials.password: is unknown; known: api_key", "channels[0].credentials.api_key: is missing"}},
		"worker without admin key":        {app.RoleWorker, bare + apart, nil},
		"worker with a weak one":          {app.RoleWorker, "admin_key: short\n" + bare + apart, []string{noAdmin}},
		"worker without credentials":      {app.RoleWorker, bare, noKeys},
		"migrate with neither":            {app.RoleMigrate, bare, nil},
		"replay with weak secrets":        {app.RoleReplay, "admin_key: short\nadmin_listen: nowhere\n" + bare, nil},
		"replay without a namespace":      {app.RoleReplay, "temporal: {namespace: ''}", []string{"temporal.namespace: must not be empty"}},
		"credentials of an unknown one":   {app.RoleAPI, adminKey + bare + "channel_credentials: {x: {api_key: a}, a b: {api_key: a}}", []string{`channel_credentials."a b": no channel has that name`, "channel_credentials.x: no channel has that name"}},
		"an unknown credential apart":     {app.RoleWorker, bare + "channel_credentials: {k: {api_key: sk-0000000000000000}, d: {password: x}}", []string{"channel_credentials.d.password: is unknown; known: api_key", "channel_credentials.d.api_key: is missing"}},
		"credentials told twice":          {app.RoleAPI, adminKey + "channels: [{name: d, provider: dashscope, credentials: {api_key: sk-1111111111111111}}]\nchannel_credentials: {d: {api_key: sk-1111111111111111}}", []string{"channel_credentials.d: the channel has credentials of its own: set one of them"}},
		"credentials that are unreadable": {app.RoleWorker, bare + "channel_credentials: [k]", []string{"channel_credentials: must be a mapping, name: value"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, err := app.Load(app.Sources{Base: app.Defaults(), File: file(t, base+test.text), Role: test.role})
			if diff := cmp.Diff(test.want, lines(err)); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
			if name == "all" && (c.Channels[0].Credentials["api_key"] != "sk-0000000000000000" || c.Channels[1].Credentials["api_key"] != "sk-1111111111111111") {
				t.Error("the channels have not got their credentials")
			}
		})
	}
}
