package e2e_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	enumspb "go.temporal.io/api/enums/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"

	"github.com/mediagate/mediagate/standalone/kubernetes"
)

// endpointLag is how long after the deletion of a pod some node may still send new connections
// to it.
const endpointLag = 10 * time.Second

// TestRollingUpdate updates the API and the workers in the order of deploy/kubernetes: first the
// Job, then one process after the other, each successor before its predecessor stops. 200 tasks
// are in progress, and clients keep calling. No task is lost, and no request is refused.
// MEDIAGATE_TEST_OLD names the program to update from, such as that of the release before.
// Without it, both programs are the same.
func TestRollingUpdate(t *testing.T) {
	t.Parallel()
	manifests, err := kubernetes.Load("../../deploy/kubernetes/base")
	if err != nil {
		t.Fatal(err)
	}
	apiPod, workerPod := podOf(t, manifests, "mediagate-api"), podOf(t, manifests, "mediagate-worker")
	w := newWorld(t, options{
		shape: production, apis: 2, workers: 2, bin: os.Getenv("MEDIAGATE_TEST_OLD"),
		settings: map[string]any{"shutdown_grace": graceOf(t, manifests)},
	})
	service := newBalancer(t, w.apiURLs)
	w.apiURLs = append([]string{service.url}, w.apiURLs...)
	w.checkContract()
	videos := w.submitMany(120, job{model: alpha, directive: "duration=60s"})
	checked := w.submitMany(30, job{model: beta, directive: "duration=60s"})
	calls := w.submitMany(50, job{model: theta, directive: "duration=30s"})
	underWay := slices.Concat(videos, checked, calls)

	clients := w.startClients()
	config := w.writeSettings(w.settings)
	w.opts.bin = "" // the new program from here on
	w.once("migrate-new", "migrate", "-config", config)
	var stopping sync.WaitGroup
	oldAPIs, oldWorkers := slices.Clone(w.apis), slices.Clone(w.workers)
	for i := range oldAPIs {
		n := len(oldAPIs) + i + 1
		w.addAPI(fmt.Sprintf("api%d", n), config)
		service.add(w.apiURLs[len(w.apiURLs)-1])
		w.addWorker(n, config)
		if i == 0 {
			w.checkOpen(underWay)
		}
		leaves := w.apiURLs[1+i]
		time.AfterFunc(endpointLag, func() { service.remove(leaves) })
		stopping.Go(func() { oldAPIs[i].deletePod(t, apiPod) })
		stopping.Go(func() { oldWorkers[i].deletePod(t, workerPod) })
	}
	stopping.Wait()
	clients.stop()
	t.Logf("%d requests meanwhile, which made %d tasks", clients.sent, len(clients.made))
	for _, err := range clients.errs {
		t.Errorf("a request was refused: %v", err)
	}
	if clients.sent < 500 {
		t.Errorf("only %d requests were sent during the update", clients.sent)
	}
	w.tasks = append(w.tasks, clients.made...)
	w.verify(recoverTime)
}

// graceOf returns the shutdown_grace of the settings in the manifests.
func graceOf(t *testing.T, m kubernetes.Manifests) (grace string) {
	t.Helper()
	c, err := kubernetes.Named[*core.ConfigMap](m, "mediagate")
	if err != nil {
		t.Fatal(err)
	}
	var settings map[string]any
	if err := yaml.Unmarshal([]byte(c.Data["mediagate.yaml"]), &settings); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(settings["shutdown_grace"])
}

// podOf returns the pod of a Deployment.
func podOf(t *testing.T, m kubernetes.Manifests, name string) *core.PodSpec {
	t.Helper()
	d, err := kubernetes.Named[*apps.Deployment](m, name)
	if err != nil {
		t.Fatal(err)
	}
	return &d.Spec.Template.Spec
}

// checkOpen checks that none of the tasks has ended.
func (w *world) checkOpen(tasks []*task) {
	w.t.Helper()
	ids := make([]string, len(tasks))
	for i, t := range tasks {
		ids[i] = t.id
	}
	open, err := w.column("SELECT id FROM tasks WHERE id = ANY($1) AND ended_at IS NULL", ids)
	if err != nil || len(open) != len(tasks) {
		w.t.Errorf("%d of %d tasks are under way, %v", len(open), len(tasks), err)
	}
}

// deletePod ends a process as the kubelet ends a pod: its preStop, SIGTERM, and the wait for its
// end, all within the grace time.
func (s *service) deletePod(t *testing.T, pod *core.PodSpec) {
	t.Helper()
	killed := time.After(time.Duration(*pod.TerminationGracePeriodSeconds) * time.Second)
	if hook := pod.Containers[0].Lifecycle; hook != nil {
		time.Sleep(time.Duration(hook.PreStop.Sleep.Seconds) * time.Second)
	}
	s.signal(syscall.SIGTERM)
	select {
	case <-s.ended:
		if code := s.cmd.ProcessState.ExitCode(); code != 0 {
			t.Errorf("%s exits with %d", s.name, code)
		}
	case <-killed:
		t.Errorf("%s does not end within the grace time", s.name)
	}
}

// balancer plays a Kubernetes Service. It sends each new connection to the next endpoint, where
// the connection stays.
type balancer struct {
	url string

	mu        sync.Mutex
	endpoints []string
	next      int
}

func newBalancer(t *testing.T, urls []string) *balancer {
	t.Helper()
	l, err := net.Listen("tcp", anyAddr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	b := &balancer{url: "http://" + l.Addr().String()}
	for _, url := range urls {
		b.add(url)
	}
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			go b.connect(client)
		}
	}()
	return b
}

