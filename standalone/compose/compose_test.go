package compose_test

import (
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/types"
	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"

	"github.com/mediagate/mediagate/cmd/mediagate/app"
	"github.com/mediagate/mediagate/standalone/compose"
)

const root = "../.."

// secrets returns the variables without which the file cannot be loaded.
func secrets() []string {
	return []string{
		"POSTGRES_PASSWORD=postgres-secret",
		"GATEWAY_POSTGRES_PASSWORD=gateway-secret",
		"TEMPORAL_POSTGRES_PASSWORD=temporal-secret",
		"S3_ROOT_SECRET_KEY=s3-root-secret",
		"S3_SECRET_ACCESS_KEY=s3-secret",
		"MEDIAGATE_ADMIN_KEY=an-admin-key-of-at-least-32-characters",
		"MEDIAGATE_ENCRYPTION_KEYS=MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=",
	}
}

// load reads the file with the services of all profiles.
func load(t *testing.T, more ...string) *types.Project {
	t.Helper()
	project, err := compose.Load(t.Context(), root, append(secrets(), more...))
	if err == nil {
		project, err = project.WithProfiles([]string{"*"})
	}
	if err != nil {
		t.Fatalf("docker-compose.yml: %v", err)
	}
	return project
}

// TestMonitoring checks that Prometheus scrapes the ports at which the processes serve their
// metrics, and that it has the rules and the dashboard of deploy/.
func TestMonitoring(t *testing.T) {
	t.Parallel()
	project := load(t)
	var config struct {
		ScrapeConfigs []struct {
			Discovery []struct {
				Names []string
				Port  int
			} `yaml:"dns_sd_configs"`
		} `yaml:"scrape_configs"`
		RuleFiles []string `yaml:"rule_files"`
	}
	if err := yaml.Unmarshal([]byte(project.Configs["prometheus"].Content), &config); err != nil {
		t.Fatal(err)
	}
	where := config.ScrapeConfigs[0].Discovery[0]
	if diff := cmp.Diff([]string{"api", "worker"}, where.Names); diff != "" {
		t.Errorf("scraped (-want +got):\n%s", diff)
	}
	if _, port, _ := strings.Cut(app.Defaults().OpsListen, ":"); port != strconv.Itoa(where.Port) {
		t.Errorf("port %d, the processes listen on %s", where.Port, port)
	}
	for service, file := range map[string]struct{ ours, theirs string }{
		"prometheus": {"deploy/alerts.yml", config.RuleFiles[0]}, "grafana": {"deploy/dashboard.json", "/etc/grafana/dashboards/mediagate.json"},
	} {
		found := slices.ContainsFunc(project.Services[service].Volumes, func(v types.ServiceVolumeConfig) bool {
			_, err := os.Stat(v.Source)
			return v.Target == file.theirs && v.ReadOnly && strings.HasSuffix(v.Source, "/"+file.ours) && err == nil
		})
		if !found {
			t.Errorf("%s does not have %s as %s", service, file.ours, file.theirs)
		}
	}
}

func TestNoSecretHasADefault(t *testing.T) {
	t.Parallel()
	for i, secret := range secrets() {
		name, _, _ := strings.Cut(secret, "=")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := compose.Load(t.Context(), root, slices.Delete(secrets(), i, i+1)); err == nil {
				t.Errorf("loads without %s", name)
			}
		})
	}
}

// exact matches a name with a version, at least major and minor.
var exact = regexp.MustCompile(`^[a-z0-9./-]+:v?\d+\.\d+(\.\d+)?(-[a-z0-9.]+)*(@sha256:[0-9a-f]{64})?$`)

func TestImagesArePinned(t *testing.T) {
	t.Parallel()
	for name, service := range load(t).Services {
		if service.Build != nil {
			continue // built from this repository
		}
		if !exact.MatchString(service.Image) {
			t.Errorf("%s: image %q is not pinned to a version", name, service.Image)
		}
	}
	for _, line := range dockerfile(t) {
		image, found := strings.CutPrefix(line, "FROM ")
		if image, _, _ = strings.Cut(image, " "); found && !exact.MatchString(image) {
			t.Errorf("Dockerfile: image %q is not pinned to a version", image)
		}
	}
}

