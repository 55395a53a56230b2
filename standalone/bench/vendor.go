package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
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
	url    string
	server *http.Server
	served chan error
	video  []byte
	image  []byte
	large  *io.SectionReader

	mu    sync.Mutex
	takes func(n int) time.Duration // how long the nth job takes
	calls bool                      // the customer is called back at the end of a job
	jobs  int
	ends  map[string]time.Time // by vendor's id
	watch bool                 // polls are noted
	asked map[string]time.Time // the last poll of each job
	gaps  []time.Duration      // between two polls of a job
}

func startVendor(ctx context.Context) (*vendor, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	v := &vendor{
		url: "http://" + listener.Addr().String(), served: make(chan error, 1),
		video: sample.Video(sample.VideoSpec{Width: 320, Height: 180, Seconds: 5}),
		image: sample.Image(256, 256),
	}
	v.large = sample.Padded(v.video, largeBytes)
	v.reset(func(int) time.Duration { return 0 })
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+klingPrefix+"/v1/videos/text2video", v.handleSubmit)
	mux.HandleFunc("GET "+klingPrefix+"/v1/videos/text2video/{id}", v.handlePoll)
	mux.HandleFunc("POST "+dashscopePrefix+"/services/aigc/multimodal-generation/generation", v.handleImage)
	mux.HandleFunc("GET "+videoFile, v.file("video/mp4", func() io.ReadSeeker { return bytes.NewReader(v.video) }))
	mux.HandleFunc("GET "+imageFile, v.file("image/png", func() io.ReadSeeker { return bytes.NewReader(v.image) }))
	mux.HandleFunc("GET "+largeFile, v.file("video/mp4", func() io.ReadSeeker { return io.NewSectionReader(v.large, 0, v.large.Size()) }))
	v.server = &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	go func() { v.served <- v.server.Serve(listener) }()
	return v, nil
}

func (v *vendor) close() error {
	err := v.server.Close()
	if served := <-v.served; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}

// reset forgets all jobs and says how long new ones take.
func (v *vendor) reset(takes func(n int) time.Duration) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.takes, v.jobs, v.calls = takes, 0, false
	v.ends, v.asked, v.gaps, v.watch = map[string]time.Time{}, map[string]time.Time{}, nil, false
}

// callBack has customers called back at the end of each job until the next reset.
func (v *vendor) callBack() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.calls = true
}

// observe begins or ends the noting of polls, and returns the gaps between
// the polls of each job that were noted.
func (v *vendor) observe(on bool) []time.Duration {
	v.mu.Lock()
	defer v.mu.Unlock()
	gaps := v.gaps
	v.watch, v.gaps = on, nil
	return gaps
}

// taken is how many jobs the vendor has.
func (v *vendor) taken() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.jobs
}

// end is when the job for our task ends at the vendor.
func (v *vendor) end(taskID string) time.Time {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.ends["job-"+taskID]
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
	id := "job-" + body.ExternalID
	v.mu.Lock()
	if _, again := v.ends[id]; !again {
		v.ends[id] = time.Now().Add(v.takes(v.jobs))
		v.jobs++
		if v.calls && body.CallbackURL != "" {
			time.AfterFunc(time.Until(v.ends[id]), func() { v.tell(body.CallbackURL) })
		}
	}
	v.mu.Unlock()
	answer(w, `{"code":0,"message":"SUCCEED","request_id":"r","data":{"task_id":"`, id, `","task_status":"submitted"}}`)
}

// tell calls a customer back. Whoever does not answer is not called again.
func (v *vendor) tell(address string) {
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
	end, known := v.ends[id]
	if v.watch {
		if last, again := v.asked[id]; again {
			v.gaps = append(v.gaps, now.Sub(last))
		}
	}
	v.asked[id] = now
	v.mu.Unlock()
	if !known || now.Before(end) {
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

func (v *vendor) file(mime string, open func() io.ReadSeeker) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", mime)
		http.ServeContent(w, r, "", time.Time{}, open())
	}
}
