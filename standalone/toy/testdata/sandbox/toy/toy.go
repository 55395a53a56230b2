// Package toy plays Toy, a vendor that draws pictures.
package toy

import (
	"net/http"

	"github.com/mediagate/mediagate/sandbox/kernel"
)

// Vendor is Toy with the customer that it has here.
func Vendor() kernel.Vendor {
	const name, key = "toy", "sandbox-toy-key"
	return kernel.Vendor{
		Name:    name,
		Account: kernel.Account{Provider: name, Credentials: map[string]string{"api_key": key}},
		Channel: kernel.Channel{Provider: name, Path: "/toy", Credentials: map[string]string{"api_key": key}},
		Mount:   mount,
	}
}

type toy struct{ *kernel.Service }

func mount(s *kernel.Service) http.Handler {
	t := toy{s}
	mux := http.NewServeMux()
	serve := func(h func(*http.Request, kernel.Account) kernel.Reply) http.HandlerFunc {
		return s.Keyed("Bearer ", h, func(*http.Request) kernel.Reply {
			return refuse(kernel.CallOther, http.StatusUnauthorized, "bad_key")
		})
	}
	mux.Handle("POST /drawings", serve(t.draw))
	mux.Handle("GET /drawings/{id}", serve(t.show))
	return mux
}

func refuse(kind string, status int, code string) kernel.Reply {
	return kernel.Reply{Kind: kind, Status: status, Body: map[string]any{"error": code}}
}

func (t toy) draw(r *http.Request, a kernel.Account) kernel.Reply {
	const longest = 4 << 10
	in, err := kernel.ReadObject(r, longest)
	if err != nil {
		return refuse(kernel.CallSubmit, http.StatusBadRequest, "bad_request")
	}
	in.Only("model", "text", "style")
	j := &kernel.Job{
		ID: kernel.UUID(), Endpoint: "drawings", Model: in.Word("model", "", "toy-1"), Prompt: in.TextMax("text", 100),
		Media: kernel.Media{Kind: "image", Width: 64, Height: 64},
	}
	if style := in.Word("style", "", "plain"); style == "" || j.Model == "" || in.Err() != nil {
		return refuse(kernel.CallSubmit, http.StatusBadRequest, "bad_request")
	}
	return t.Take(a, j, kernel.Refusals{
		Rejected:  refuse(kernel.CallSubmit, http.StatusBadRequest, "bad_request"),
		Moderated: refuse(kernel.CallSubmit, http.StatusBadRequest, "forbidden_content"),
		Broken:    refuse(kernel.CallSubmit, http.StatusInternalServerError, "broken"),
		Busy:      refuse(kernel.CallSubmit, http.StatusTooManyRequests, "busy"),
	}, func(made *kernel.Job) kernel.Reply {
		return kernel.Reply{Kind: kernel.CallSubmit, Status: http.StatusOK, Body: t.body(r, made)}
	})
}

func (t toy) show(r *http.Request, a kernel.Account) kernel.Reply {
	j := t.Find(a, r.PathValue("id"))
	if j == nil {
		return refuse(kernel.CallPoll, http.StatusNotFound, "no_drawing")
	}
	return kernel.Reply{Kind: kernel.CallPoll, Status: http.StatusOK, Job: j.ID, Body: t.body(r, j)}
}

func (t toy) body(r *http.Request, j *kernel.Job) map[string]any {
	body := map[string]any{"id": j.ID, "state": "drawing"}
	switch j.State(t.Now()) {
	case kernel.StateQueued:
		body["state"] = "waiting"
	case kernel.StateSucceeded:
		body["state"], body["picture"] = "drawn", kernel.Base(r)+j.Link(kernel.FileImage)
	case kernel.StateFailed, kernel.StateCancelled:
		body["state"] = "spoilt"
	default: // drawing
	}
	return body
}