func (b *balancer) add(url string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.endpoints = append(b.endpoints, strings.TrimPrefix(url, "http://"))
}

func (b *balancer) remove(url string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.endpoints = slices.DeleteFunc(b.endpoints, func(e string) bool { return e == strings.TrimPrefix(url, "http://") })
}

// connect connects the client to an endpoint until both have ended. If the endpoint refuses the
// connection, the client's is closed.
func (b *balancer) connect(client net.Conn) {
	defer client.Close()
	b.mu.Lock()
	endpoint := b.endpoints[b.next%len(b.endpoints)]
	b.next++
	b.mu.Unlock()
	server, err := net.Dial("tcp", endpoint)
	if err != nil {
		return
	}
	defer server.Close()
	var both sync.WaitGroup
	for _, way := range [][2]net.Conn{{server, client}, {client, server}} {
		both.Go(func() {
			_, _ = io.Copy(way[0], way[1])
			_ = way[0].(*net.TCPConn).CloseWrite()
		})
	}
	both.Wait()
}

// clients use the API until they are stopped. Half of them keep their connections, and half open
// a new one for each request.
type clients struct {
	w   world // copy from when the clients started
	end context.CancelFunc
	all sync.WaitGroup

	mu   sync.Mutex
	sent int
	errs []error
	made []*task
}

func (w *world) startClients() *clients {
	ctx, end := context.WithCancel(w.t.Context())
	c := &clients{w: *w, end: end}
	for i := range 4 {
		header := map[string]string{}
		if i%2 == 0 {
			header["Connection"] = "close"
		}
		c.all.Go(func() { c.submit(ctx, header) })
		c.all.Go(func() { c.read(ctx, header) })
	}
	return c
}

// submit makes a task and waits for its end, again and again.
func (c *clients) submit(ctx context.Context, header map[string]string) {
	for ctx.Err() == nil {
		one := job{model: theta, directive: "duration=2s", noHook: true, idemKey: randomText(20), header: header}
		r, t := c.w.request(one)
		a, ok := c.do(r)
		if !ok {
			continue
		}
		var err error
		if t.id, err = taskID(a); err != nil {
			c.failed(err)
			continue
		}
		c.mu.Lock()
		c.made = append(c.made, t)
		c.mu.Unlock()
		c.do(c.reading(t.id+"?wait=10", header))
	}
}

// read reads a task twenty times a second.
func (c *clients) read(ctx context.Context, header map[string]string) {
	for tick := time.Tick(50 * time.Millisecond); ctx.Err() == nil; <-tick {
		c.do(c.reading(c.w.tasks[0].id, header))
	}
}

func (c *clients) reading(task string, header map[string]string) request {
	return request{method: http.MethodGet, url: c.w.apiURLs[0] + "/v1/tasks/" + task, key: c.w.key, header: header}
}

// do sends a request and counts it.
func (c *clients) do(r request) (a answer, ok bool) {
	a, err := r.do(c.w.t.Context())
	if err == nil && a.status != http.StatusOK {
		err = fmt.Errorf("%s %s: %d %s", r.method, r.url, a.status, a.body)
	}
	if err != nil {
		c.failed(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sent++
	return a, err == nil
}

func (c *clients) failed(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.errs = append(c.errs, err)
}

// stop waits until the clients have finished their current work.
func (c *clients) stop() {
	c.end()
	c.all.Wait()
}

// TestBacklogForKEDA checks that the queries of the overlay's triggers, as KEDA's scaler sends
// them to Temporal, return the backlog of the queues while no worker runs.
func TestBacklogForKEDA(t *testing.T) {
	t.Parallel()
	const tasks = 20
	manifests, err := kubernetes.Load("../../deploy/kubernetes/keda")
	if err != nil {
		t.Fatal(err)
	}
	scaled, err := kubernetes.Named[*kubernetes.ScaledObject](manifests, "mediagate-worker")
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, options{shape: production, workersOff: true})
	w.submitMany(tasks, job{model: theta, noHook: true})
	temporal := w.dial()
	t.Cleanup(temporal.Close)
	types := map[string]enumspb.TaskQueueType{
		"workflow": enumspb.TASK_QUEUE_TYPE_WORKFLOW, "activity": enumspb.TASK_QUEUE_TYPE_ACTIVITY,
	}
	backlog := func(trigger kubernetes.Trigger) (waiting int64, err error) {
		for kind := range strings.SplitSeq(trigger.Metadata.QueueTypes, ",") {
			about, err := temporal.WorkflowService().DescribeTaskQueue(t.Context(), &workflowservice.DescribeTaskQueueRequest{
				Namespace: w.namespace, TaskQueue: &taskqueuepb.TaskQueue{Name: trigger.Metadata.TaskQueue},
				TaskQueueType: types[kind], ReportStats: true,
			})
			if err != nil {
				return 0, err
			}
			waiting += about.GetStats().GetApproximateBacklogCount()
		}
		return waiting, nil
	}
	eventually(t, recoverTime, "the queue of the first trigger holds the tasks", func() error {
		waiting, err := backlog(scaled.Spec.Triggers[0])
		if err == nil && waiting < tasks {
			err = fmt.Errorf("%d wait", waiting)
		}
		return err
	})
	for _, trigger := range scaled.Spec.Triggers[1:] {
		if waiting, err := backlog(trigger); err != nil || waiting != 0 {
			t.Errorf("in %s %d wait, %v", trigger.Metadata.TaskQueue, waiting, err)
		}
	}
	w.workers[0].start(t)
	w.verify(recoverTime)
}
