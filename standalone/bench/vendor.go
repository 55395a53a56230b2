package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"time"

	"github.com/mediagate/mediagate/sandbox/sample"
)

const (
	klingPrefix     = "/kling"
	dashscopePrefix = "/dashscope/api/v1"

	videoFile = "/media/video.mp4"
	imageFile = "/media/image.png"
	largeFile = "/media/large.mp4"

	largeBytes = 160 << 20
	never      = 1000 * time.Hour
)

// vendor answers at once, in the protocols of Kling and DashScope. Unlike the
// sandbox it judges nothing and writes nothing down: it is there to cost as
// little as a vendor can.
type vendor struct {
	url   string
	close func()

	mu    sync.Mutex
	takes func() time.Duration // how long a new job takes
	calls bool                 // the customer is called back at the end of a job
	jobs  map[string]vendorJob // by the vendor's id
	gaps  []time.Duration      // between two polls of a job
}

// vendorJob is when what happened to a job.
type vendorJob struct{ accepted, ends, polled time.Time }

func startVendor() *vendor {
	video, image := sample.Video(sample.VideoSpec{Width: 320, Height: 180, Seconds: 5}), sample.Image(256, 256)
	large := sample.Padded(video, largeBytes)
	v := &vendor{}
	v.reset(func() time.Duration { return 0 }, false)
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+klingPrefix+"/v1/videos/text2video", v.handleSubmit)
	mux.HandleFunc("GET "+klingPrefix+"/v1/videos/text2video/{id}", v.handlePoll)
	mux.HandleFunc("POST "+dashscopePrefix+"/services/aigc/multimodal-generation/generation", v.handleImage)
	file := func(path, mime string, open func() io.ReadSeeker) {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", mime)
			http.ServeContent(w, r, "", time.Time{}, open())
		})
	}
	file(videoFile, "video/mp4", func() io.ReadSeeker { return bytes.NewReader(video) })
	file(imageFile, "image/png", func() io.ReadSeeker { return bytes.NewReader(image) })
	file(largeFile, "video/mp4", func() io.ReadSeeker { return io.NewSectionReader(large, 0, large.Size()) })
	server := httptest.NewServer(mux)
	v.url, v.close = server.URL, server.Close
	return v
}

// reset forgets all jobs, and says how long new ones take and whether the
// customer is called back.
func (v *vendor) reset(takes func() time.Duration, calls bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.takes, v.calls, v.jobs, v.gaps = takes, calls, map[string]vendorJob{}, nil
}

// job is the job for our task; the zero value if there is none.
func (v *vendor) job(taskID string) vendorJob {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.jobs["job-"+taskID]
}

// taken is how many jobs the vendor has.
func (v *vendor) taken() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return len(v.jobs)
}

// takeGaps returns the gaps between polls since it was called last.
func (v *vendor) takeGaps() []time.Duration {
	v.mu.Lock()
	defer v.mu.Unlock()
	gaps := v.gaps
	v.gaps = nil
	return gaps
}

func (v *vendor) handleSubmit(w http.ResponseWriter, r *http.Request) {
	var body struct {
		ExternalID  string `json:"external_task_id"`
		CallbackURL string `json:"callback_url"`
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	id, now := "job-"+body.ExternalID, time.Now()
	v.mu.Lock()
	if _, again := v.jobs[id]; !again {
		takes := v.takes()
		v.jobs[id] = vendorJob{accepted: now, ends: now.Add(takes)}
		if v.calls && body.CallbackURL != "" {
			time.AfterFunc(takes, func() { callBack(body.CallbackURL) })
		}
	}
	v.mu.Unlock()
	answer(w, `{"code":0,"message":"SUCCEED","request_id":"r","data":{"task_id":"`, id, `","task_status":"submitted"}}`)
}

// callBack calls a customer. Whoever does not answer is not called again.
func callBack(address string) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, strings.NewReader("{}"))
	if err != nil {
		return
	}
	if resp, err := http.DefaultClient.Do(req); err == nil {
		resp.Body.Close()
	}
}

func (v *vendor) handlePoll(w http.ResponseWriter, r *http.Request) {
	id, now := r.PathValue("id"), time.Now()
	v.mu.Lock()
	job, known := v.jobs[id]
	if !job.polled.IsZero() {
		v.gaps = append(v.gaps, now.Sub(job.polled))
	}
	job.polled = now
	if !known {
		job.ends = now.Add(never) // staged: it was never submitted here
	}
	v.jobs[id] = job
	v.mu.Unlock()
	if now.Before(job.ends) {
		answer(w, `{"code":0,"message":"SUCCEED","request_id":"r","data":{"task_id":"`, id, `","task_status":"processing"}}`)
		return
	}
	answer(w, `{"code":0,"message":"SUCCEED","request_id":"r","data":{"task_id":"`, id,
		`","task_status":"succeed","task_result":{"videos":[{"url":"`, v.url+videoFile, `","duration":"5"}]}}}`)
}

func (v *vendor) handleImage(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	answer(w, `{"request_id":"r","output":{"choices":[{"message":{"content":[{"image":"`, v.url+imageFile, `"}]}}]}}`)
}

func answer(w http.ResponseWriter, parts ...string) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, strings.Join(parts, "")) //nolint:gosec // JSON, for the adapter alone
}