func TestEveryServerHasAHealthCheck(t *testing.T) {
	t.Parallel()
	oneShot := []string{"migrate", "postgres-roles", "s3-user", "temporal-schema"}
	for name, service := range load(t).Services {
		check := service.HealthCheck
		switch {
		case slices.Contains(oneShot, name):
			if service.Restart == types.RestartPolicyAlways || service.Restart == types.RestartPolicyUnlessStopped {
				t.Errorf("%s must not restart after its work, but restart is %q", name, service.Restart)
			}
		case check == nil || check.Disable || len(check.Test) == 0:
			t.Errorf("%s has no health check", name)
		case check.Interval == nil || check.Timeout == nil || check.Retries == nil:
			t.Errorf("%s: the health check lacks interval, timeout or retries", name)
		}
	}
}

func TestGatewayContainers(t *testing.T) {
	t.Parallel()
	project := load(t)
	for _, name := range []string{"migrate", "api", "worker"} {
		service := project.Services[name]
		if diff := cmp.Diff([]string{name}, []string(service.Command)); diff != "" {
			t.Errorf("%s: command (-want +got):\n%s", name, diff)
		}
		if uid, _, _ := strings.Cut(service.User, ":"); uid == "" || uid == "0" || uid == "root" {
			t.Errorf("%s runs as %q", name, service.User)
		}
		for variable := range service.Environment {
			if !strings.HasPrefix(variable, "MEDIAGATE_") {
				t.Errorf("%s: %s is not a setting of the gateway", name, variable)
			}
		}
	}
}

// TestContainersAreHardened checks that each container drops the rights that it does not need
// and has limits of memory and processes.
func TestContainersAreHardened(t *testing.T) {
	t.Parallel()
	for name, service := range load(t).Services {
		if !service.ReadOnly || service.Privileged || !slices.Equal(service.CapDrop, []string{"ALL"}) || len(service.CapAdd) > 0 {
			t.Errorf("%s: read-only %v, privileged %v, drops %v, adds %v", name, service.ReadOnly, service.Privileged, service.CapDrop, service.CapAdd)
		}
		if !slices.Contains(service.SecurityOpt, "no-new-privileges:true") {
			t.Errorf("%s: security_opt %v", name, service.SecurityOpt)
		}
		if service.MemLimit <= 0 || service.PidsLimit <= 0 {
			t.Errorf("%s: %d bytes of memory, %d processes", name, service.MemLimit, service.PidsLimit)
		}
	}
}

// TestSecretsGoWhereTheyAreUsed checks that only the services that use a secret get it.
func TestSecretsGoWhereTheyAreUsed(t *testing.T) {
	t.Parallel()
	const vendors, speakers = "MEDIAGATE_CHANNEL_CREDENTIALS={k: {api_key: vendor-secret}}", "MEDIAGATE_API_CHANNEL_CREDENTIALS={s: {api_key: speaker-secret}}"
	project := load(t, vendors, speakers)
	for secret, want := range map[string][]string{
		"postgres-secret":                        {"postgres", "postgres-roles"},
		"gateway-secret":                         {"api", "migrate", "postgres-roles", "worker"},
		"temporal-secret":                        {"postgres-roles", "temporal", "temporal-schema"},
		"s3-root-secret":                         {"s3", "s3-user"},
		"s3-secret":                              {"api", "migrate", "s3-user", "worker"},
		"an-admin-key-of-at-least-32-characters": {"api"},
		"MDEyMzQ1Njc4OWFiY2Rl":                   {"api", "migrate", "worker"},
		"vendor-secret":                          {"worker"},
		"speaker-secret":                         {"api"},
	} {
		var got []string
		for name, service := range project.Services {
			for variable := range service.Environment {
				if strings.Contains(environment(service, variable), secret) {
					got = append(got, name)
				}
			}
			if strings.Contains(strings.Join(append(service.Command, service.Entrypoint...), " "), secret) {
				t.Errorf("%s is in the command of %s", secret, name)
			}
		}
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", secret, diff)
		}
	}
}

