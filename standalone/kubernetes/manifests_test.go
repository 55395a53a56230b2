package kubernetes_test

import (
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apps "k8s.io/api/apps/v1"
	autoscaling "k8s.io/api/autoscaling/v2"
	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/mediagate/mediagate/cmd/mediagate/app"
	"github.com/mediagate/mediagate/standalone/kubernetes"
	"github.com/mediagate/mediagate/workflows"
)

const folder = "../../deploy/kubernetes"

func load(t *testing.T, name string) kubernetes.Manifests {
	t.Helper()
	m, err := kubernetes.Load(filepath.Join(folder, name))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func named[T meta.Object](t *testing.T, m kubernetes.Manifests, name string) T {
	t.Helper()
	one, err := kubernetes.Named[T](m, name)
	if err != nil {
		t.Fatal(err)
	}
	return one
}

// pods returns the pods that objects create, by the command of their container.
func pods(t *testing.T, m kubernetes.Manifests) map[string]*core.PodSpec {
	t.Helper()
	found := map[string]*core.PodSpec{}
	for _, object := range m.Objects {
		spec := kubernetes.PodSpec(object)
		if spec == nil {
			continue
		}
		if len(spec.Containers) != 1 || len(spec.InitContainers) > 0 || len(spec.Containers[0].Args) != 1 {
			t.Fatalf("%s has more than one container, or more than a command", object.GetName())
		}
		found[spec.Containers[0].Args[0]] = spec
	}
	if len(found) != 3 {
		t.Fatalf("the commands of the pods are %v", found)
	}
	return found
}

// roles holds the role of each command's process.
var roles = map[string]app.Role{"api": app.RoleAPI, "worker": app.RoleWorker, "migrate": app.RoleMigrate}

// secrets holds values such as an operator may have.
var secrets = map[string]string{
	"MEDIAGATE_DATABASE_URL":         "postgres://mediagate:secret@postgres.example.com:5432/mediagate",
	"MEDIAGATE_ENCRYPTION_KEYS":      "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=",
	"MEDIAGATE_S3_ACCESS_KEY_ID":     "mediagate",
	"MEDIAGATE_S3_SECRET_ACCESS_KEY": "s3-secret",
	"MEDIAGATE_ADMIN_KEY":            "an-admin-key-of-at-least-32-characters",
	"MEDIAGATE_CHANNEL_CREDENTIALS":  "{kling-a: {api_key: vendor-secret}}",
}

// settings reads the settings of a pod's process as the process itself would. alter may change
// the ConfigMap's file before.
func settings(t *testing.T, m kubernetes.Manifests, command string, alter func(string) string) (app.Config, error) {
	t.Helper()
	pod := pods(t, m)[command]
	container := pod.Containers[0]
	var environ []string
	file := ""
	for _, v := range container.Env {
		value := v.Value
		if v.ValueFrom != nil {
			value = secrets[v.Name]
		}
		if v.Name == "MEDIAGATE_CONFIG" {
			file = value
			continue
		}
		environ = append(environ, v.Name+"="+value)
	}
	mount := container.VolumeMounts[0]
	at := slices.IndexFunc(pod.Volumes, func(v core.Volume) bool { return v.Name == mount.Name })
	if at < 0 || filepath.Dir(file) != mount.MountPath {
		t.Fatalf("%s: the settings %s are in no volume", command, file)
	}
	text, ok := named[*core.ConfigMap](t, m, pod.Volumes[at].ConfigMap.Name).Data[filepath.Base(file)]
	if !ok {
		t.Fatalf("%s: the ConfigMap has no %s", command, filepath.Base(file))
	}
	copied := filepath.Join(t.TempDir(), filepath.Base(file))
	if err := os.WriteFile(copied, []byte(alter(text)), 0o600); err != nil {
		t.Fatal(err)
	}
	return app.Load(app.Sources{Base: app.Defaults(), File: copied, Env: environ, Role: roles[command]})
}

func asWritten(text string) string { return text }

func valid(t *testing.T, m kubernetes.Manifests, command string) app.Config {
	t.Helper()
	c, err := settings(t, m, command, asWritten)
	if err != nil {
		t.Fatalf("%s: %v", command, err)
	}
	return c
}

// TestEveryFileIsUsed checks that every file of the folder is part of a kustomization and
// decodes strictly.
func TestEveryFileIsUsed(t *testing.T) {
	t.Parallel()
	used := append(load(t, "base").Files, load(t, "keda").Files...)
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && !slices.Contains(used, path) {
			t.Errorf("%s is in no kustomization", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestStrict checks that Load refuses mistakes that the API server would refuse or ignore.
func TestStrict(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ old, new, want string }{
		"unknown field": {"backoffLimit: 5", "backOffs: 5", `unknown field "spec.backOffs"`},
		"another case":  {"backoffLimit: 5", "backofflimit: 5", `unknown field "spec.backofflimit"`},
		"deep inside":   {"drop: [ALL]", "drops: [ALL]", `containers[0].securityContext.capabilities.drops"`},
		"twice":         {"backoffLimit: 5", "backoffLimit: 5\n  backoffLimit: 6", `"backoffLimit" already set`},
		"another type":  {"backoffLimit: 5", "backoffLimit: five", "int32"},
		"unknown kind":  {"kind: Job", "kind: Jobs", `kind "Jobs" of "batch/v1" is not known here`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(filepath.Join(folder, "base", "migrate.yaml"))
			if err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			for file, content := range map[string]string{
				"kustomization.yaml": "resources: [job.yaml]\n", "job.yaml": strings.Replace(string(text), tc.old, tc.new, 1),
			} {
				if err := os.WriteFile(filepath.Join(dir, file), []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := kubernetes.Load(dir); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("Load: %v, want %q", err, tc.want)
			}
		})
	}
}

// TestSettings checks that the program understands the settings, and that each process gets the
// secrets that it needs.
func TestSettings(t *testing.T) {
	t.Parallel()
	m := load(t, "base")
	for command := range roles {
		valid(t, m, command)
		_, err := settings(t, m, command, func(text string) string { return text + "no_such_setting: 1\n" })
		if err == nil || !strings.Contains(err.Error(), "no_such_setting") {
			t.Errorf("%s: an unknown setting gives %v", command, err)
		}
	}
}

func TestSecretsAreReferences(t *testing.T) {
	t.Parallel()
	got := map[string][]string{}
	for command, pod := range pods(t, load(t, "base")) {
		for _, v := range pod.Containers[0].Env {
			if v.ValueFrom == nil && v.Name != "MEDIAGATE_CONFIG" {
				t.Errorf("%s: %s is given here", command, v.Name)
			}
			if v.ValueFrom != nil {
				ref := v.ValueFrom.SecretKeyRef
				got[ref.Name+"/"+ref.Key] = append(got[ref.Name+"/"+ref.Key], command)
			}
		}
		if pod.AutomountServiceAccountToken == nil || *pod.AutomountServiceAccountToken {
			t.Errorf("%s has a token of the cluster, which it does not use", command)
		}
		// The process would take the variables of the namespace's Services for settings.
		if pod.EnableServiceLinks == nil || *pod.EnableServiceLinks {
			t.Errorf("%s gets variables like MEDIAGATE_API_PORT, which are not settings", command)
		}
	}
	for _, commands := range got {
		slices.Sort(commands)
	}
	everybody := []string{"api", "migrate", "worker"}
	want := map[string][]string{
		"mediagate/database_url": everybody, "mediagate/encryption_keys": everybody,
		"mediagate/s3_access_key_id": everybody, "mediagate/s3_secret_access_key": everybody,
		"mediagate-admin/admin_key":                  {"api"},
		"mediagate-channels/channel_credentials":     {"worker"},
		"mediagate-channels/api_channel_credentials": {"api"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("secrets, and who gets them (-want +got):\n%s", diff)
	}
}

// portOf returns the port of a listener's address.
func portOf(t *testing.T, address string) int32 {
	t.Helper()
	_, text, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	return int32(port)
}

// TestPortsAndProbes checks that a process listens on the ports of its container, and that the
// probes call these ports.
func TestPortsAndProbes(t *testing.T) {
	t.Parallel()
	m := load(t, "base")
	for command, pod := range pods(t, m) {
		c, container := valid(t, m, command), pod.Containers[0]
		want := map[string]map[string]int32{
			"api":     {"api": portOf(t, c.APIListen), "admin": portOf(t, c.AdminListen), "ops": portOf(t, c.OpsListen)},
			"worker":  {"ops": portOf(t, c.OpsListen)},
			"migrate": {},
		}[command]
		got := map[string]int32{}
		for _, p := range container.Ports {
			got[p.Name] = p.ContainerPort
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: ports (-settings +container):\n%s", command, diff)
		}
		if command == "migrate" {
			continue
		}
		for what, probe := range map[string]struct {
			*core.Probe
			path, port string
		}{
			"startup":   {container.StartupProbe, "/healthz", "ops"},
			"liveness":  {container.LivenessProbe, "/healthz", "ops"},
			"readiness": {container.ReadinessProbe, "/readyz", map[string]string{"api": "api", "worker": "ops"}[command]},
		} {
			want := core.HTTPGetAction{Path: probe.path, Port: intstr.FromString(probe.port)}
			if diff := cmp.Diff(&want, probe.HTTPGet); diff != "" {
				t.Errorf("%s: the %s probe asks (-want +got):\n%s", command, what, diff)
			}
			if probe.TimeoutSeconds < 4 { // an answer takes up to three seconds
				t.Errorf("%s: the %s probe waits for %d s", command, what, probe.TimeoutSeconds)
			}
		}
		// A process waits a minute for the database and another for its migration before it listens.
		if s := container.StartupProbe; s.PeriodSeconds*s.FailureThreshold < 150 {
			t.Errorf("%s is killed after %d s that it may need to start", command, s.PeriodSeconds*s.FailureThreshold)
		}
	}
}

// TestGraceTimes checks that a process has the time that it needs to stop.
func TestGraceTimes(t *testing.T) {
	t.Parallel()
	m := load(t, "base")
	for _, command := range []string{"api", "worker"} {
		pod := pods(t, m)[command]
		asleep := time.Duration(0)
		if hook := pod.Containers[0].Lifecycle; hook != nil {
			asleep = time.Duration(hook.PreStop.Sleep.Seconds) * time.Second
		}
		needed := asleep + valid(t, m, command).ShutdownGrace + 10*time.Second
		if grace := time.Duration(*pod.TerminationGracePeriodSeconds) * time.Second; grace < needed {
			t.Errorf("%s is killed after %s, and may need %s", command, grace, needed)
		}
		if (asleep > 0) != (command == "api") {
			t.Errorf("%s sleeps %s before SIGTERM; only the API needs a pause, until new connections go elsewhere", command, asleep)
		}
	}
}

func TestPodsAreHardened(t *testing.T) {
	t.Parallel()
	pinned := regexp.MustCompile(`^[a-z0-9./-]+:\d+\.\d+\.\d+$`)
	user := new(int64(65532)) // as in the Dockerfile
	wantPod := &core.PodSecurityContext{
		RunAsNonRoot: new(true), RunAsUser: user, RunAsGroup: user,
		SeccompProfile: &core.SeccompProfile{Type: core.SeccompProfileTypeRuntimeDefault},
	}
	wantContainer := &core.SecurityContext{
		AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(true),
		Capabilities: &core.Capabilities{Drop: []core.Capability{"ALL"}},
	}
	for command, pod := range pods(t, load(t, "base")) {
		if diff := cmp.Diff(wantPod, pod.SecurityContext); diff != "" {
			t.Errorf("%s: the pod's security context (-want +got):\n%s", command, diff)
		}
		if diff := cmp.Diff(wantContainer, pod.Containers[0].SecurityContext); diff != "" {
			t.Errorf("%s: the container's security context (-want +got):\n%s", command, diff)
		}
		if pod.HostNetwork || pod.HostPID || pod.HostIPC {
			t.Errorf("%s is in the namespaces of its host", command)
		}
		r := pod.Containers[0].Resources
		if r.Limits.Memory().IsZero() || r.Requests.Memory().IsZero() || r.Requests.Cpu().IsZero() {
			t.Errorf("%s: resources %+v", command, r)
		}
		if image := pod.Containers[0].Image; !pinned.MatchString(image) {
			t.Errorf("%s: the image %q is not pinned", command, image)
		}
	}
}

// matchLabels checks that a selector selects the pods of one Deployment only.
func matchLabels(t *testing.T, what string, selector, pod map[string]string) {
	t.Helper()
	for name, value := range selector {
		if pod[name] != value {
			t.Errorf("%s selects %s=%s, the pods have %q", what, name, value, pod[name])
		}
	}
	if selector["app.kubernetes.io/component"] == "" {
		t.Errorf("%s selects pods of other components, too", what)
	}
}

// TestDeployments checks that an update replaces a process only when its successor is ready, and
// that all references to the processes name existing ones.
func TestDeployments(t *testing.T) {
	t.Parallel()
	m := load(t, "base")
	for _, d := range kubernetes.All[*apps.Deployment](m) {
		u := d.Spec.Strategy.RollingUpdate
		if *u.MaxUnavailable != intstr.FromInt32(0) || *u.MaxSurge != intstr.FromInt32(1) {
			t.Errorf("%s is updated with %s unavailable and %s more", d.Name, u.MaxUnavailable, u.MaxSurge)
		}
		labels := d.Spec.Template.Labels
		matchLabels(t, d.Name, d.Spec.Selector.MatchLabels, labels)
		spread := d.Spec.Template.Spec.TopologySpreadConstraints[0]
		matchLabels(t, d.Name+" spreads over nodes and", spread.LabelSelector.MatchLabels, labels)
		budget := named[*policy.PodDisruptionBudget](t, m, d.Name)
		matchLabels(t, "the budget "+budget.Name, budget.Spec.Selector.MatchLabels, labels)
		if *budget.Spec.MaxUnavailable != intstr.FromInt32(1) {
			t.Errorf("%s allows %s pods to be unavailable at once", budget.Name, budget.Spec.MaxUnavailable)
		}
	}
	for _, s := range kubernetes.All[*core.Service](m) {
		d := named[*apps.Deployment](t, m, "mediagate-api")
		matchLabels(t, "the service "+s.Name, s.Spec.Selector, d.Spec.Template.Labels)
		for _, p := range s.Spec.Ports {
			known := func(c core.ContainerPort) bool { return c.Name == p.TargetPort.StrVal && c.ContainerPort == p.Port }
			if !slices.ContainsFunc(d.Spec.Template.Spec.Containers[0].Ports, known) {
				t.Errorf("the service %s leads to port %s %d, which the container lacks", s.Name, p.TargetPort.StrVal, p.Port)
			}
		}
	}
	scaler := named[*autoscaling.HorizontalPodAutoscaler](t, m, "mediagate-api").Spec
	scaled := named[*apps.Deployment](t, m, scaler.ScaleTargetRef.Name)
	if scaled.Spec.Replicas != nil {
		t.Errorf("%s has %d pods by each apply, which conflicts with its autoscaler", scaled.Name, *scaled.Spec.Replicas)
	}
	if *scaler.MinReplicas < 2 || *named[*apps.Deployment](t, m, "mediagate-worker").Spec.Replicas < 2 {
		t.Error("one process alone has no other to hand its work to")
	}
}

// TestMigrationComesFirst checks that the Job and the objects that it needs have the label by
// which they are applied first.
func TestMigrationComesFirst(t *testing.T) {
	t.Parallel()
	m := load(t, "base")
	var first []string
	for _, object := range m.Objects {
		if object.GetLabels()["mediagate/apply"] == "first" {
			first = append(first, fmt.Sprintf("%T %s", object, object.GetName()))
		}
	}
	want := []string{"*v1.NetworkPolicy mediagate", "*v1.Job mediagate-migrate", "*v1.ConfigMap mediagate"}
	if diff := cmp.Diff(want, first); diff != "" {
		t.Errorf("applied first (-want +got):\n%s", diff)
	}
}

// TestNetworkPolicies checks that each process can reach the servers in its settings, and that
// its own ports are reachable only by those that need them.
func TestNetworkPolicies(t *testing.T) {
	t.Parallel()
	m := load(t, "base")
	everything := named[*networking.NetworkPolicy](t, m, "mediagate").Spec
	api := named[*networking.NetworkPolicy](t, m, "mediagate-api").Spec
	if diff := cmp.Diff([]networking.PolicyType{"Ingress", "Egress"}, everything.PolicyTypes); diff != "" {
		t.Errorf("the policy leaves some types open (-want +got):\n%s", diff)
	}
	for command, pod := range pods(t, m) {
		for name, value := range everything.PodSelector.MatchLabels {
			if labels := templateLabels(m, pod); labels[name] != value {
				t.Errorf("the general policy does not select %s: %v", command, labels)
			}
		}
	}
	matchLabels(t, "the policy of the API", api.PodSelector.MatchLabels, templateLabels(m, pods(t, m)["api"]))

	var anywhere []int32
	for _, rule := range everything.Egress {
		for _, p := range rule.Ports {
			if len(rule.To) == 0 {
				anywhere = append(anywhere, p.Port.IntVal)
			}
		}
	}
	c := valid(t, m, "worker")
	for what, port := range map[string]int32{"names": 53, "PostgreSQL": 5432, "Temporal": portOf(t, c.Temporal.Address)} {
		if !slices.Contains(anywhere, port) {
			t.Errorf("%s on port %d is out of reach", what, port)
		}
	}
	ingress := map[string]int{}
	for _, rule := range slices.Concat(everything.Ingress, api.Ingress) {
		for _, p := range rule.Ports {
			ingress[p.Port.StrVal] = len(rule.From)
		}
	}
	if diff := cmp.Diff(map[string]int{"api": 0, "ops": 1}, ingress); diff != "" {
		t.Errorf("ports, and how many groups may reach them, 0 for all (-want +got):\n%s", diff)
	}
}

// templateLabels returns the labels of the pods with the spec.
func templateLabels(m kubernetes.Manifests, spec *core.PodSpec) map[string]string {
	for _, d := range kubernetes.All[*apps.Deployment](m) {
		if &d.Spec.Template.Spec == spec {
			return d.Spec.Template.Labels
		}
	}
	for _, j := range kubernetes.All[*batch.Job](m) {
		if &j.Spec.Template.Spec == spec {
			return j.Spec.Template.Labels
		}
	}
	return nil
}

// TestWorkersScaleByQueues checks that KEDA reads queues that the workers serve, at the workers'
// own Temporal.
func TestWorkersScaleByQueues(t *testing.T) {
	t.Parallel()
	m := load(t, "keda")
	c := valid(t, m, "worker")
	served := []string{
		workflows.QueueMain, workflows.QueueChannel, workflows.QueueMirror, workflows.QueueInputs, workflows.QueueWebhook,
	}
	needed := []string{workflows.QueueMain}
	for _, channel := range c.Channels {
		served = append(served, workflows.QueueCall(channel.Provider), workflows.QueueBacklog(channel.Name))
		needed = append(needed, workflows.QueueCall(channel.Provider))
	}
	scaled := named[*kubernetes.ScaledObject](t, m, "mediagate-worker").Spec
	for _, trigger := range scaled.Triggers {
		asked := trigger.Metadata
		if trigger.Type != "temporal" || asked.Endpoint != c.Temporal.Address || asked.Namespace != c.Temporal.Namespace {
			t.Errorf("a trigger of type %s asks %s for the namespace %s", trigger.Type, asked.Endpoint, asked.Namespace)
		}
		if !slices.Contains(served, asked.TaskQueue) {
			t.Errorf("no worker serves the queue %s", asked.TaskQueue)
		}
		if size, err := strconv.Atoi(asked.TargetQueueSize); err != nil || size < 1 {
			t.Errorf("%s: the target is %q", asked.TaskQueue, asked.TargetQueueSize)
		}
		needed = slices.DeleteFunc(needed, func(name string) bool { return name == asked.TaskQueue })
	}
	if len(needed) > 0 {
		t.Errorf("no trigger reads the queues %v", needed)
	}
	worker := named[*apps.Deployment](t, m, scaled.ScaleTargetRef.Name)
	if worker.Spec.Replicas != nil {
		t.Errorf("%s has %d pods by each apply, which conflicts with KEDA", worker.Name, *worker.Spec.Replicas)
	}
	base := named[*apps.Deployment](t, load(t, "base"), worker.Name)
	if scaled.MinReplicaCount < int(*base.Spec.Replicas) {
		t.Errorf("KEDA leaves %d workers, the base has %d", scaled.MinReplicaCount, *base.Spec.Replicas)
	}
}
