package compose_test

import (
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/types"
	"github.com/google/go-cmp/cmp"

	"github.com/mediagate/mediagate/standalone/compose"
)

const root = "../.."

// secrets are the variables without which the file does not load.
func secrets() []string {
	return []string{
		"POSTGRES_PASSWORD=postgres-secret",
		"S3_SECRET_ACCESS_KEY=s3-secret",
		"MEDIAGATE_ADMIN_KEY=an-admin-key-of-at-least-32-characters",
		"MEDIAGATE_ENCRYPTION_KEYS=MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=",
	}
}

func load(t *testing.T) *types.Project {
	t.Helper()
	project, err := compose.Load(t.Context(), root, secrets())
	if err != nil {
		t.Fatalf("docker-compose.yml: %v", err)
	}
	return project
}

func TestServices(t *testing.T) {
	t.Parallel()
	want := []string{"api", "migrate", "postgres", "s3", "temporal", "temporal-schema", "temporal-ui", "worker"}
	got := load(t).ServiceNames()
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("services (-want +got):\n%s", diff)
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

// exact is a name with a version down to the patch level.
var exact = regexp.MustCompile(`^[a-z0-9./-]+:v?\d+\.\d+(\.\d+)?(-[a-z0-9.]+)?(@sha256:[0-9a-f]{64})?$`)

func TestImagesArePinned(t *testing.T) {
	t.Parallel()
	for name, service := range load(t).Services {
		if service.Build != nil {
			continue // our own
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
	oneShot := []string{"migrate", "temporal-schema"}
	for name, service := range load(t).Services {
		check := service.HealthCheck
		switch {
		case slices.Contains(oneShot, name):
			if service.Restart == types.RestartPolicyAlways || service.Restart == types.RestartPolicyUnlessStopped {
				t.Errorf("%s is to end once it is done, but restart is %q", name, service.Restart)
			}
		case check == nil || check.Disable || len(check.Test) == 0:
			t.Errorf("%s has no health check", name)
		case check.Interval == nil || check.Timeout == nil || check.Retries == nil:
			t.Errorf("%s: the health check lacks interval, timeout or retries", name)
		}
	}
}

func TestOrderOfStart(t *testing.T) {
	t.Parallel()
	got := map[string]map[string]string{}
	for name, service := range load(t).Services {
		for other, on := range service.DependsOn {
			if got[name] == nil {
				got[name] = map[string]string{}
			}
			got[name][other] = on.Condition
		}
	}
	want := map[string]map[string]string{
		"temporal-schema": {"postgres": types.ServiceConditionHealthy},
		"temporal":        {"temporal-schema": types.ServiceConditionCompletedSuccessfully},
		"temporal-ui":     {"temporal": types.ServiceConditionHealthy},
		"migrate": {
			"postgres": types.ServiceConditionHealthy,
			"temporal": types.ServiceConditionHealthy,
			"s3":       types.ServiceConditionHealthy,
		},
		"api":    {"migrate": types.ServiceConditionCompletedSuccessfully},
		"worker": {"migrate": types.ServiceConditionCompletedSuccessfully},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("depends_on (-want +got):\n%s", diff)
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
		if !service.ReadOnly || service.Privileged || !slices.Contains(service.CapDrop, "ALL") {
			t.Errorf("%s: read-only %v, privileged %v, drops %v", name, service.ReadOnly, service.Privileged, service.CapDrop)
		}
		if diff := cmp.Diff(project.Services["api"].Environment, service.Environment); diff != "" {
			t.Errorf("%s: environment differs from the API's (-api +%s):\n%s", name, name, diff)
		}
		for variable := range service.Environment {
			if !strings.HasPrefix(variable, "MEDIAGATE_") {
				t.Errorf("%s: %s is no setting of the gateway", name, variable)
			}
		}
	}
}

// What everyone may do there, nobody may reach from outside.
func TestOnlyTheAPIIsPublished(t *testing.T) {
	t.Parallel()
	for name, service := range load(t).Services {
		for _, port := range service.Ports {
			if name != "api" && port.HostIP != "127.0.0.1" {
				t.Errorf("%s publishes %s on %q", name, port.Published, port.HostIP)
			}
		}
	}
}

// The links to results that the gateway signs by default lead to the service
// on the machine itself.
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
	for service, folder := range map[string]string{"postgres": "/var/lib/postgresql", "s3": "/data"} {
		kept := slices.ContainsFunc(project.Services[service].Volumes, func(v types.ServiceVolumeConfig) bool {
			_, named := project.Volumes[v.Source]
			return named && v.Type == types.VolumeTypeVolume && v.Target == folder
		})
		if !kept {
			t.Errorf("%s does not keep %s in a named volume", service, folder)
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
	if stages != 2 {
		t.Errorf("%d stages, want one to build and one to run", stages)
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
	text, err := os.ReadFile(filepath.Join(root, "Dockerfile"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(string(text), "\n")
}