// TestOnlyTheAPIIsPublished checks that other machines can reach only the API, without its admin
// API. The other servers trust every caller.
func TestOnlyTheAPIIsPublished(t *testing.T) {
	t.Parallel()
	project := load(t)
	for name, service := range project.Services {
		for _, port := range service.Ports {
			if (name != "api" || port.Target != 8080) && port.HostIP != "127.0.0.1" {
				t.Errorf("%s publishes %s on %q", name, port.Published, port.HostIP)
			}
		}
	}
	_, port, _ := strings.Cut(environment(project.Services["api"], "MEDIAGATE_ADMIN_LISTEN"), ":")
	if !slices.ContainsFunc(project.Services["api"].Ports, func(p types.ServicePortConfig) bool { return strconv.Itoa(int(p.Target)) == port }) {
		t.Errorf("the admin API listens on port %q, which is not published", port)
	}
}

func TestNetworks(t *testing.T) {
	t.Parallel()
	project := load(t)
	got := map[string][]string{}
	for name, service := range project.Services {
		for network := range service.Networks {
			got[network] = append(got[network], name)
		}
	}
	for _, names := range got {
		slices.Sort(names)
	}
	want := map[string][]string{
		"front": {"api", "grafana", "migrate", "prometheus", "s3", "s3-user", "temporal-ui", "worker"},
		"back":  {"api", "migrate", "postgres", "postgres-roles", "temporal", "temporal-schema", "temporal-ui", "worker"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("networks (-want +got):\n%s", diff)
	}
	if project.Networks["front"].Internal || !project.Networks["back"].Internal {
		t.Error("front leads out, back does not")
	}
}

// TestDefaultLinksLeadToTheBucket checks that the gateway by default signs links to results for
// the S3 service's address on the machine.
func TestDefaultLinksLeadToTheBucket(t *testing.T) {
	t.Parallel()
	project := load(t)
	link := project.Services["api"].Environment["MEDIAGATE_S3_PUBLIC_ENDPOINT"]
	if link == nil {
		t.Fatal("MEDIAGATE_S3_PUBLIC_ENDPOINT is not set")
	}
	endpoint, err := url.Parse(*link)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(project.Services["s3"].Ports, func(p types.ServicePortConfig) bool { return p.Published == endpoint.Port() }) {
		t.Errorf("links go to %s, the S3 service publishes %v", *link, project.Services["s3"].Ports)
	}
}

func TestDataIsKept(t *testing.T) {
	t.Parallel()
	project := load(t)
	for service, folder := range map[[2]string]string{{"postgres", ""}: "/var/lib/postgresql", {"s3", "objects"}: "/data", {"s3", "users"}: "/iam"} {
		kept := slices.ContainsFunc(project.Services[service[0]].Volumes, func(v types.ServiceVolumeConfig) bool {
			_, named := project.Volumes[v.Source]
			return named && v.Type == types.VolumeTypeVolume && v.Target == folder
		})
		if !kept {
			t.Errorf("%s does not keep %s in a named volume", service[0], folder)
		}
	}
}

func TestDockerfile(t *testing.T) {
	t.Parallel()
	lines := dockerfile(t)
	stages, user := 0, ""
	for _, line := range lines {
		if strings.HasPrefix(line, "FROM ") {
			stages, user = stages+1, ""
		}
		if name, found := strings.CutPrefix(line, "USER "); found {
			user = name
		}
	}
	if stages != 3 {
		t.Errorf("%d stages, want one for the console, one to build and one to run", stages)
	}
	if uid, _, _ := strings.Cut(user, ":"); uid == "" || uid == "0" || uid == "root" {
		t.Errorf("the last stage runs as %q", user)
	}
	if !slices.ContainsFunc(lines, func(line string) bool { return strings.HasPrefix(line, "RUN CGO_ENABLED=0 go build") }) {
		t.Error("the binary is not built static")
	}
}

func dockerfile(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "deploy", "Dockerfile"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(string(text), "\n")
}
