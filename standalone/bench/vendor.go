package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing/fstest"
	"time"

	"github.com/mediagate/mediagate/client"
	"github.com/mediagate/mediagate/sandbox/sample"
)

const (
	klingPrefix     = "/kling"
	dashscopePrefix = "/dashscope/api/v1"

	never = 1000 * time.Hour
)

// vendor answers at once, in the protocols of Kling and DashScope. Unlike the sandbox it checks
// nothing, so that it costs as little as a vendor can.
type vendor struct {
	url string

	mu       sync.Mutex
	takes    func() time.Duration // how long a new job takes
	calls    bool                 // whether the vendor calls the gateway back at the end of a job
	jobs     map[string]job       // by the vendor's id
	pollGaps []time.Duration      // between two polls of a job
}

// job holds the times of a job's events at the vendor.
type job struct{ accepted, made, polled time.Time }

func (b *bench) startVendor() {
	v := &vendor{}
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+klingPrefix+"/v1/videos/text2video", v.handleSubmit)
	mux.HandleFunc("GET "+klingPrefix+"/v1/videos/text2video/{id}", v.handlePoll)
	mux.HandleFunc("POST "+dashscopePrefix+"/services/aigc/multimodal-generation/generation", v.handleImage)
	mux.Handle("GET /media/", http.FileServerFS(fstest.MapFS{
		"media/video.mp4": {Data: sample.Video(sample.VideoSpec{Width: 320, Height: 180, Seconds: 5})},
		"media/image.png": {Data: sample.Image(256, 256)},
	}))
	server := httptest.NewServer(mux)
	b.Cleanup(server.Close)
	v.url = server.URL
	b.vendor = v
}

// reset forgets all jobs. It sets how long new jobs take, and whether the vendor calls the
// gateway back.
func (v *vendor) reset(takes func() time.Duration, calls bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.takes, v.calls, v.jobs, v.pollGaps = takes, calls, map[string]job{}, nil
}

// job returns the job for a task of the gateway, or the zero value if there is none.
func (v *vendor) job(taskID string) job {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.jobs["job-"+taskID]
}

// accepted returns how many jobs the vendor has.
func (v *vendor) accepted() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return len(v.jobs)
}

// finish lets n jobs end, at an even rate of perSecond from now on, and returns the ids of their
// tasks.
func (v *vendor) finish(n, perSecond int) (ids []string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for id, j := range v.jobs {
		if len(ids) == n {
			break
		}
		j.made = time.Now().Add(time.Duration(len(ids)) * time.Second / time.Duration(perSecond))
		v.jobs[id] = j
		ids = append(ids, strings.TrimPrefix(id, "job-"))
	}
	return ids
}

// arrivals returns the times at which jobs were accepted, in order.
func (v *vendor) arrivals() (times []time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, j := range v.jobs {
		times = append(times, j.accepted)
	}
	slices.SortFunc(times, time.Time.Compare)
	return times
}

// takePollGaps returns the gaps between polls since its last call.
func (v *vendor) takePollGaps() []time.Duration {
	v.mu.Lock()
	defer v.mu.Unlock()
	gaps := v.pollGaps
	v.pollGaps = nil
	return gaps
}

func (v *vendor) handleSubmit(w http.ResponseWriter, r *http.Request) {
	var body struct {
		ExternalID  string `json:"external_task_id"`
		CallbackURL string `json:"callback_url"`
	}
	_ = json.NewDecoder(r.Body).Decode(&body) // our own adapter writes valid JSON
	v.mu.Lock()
	defer v.mu.Unlock()
	id, now, takes := "job-"+body.ExternalID, time.Now(), v.takes()
	v.jobs[id] = job{accepted: now, made: now.Add(takes)}
	if v.calls {
		time.AfterFunc(takes, func() {
			gateway := client.Client{URL: body.CallbackURL}
			// If the callback fails, polls find the end.
			_, _ = gateway.Call(context.Background(), http.MethodPost, "", struct{}{}, nil)
		})
	}
	_, _ = fmt.Fprintf(w, `{"code":0,"data":{"task_id":"%s","task_status":"submitted"}}`, id)
}

func (v *vendor) handlePoll(w http.ResponseWriter, r *http.Request) {
	v.mu.Lock()
	defer v.mu.Unlock()
	id, now := r.PathValue("id"), time.Now()
	j := v.jobs[id]
	if !j.polled.IsZero() {
		v.pollGaps = append(v.pollGaps, now.Sub(j.polled))
	}
	j.polled = now
	v.jobs[id] = j
	answer := map[string]any{"task_id": id, "task_status": "processing"}
	if !now.Before(j.made) {
		answer["task_status"] = "succeed"
		answer["task_result"] = map[string]any{
			"videos": []any{map[string]any{"url": v.url + "/media/video.mp4", "duration": "5"}},
		}
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"code": 0, "data": answer})
}

func (v *vendor) handleImage(w http.ResponseWriter, _ *http.Request) {
	_, _ = fmt.Fprintf(w, `{"output":{"choices":[{"message":{"content":[{"image":"%s/media/image.png"}]}}]}}`, v.url)
}
