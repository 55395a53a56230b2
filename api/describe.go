package api

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/api/openapi"
	"github.com/mediagate/mediagate/catalog"
	"github.com/mediagate/mediagate/view"
)

// description is what the OpenAPI document says of a route beside what follows
// from its row in the table: path, method, who may call, errors of reading the
// body, and the body itself where the path takes submits.
type description struct {
	id      string // the operation's, and of the schema of its body
	tag     tag
	summary string
	about   string
	query   []parameter // all that the handler can read, see query
	header  []parameter
	dialect []parameter // of the query, for clients of other services: words alone tell of them
	body    any         // what it takes, for instance, where that is no submit
	answers []answer
	errors  []mediagate.Kind // of the handler itself
}

// streams reports whether the answer is what was asked for, and no task.
func (d *description) streams() bool {
	return slices.ContainsFunc(d.answers, func(a answer) bool { return len(a.files) > 0 })
}

// parameter is what a call takes in its path, query or header.
type parameter struct {
	name, about string
	required    bool
	schema      *openapi.Schema
}

// answer is one that is no error. The type of the body is its schema, and its
// value the example.
type answer struct {
	status  int
	about   string
	body    any
	part    bool     // it has some of the fields of the answer before it
	media   string   // its type, where it is not JSON; the body is then a text
	files   []string // types of a body that is a file, instead of body
	headers []string // of responseHeaders
}

// mediaType is that of the body.
func (a answer) mediaType() string { return cmp.Or(a.media, openapi.JSON) }

// tag is a group of routes.
type tag string

const (
	tagSubmits  tag = "Submits"
	tagUploads  tag = "Uploads"
	tagTasks    tag = "Tasks"
	tagModels   tag = "Models"
	tagBalances tag = "Balances"
	tagKeys     tag = "Keys"
	tagWebhooks tag = "Webhooks"
	tagService  tag = "Service"
)

// tags in the order of the document.
var tags = []openapi.Tag{
	{Name: string(tagSubmits), Description: "Ask for media. A submit is answered with the id of a task, which ends by itself."},
	{Name: string(tagUploads), Description: "Give pictures a link that submits can name."},
	{Name: string(tagModels), Description: "Learn what can be asked for: which models there are, and what their requests may hold."},
	{Name: string(tagTasks), Description: "Read tasks, wait for them, cancel and erase them."},
	{Name: string(tagBalances), Description: "What can still be spent, and what was."},
	{Name: string(tagKeys), Description: "Manage the keys of the account, with a key that has the scope for it."},
	{Name: string(tagWebhooks), Description: "Ends of tasks that are posted to you, signed."},
	{Name: string(tagService), Description: "The state and the description of the service itself."},
}

// pathParameters are those of all paths.
var pathParameters = map[string]parameter{
	"name": {about: "The file's name, as it is in its link.", schema: &openapi.Schema{
		Type: "string", More: map[string]any{"examples": []string{exampleFile}},
	}},
	"task_id": {about: "The task's id, as the submit answered it.", schema: &openapi.Schema{
		Type: "string", More: map[string]any{"examples": []string{exampleTaskID}},
	}},
	"key_id": {about: "The key's id, which is no secret.", schema: &openapi.Schema{
		Type: "string", More: map[string]any{"examples": []string{exampleKeyID}},
	}},
	"model": {about: "The model's id or alias.", schema: &openapi.Schema{
		Type: "string", More: map[string]any{"examples": []string{"alpha-v3"}},
	}},
}

func requiredParameter(name, about string) parameter {
	p := textParameter(name, about)
	p.required = true
	return p
}

func textParameter(name, about string) parameter {
	return parameter{name: name, about: about, schema: &openapi.Schema{Type: "string"}}
}

func intParameter(name, about string, least, most, absent int) parameter {
	s := &openapi.Schema{Type: "integer", Minimum: &least, Maximum: &most}
	if absent != 0 {
		s.Default = absent
	}
	return parameter{name: name, about: about, schema: s}
}

func wordParameter(name, about string, words ...string) parameter {
	s := &openapi.Schema{Type: "string"}
	for _, word := range words {
		s.Enum = append(s.Enum, word)
	}
	return parameter{name: name, about: about, schema: s}
}

func timeParameter(name, about string) parameter {
	return parameter{name: name, about: about + " Unix seconds or RFC 3339.", schema: &openapi.Schema{OneOf: []*openapi.Schema{
		{Type: "integer", Minimum: new(int), Maximum: new(maxUnix)},
		{Type: "string", More: map[string]any{"format": "date-time"}},
	}}}
}

// momentParameter is a time that may be a date.
func momentParameter(name, about string) parameter {
	p := timeParameter(name, about)
	p.about = about + " A date such as 2026-03-01, which begins at midnight in UTC, Unix seconds or RFC 3339."
	p.schema.OneOf[1] = &openapi.Schema{Type: "string", More: map[string]any{"pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}([Tt].+)?$"}}
	return p
}

// listParameter takes several words, with commas between them.
func listParameter(name, about string, words ...string) parameter {
	word := "(" + strings.Join(words, "|") + ")"
	return parameter{name: name, about: about, schema: &openapi.Schema{Type: "string", More: map[string]any{
		"pattern": "^" + word + "(," + word + ")*$", "examples": []string{strings.Join(words[:2], ",")},
	}}}
}

// idempotencyKey is the header that every submit takes.
var idempotencyKey = parameter{
	name:  idempotencyHeader,
	about: "Makes the submit safe to repeat: the same key, path and body get the first acknowledgement again, and nothing is charged or started twice. Another path or body under the same key is a 409.",
	schema: &openapi.Schema{Type: "string", More: map[string]any{
		"minLength": 1, "maxLength": maxIdempotencyKey, "pattern": "^[ -~]+$",
	}},
}

// The values of examples.
const (
	exampleTaskID    = taskPrefix + "01KAJ5XW4M9Q7T2C8N6BVRE3HD"
	exampleRequestID = "req_01KAJ5XW3B8F6S1A7M5ZTQD2GC"
	exampleCreated   = 1772366400
	exampleFile      = "1772366400-K5QWXAB3RZ7MTN2V4EJYDLGH6U.png"
	exampleSeconds   = 88.5
)

func exampleTask() view.Task {
	seconds := exampleSeconds
	return view.Task{
		ID: exampleTaskID, Status: mediagate.StatusCompleted, Model: "alpha-v3", Type: mediagate.TypeVideo, Progress: 100,
		Created: exampleCreated, Completed: exampleCreated + 88, EstimatedTime: 120, ActualTime: &seconds,
		Cost: "0.42", CreditsCost: "420", Reference: "order 7",
		Result: &view.Result{Videos: []view.Item{{
			URL: []string{"https://media.example.com/results/video.mp4"}, ExpiresAt: exampleCreated + 604800,
			Width: 1280, Height: 720, Duration: 5.04, SizeBytes: 1834201, MimeType: "video/mp4",
		}}},
	}
}

func exampleMusicTask() view.Task {
	const song = "https://media.example.com/results/song.mp3"
	t := exampleTask()
	text := func(s string) *string { return &s }
	t.Model, t.Type = "music-a", mediagate.TypeMusic
	t.Result = &view.Result{
		Audios: []view.Item{{
			URL: []string{song}, ExpiresAt: exampleCreated + 604800, Duration: 131.16, SizeBytes: 2098560, MimeType: "audio/mpeg",
		}},
		Music: []view.Clip{view.Song{
			AudioID: "dae4ae5d-2b51-4af1-b286-1a4473ef4dba", Title: text("Quiet lake"), DurationSeconds: text("131.16"),
			CreateTime: "2026-03-01T12:01:12Z", Lyrics: text("A boat on a quiet lake"), Tags: text("folk"), AudioURL: text(song),
			Status: "completed",
		}},
	}
	return t
}

func exampleOpenTask(cancelled bool) view.Task {
	return view.Task{
		ID: exampleTaskID, Status: mediagate.StatusProcessing, Model: "alpha-v3", Type: mediagate.TypeVideo, Progress: 40,
		Created: exampleCreated, EstimatedTime: 120, Cost: "0", CreditsCost: "0", EstimatedCost: "0.42",
		CancelRequested: cancelled,
	}
}

func exampleArt() view.Art {
	at := "https://media.example.com/results/"
	return view.Art{
		ID: exampleTaskID, Status: view.ArtSuccess, Action: "IMAGINE", Progress: "100%", GridImageURL: at + "grid.png",
		ImageURLs: []string{at + "0.png", at + "1.png", at + "2.png", at + "3.png"},
		Buttons:   []mediagate.Button{{CustomID: "MJ::JOB::upsample::1::6b1e0d0c-5d0f-4f0e-9a53-0e2f3a1d7c55", Label: "U1"}},
		Prompt:    "A red boat on a quiet lake at dawn", Model: "art", Type: mediagate.TypeArt, Cost: "0.04", CreditsCost: "40",
	}
}

func exampleBalance() []answer {
	return []answer{
		{status: http.StatusOK, about: "The balance.", body: tokenBalance{true, "12.5", 12500, "3.75", 3750, false}},
		{status: http.StatusOK, about: "What could not be looked up, as the balance of an unknown key.", body: balanceTrouble{Message: noRecord}},
	}
}

func exampleUserBalance() []answer {
	return []answer{
		{status: http.StatusOK, about: "The balance.", body: userBalance{true, "112.5", 112500, "37.5", "37500"}},
		{status: http.StatusOK, about: "What could not be looked up.", body: balanceTrouble{Message: noUser}},
	}
}

func exampleSecret() []answer {
	return []answer{{
		status: http.StatusOK, about: "The secret.", headers: []string{"Cache-Control"},
		body: webhookSecret{Secret: "whsec_" + strings.Repeat("0", 43) + "="},
	}}
}

// acknowledged is the answer to every submit.
func acknowledged() []answer {
	return []answer{{
		status: http.StatusOK, about: "The task was taken in.", headers: []string{replayedHeader},
		body: acknowledgement{http.StatusOK, []submittedTask{{"submitted", exampleTaskID}}},
	}}
}

// descriptions are those of the public routes, by method and path. The admin
// API is its operators' own, and is in no document.
func descriptions() map[string]*description {
	first, last, model := exampleTaskID, exampleTaskID, "alpha-v3"
	language := wordParameter("language", "The language of the error's message; English without it.", view.Languages()...)
	return map[string]*description{
		"POST /v1/videos/generations": {
			id: "createVideo", tag: tagSubmits, summary: "Submit a video", answers: acknowledged(),
			about: "The model decides which fields there are.",
		},
		"POST /v1/images/generations": {
			id: "createImage", tag: tagSubmits, summary: "Submit an image", answers: acknowledged(),
			about: "The model decides which fields there are.",
		},
		"POST " + speechPath: {
			id: "createSpeech", tag: tagSubmits, summary: "Have a text spoken",
			about: "Answered with the sound itself while it is made; there is no task. Charged by the characters of the text, once all is sent or the client has left. " +
				"A connection that is cut before the end of the body means that it broke, and that nothing is charged. An Idempotency-Key is not looked at.",
			answers: []answer{{status: http.StatusOK, about: "The sound, in the format that was asked for.", files: soundMimeTypes()}},
			errors:  []mediagate.Kind{mediagate.KindPayment, mediagate.KindModerated, mediagate.KindRateLimited, mediagate.KindBadGateway},
		},
		"POST /v1/music/generations": {
			id: "createMusic", tag: tagSubmits, summary: "Submit a song", answers: acknowledged(),
			about: "The model decides which fields there are. Its id counts in any letter case.",
		},
		"POST /v1/music/generations/remaster": {
			id: "remasterMusic", tag: tagSubmits, summary: "Improve the quality of a song", answers: acknowledged(),
		},
		"POST /v1/music/generations/stemsAll": {
			id: "createStems", tag: tagSubmits, summary: "Take a song apart into its tracks", answers: acknowledged(),
		},
		"POST /v1/music/generations/createVoice": {
			id: "createVoice", tag: tagSubmits, summary: "Make a voice for later songs", answers: acknowledged(),
		},
		"POST /v1/music/generations/replaceMusic": {
			id: "replaceMusic", tag: tagSubmits, summary: "Replace a section of a song", answers: acknowledged(),
		},
		"POST /v1/music/generations/sample": {
			id: "sampleMusic", tag: tagSubmits, summary: "Make a song from a sample of another", answers: acknowledged(),
		},
		"POST /v1/music/generations/stemsMusicB": {
			id: "createFlowStems", tag: tagSubmits, summary: "Take a song of music-b apart into its tracks", answers: acknowledged(),
		},
		"POST /v1/music/generations/replaceMusicB": {
			id: "replaceFlowMusic", tag: tagSubmits, summary: "Replace a section of a song of music-b", answers: acknowledged(),
		},
		"POST " + artPath: {
			id: "createArt", tag: tagSubmits, summary: "Submit an art task", answers: acknowledged(),
			about: "Four pictures from text.",
		},
		"POST " + artPath + "/imagine": {
			id: "createImagine", tag: tagSubmits, summary: "Submit an art task, by its action's name", answers: acknowledged(),
			about: "The same as the path above it.",
		},
		"POST " + artPath + "/upscale": {
			id: "createUpscale", tag: tagSubmits, summary: "Take one picture out of four", answers: acknowledged(),
			about: "index or custom_id says which.",
		},
		"POST " + artPath + "/variation": {
			id: "createVariation", tag: tagSubmits, summary: "Vary one of four pictures", answers: acknowledged(),
			about: "index or custom_id says which.",
		},
		"POST " + artPath + "/high-variation": {
			id: "createHighVariation", tag: tagSubmits, summary: "Vary a picture much", answers: acknowledged(),
		},
		"POST " + artPath + "/low-variation": {
			id: "createLowVariation", tag: tagSubmits, summary: "Vary a picture a little", answers: acknowledged(),
		},
		"POST " + artPath + "/inpaint": {
			id: "createInpaint", tag: tagSubmits, summary: "Paint a part of a picture anew", answers: acknowledged(),
			about: "The task comes to wait in MODAL for the mask, which the modal call gives.",
		},
		"POST " + artPath + "/reroll": {
			id: "createReroll", tag: tagSubmits, summary: "Make the same anew", answers: acknowledged(),
		},
		"POST " + artPath + "/pan": {
			id: "createPan", tag: tagSubmits, summary: "Let a picture grow to one side", answers: acknowledged(),
		},
		"POST " + artPath + "/zoom": {
			id: "createZoom", tag: tagSubmits, summary: "See more around a picture", answers: acknowledged(),
		},
		"POST " + artPath + "/describe": {
			id: "createDescription", tag: tagSubmits, summary: "Describe a picture in words", answers: acknowledged(),
			about: "The completed task has result.descriptions.",
		},
		"POST " + artPath + "/blend": {
			id: "createBlend", tag: tagSubmits, summary: "Make one picture of several", answers: acknowledged(),
		},
		"POST " + catalog.ModalEndpoint: {
			id: "createModal", tag: tagSubmits, summary: "Give an art task what it waits for", answers: acknowledged(),
			about:  "A task in MODAL goes on with these parameters, under the same id and at no further cost. Of several calls one is taken. Without one the task fails after 30 minutes and is refunded.",
			errors: []mediagate.Kind{mediagate.KindConflict},
		},
		"POST " + quotePath: {
			id: "createQuote", tag: tagSubmits, summary: "Price a submit",
			about: "Takes the body of any submit, with the submit's path as endpoint. Nothing is charged or started. The answer equals the hold of that submit.",
			answers: []answer{{status: http.StatusOK, about: "The price.", body: quote{
				"0.42", "420", "USD", []quoteLine{{"alpha-v3 std", 5, "0.084", "0.42"}},
			}}},
			errors: []mediagate.Kind{mediagate.KindForbidden},
		},
		"POST /v1/uploads/images": {
			id: "uploadImage", tag: tagUploads, summary: "Upload an image",
			about: "JPEG, PNG, WebP or GIF, of at most 20 MB, known by its content. Metadata is left out, pixels are not touched. " +
				"The link works for 72 hours, for everybody who has it; submits take it wherever they take the URL of an image.",
			answers: []answer{{status: http.StatusOK, about: "The file is stored.", headers: linkHeaders, body: uploadResult{
				"https://api.example.com/files/" + exampleFile, "fox.png", "image/png", 834201, exampleCreated,
			}}},
			errors: []mediagate.Kind{mediagate.KindPayment, mediagate.KindRateLimited},
		},
		"GET " + filePath: {
			id: "getFile", tag: tagUploads, summary: "Read an uploaded image",
			about: "Whole, or one range of it: of several ranges none is looked at.",
			header: []parameter{
				textParameter("Range", "The part that is wanted, as bytes=0-1023."),
				textParameter("If-Range", "The ETag, or the time, with which the range is wanted; else the whole file is."),
				ifNoneMatch,
			},
			answers: []answer{
				{status: http.StatusOK, about: "The image.", files: words(uploadFormats), headers: append([]string{"Accept-Ranges", "Last-Modified"}, fileHeaders...)},
				{status: http.StatusPartialContent, about: "A part of it.", files: words(uploadFormats), headers: append([]string{"Accept-Ranges", "Last-Modified", "Content-Range"}, fileHeaders...)},
				{status: http.StatusNotModified, about: "It is what the client has.", headers: fileHeaders},
				{status: http.StatusPreconditionFailed, about: "It is not what If-Match or If-Unmodified-Since asks for.", headers: append([]string{"Last-Modified"}, fileHeaders...)},
				{status: http.StatusRequestedRangeNotSatisfiable, about: "The file has no such part.", headers: append([]string{"Content-Range"}, shieldHeaders...)},
			},
			errors: []mediagate.Kind{mediagate.KindNotFound, mediagate.KindUnavailable},
		},

		"GET /v1/models": {
			id: "listModels", tag: tagModels, summary: "List models",
			about: "The models that the key may use. Clients of Anthropic and of Gemini get pages in the shape of their own service, which are not described here. " +
				"With the header anthropic-version it is Anthropic's list, with limit, after_id and before_id; the key may come as x-api-key. " +
				"With a key as x-goog-api-key, or in the query as key, it is Gemini's, as GET /v1beta/models has it.",
			query: []parameter{
				textParameter("expand", "category: with category and tags; parameters: with the schema of requests, too. Both may be given, with a comma between. Another word: without either."),
				wordParameter("category", "Models of this category. Only with expand.", categories...),
			},
			dialect: append([]parameter{{name: "limit"}, {name: "after_id"}, {name: "before_id"}}, geminiPage...),
			header:  []parameter{ifNoneMatch},
			answers: []answer{
				{status: http.StatusOK, about: "The list.", headers: cachedHeaders, body: modelList[modelItem]{
					true, "list", []modelItem{exampleModel()},
				}},
				notModified,
			},
		},
		"GET /v1beta/models": {
			id: "listModelsForGemini", tag: tagModels, summary: "List models in Gemini's shape",
			query: geminiPage, header: []parameter{ifNoneMatch}, answers: exampleGemini(),
		},
		"GET /v1/models/:model/schema": {
			id: "getModelContract", tag: tagModels, summary: "All that is to be known to use a model",
			query: []parameter{contractEndpoint}, header: []parameter{ifNoneMatch}, answers: exampleContract(),
			errors: []mediagate.Kind{mediagate.KindNotFound},
		},
		"GET /v1/model-schema": {
			id: "getModelContractByQuery", tag: tagModels, summary: "The same, of a model whose id has a slash",
			query:  []parameter{requiredParameter("model", "The model's id or alias."), contractEndpoint},
			header: []parameter{ifNoneMatch}, answers: exampleContract(),
			errors: []mediagate.Kind{mediagate.KindNotFound},
		},

		"GET /v1/tasks": {
			id: "listTasks", tag: tagTasks, summary: "List tasks", about: "The tasks of the account, newest first. All filters must match.",
			query: []parameter{
				intParameter("limit", "How many at most.", 1, maxLimit, defaultLimit),
				textParameter("after", "The id of the task after which the page begins: last_id of the page before."),
				wordParameter("status", "Tasks in this state.", words(mediagate.Statuses())...),
				textParameter("model", "Tasks that named this model, or alias."),
				wordParameter("type", "Tasks of this type.", words(mediagate.TaskTypes())...),
				textParameter("reference", "Tasks with this metadata.reference."),
				timeParameter("created_after", "Tasks that are younger."),
				timeParameter("created_before", "Tasks that are older."),
			},
			answers: []answer{{status: http.StatusOK, about: "A page of tasks.", headers: linkHeaders, body: taskList{
				Object: "list", Data: []view.Task{exampleTask()}, FirstID: &first, LastID: &last,
			}}},
		},
		"GET /v1/tasks/:task_id": {
			id: "getTask", tag: tagTasks, summary: "Read a task, or wait for its end",
			about: "A task that is malformed, unknown or another account's is a 400 in the same words.",
			query: []parameter{
				language,
				intParameter("wait", "Answer when the task has ended, or after so many seconds.", 1, int(longestWait.Seconds()), 0),
			},
			answers: []answer{{status: http.StatusOK, about: "The task.", headers: linkHeaders, body: wrappedTask{http.StatusOK, exampleTask()}}},
			errors:  []mediagate.Kind{mediagate.KindRateLimited},
		},
		"GET /v1/tasks/:task_id/events": {
			id: "streamTask", tag: tagTasks, summary: "Follow a task",
			about: "Server-sent events: one of the name task for each visible change, with the task as its data and its version as its id. " +
				"The stream ends with the task. Lines that begin with a colon say that the connection lives.",
			query: []parameter{language},
			header: []parameter{textParameter(lastEventIDHeader,
				"The id of the last event that was received: what is newer follows.")},
			answers: []answer{
				{status: http.StatusOK, about: "The events.", headers: []string{"Cache-Control"}, media: eventStream, body: "id: 7\nevent: task\ndata: {\"id\":\"" + exampleTaskID + "\"}\n\n"},
				{status: http.StatusNoContent, about: "The task has ended, and the client has seen its end."},
			},
			errors: []mediagate.Kind{mediagate.KindRateLimited},
		},
		"GET /v1/music/tasks/:task_id": {
			id: "getMusicTask", tag: tagTasks, summary: "Read a music task",
			about:   "Knows music tasks only, and calls pending ones submitted.",
			answers: []answer{{status: http.StatusOK, about: "The task.", headers: linkHeaders, body: wrappedMusicTask{http.StatusOK, exampleMusicTask().Music()}}},
		},
		"GET /v1/tasks/:task_id/deliveries": {
			id: "listDeliveries", tag: tagTasks, summary: "List the deliveries of a callback",
			about: "The attempts to deliver the task's callback, in their order: at most the newest 100. Attempts count from 1 in each round; the end of the task begins the first one, each redelivery another.",
			query: []parameter{intParameter("limit", "How many at most, the newest.", 1, maxLimit, maxLimit)},
			answers: []answer{{status: http.StatusOK, about: "The attempts.", body: deliveryList{
				Object: "list", Data: []deliveryAttempt{exampleDelivery()},
			}}},
		},
		"POST /v1/tasks/:task_id/redeliver": {
			id: "redeliver", tag: tagTasks, summary: "Deliver the callback again",
			about: "Begins one new round of deliveries of the same payload within seconds; links that are older than 24 hours are signed anew. " +
				"A task that has not ended, that has no callback, or whose callback was dropped, is a 409.",
			answers: []answer{{
				status: http.StatusAccepted, about: "The task, whose callback is pending.", headers: linkHeaders,
				body: wrappedTask{http.StatusAccepted, exampleTask()},
			}, {
				status: http.StatusAccepted, about: "What a key without the scope read sees of it.",
				body: wrappedStub{http.StatusAccepted, taskStub{exampleTask().ID, mediagate.StatusCompleted}}, part: true,
			}},
			errors: []mediagate.Kind{mediagate.KindConflict, mediagate.KindRateLimited},
		},
		"POST /v1/tasks/:task_id/cancel": {
			id: "cancelTask", tag: tagTasks, summary: "Cancel a task",
			about: "The task's end follows within seconds. It will not complete, and costs nothing.",
			answers: []answer{{
				status: http.StatusAccepted, about: "The task, which is about to be cancelled.", headers: linkHeaders,
				body: wrappedTask{http.StatusAccepted, exampleOpenTask(true)},
			}, {
				status: http.StatusAccepted, about: "What a key without the scope read sees of it.",
				body: wrappedStub{http.StatusAccepted, taskStub{exampleOpenTask(true).ID, mediagate.StatusProcessing}}, part: true,
			}},
			errors: []mediagate.Kind{mediagate.KindConflict},
		},
		"DELETE /v1/tasks/:task_id": {
			id: "eraseTask", tag: tagTasks, summary: "Erase a task",
			about: "One that has ended: its files, its request, what came of it and its callback's body are gone for good, and its id is unknown from then on. What it cost stays, in balances and statistics. " +
				"A callback that is still to be delivered is dropped. A task that has not ended, and one that a task works on which has not ended, is a 409.",
			answers: []answer{{status: http.StatusNoContent, about: "It is erased."}},
			errors:  []mediagate.Kind{mediagate.KindConflict},
		},
		"GET /v1/artgen/:task_id": {
			id: "getArtTask", tag: tagTasks, summary: "Read an art task in its own words",
			about:   "With the buttons, whose customId later requests may name. Ids that are malformed, unknown, another account's or of no art task are a 404 in the same words.",
			answers: []answer{{status: http.StatusOK, about: "The task.", headers: linkHeaders, body: exampleArt()}},
			errors:  []mediagate.Kind{mediagate.KindNotFound},
		},
		"GET /v1/images/generations/:task_id": {
			id: "getLegacyTask", tag: tagTasks, summary: "Read a task in the older form", about: "Prefer the unified task.",
			answers: []answer{{status: http.StatusOK, about: "The task.", headers: linkHeaders, body: view.Legacy{
				TaskID: exampleTaskID, Status: "completed", URL: "https://media.example.com/results/image.png", Format: "png",
				Metadata: &view.LegacyMetadata{MimeType: "image/png", Width: 1024, Height: 1024, SizeBytes: 834201, ExpiresAt: exampleCreated},
			}}},
		},

		"GET /v1/balance": {id: "getTokenBalance", tag: tagBalances, summary: "The key's balance", answers: exampleBalance()},
		"GET /balance": {
			id: "getTokenBalanceShort", tag: tagBalances, summary: "The key's balance, by a shorter path", answers: exampleBalance(),
		},
		"GET /v1/user/balance": {id: "getUserBalance", tag: tagBalances, summary: "The account's balance", answers: exampleUserBalance()},
		"GET /user/balance": {
			id: "getUserBalanceShort", tag: tagBalances, summary: "The account's balance, by a shorter path", answers: exampleUserBalance(),
		},

		"GET /v1/usage": {
			id: "getUsage", tag: tagBalances, summary: "What was used",
			about: "Charges and numbers of tasks of the account, speeches among them. A task is counted once: while it is open by the time of its submit, then by that of its end, " +
				"with what was charged. With Accept: text/csv the rows come as a file.",
			query: []parameter{
				momentParameter("from", fmt.Sprintf("What was used from then on; without it the %d days before the end of the time, and the part of the day before them. At most %d days before the end.", usageDays, maxUsageDays)),
				momentParameter("to", "And before then; without it until now."),
				listParameter("group_by", "What to tell apart, one or several; without it all is in one row. Days are those of UTC.", words(clientUsage())...),
			},
			answers: []answer{
				{status: http.StatusOK, about: "The rows.", body: usageList{Object: "list", Data: []usageItem{{
					Day: new("2026-03-01"), Model: &model, Cost: "4.2", CreditsCost: "4200", Tasks: usageTasks{Processing: 1, Completed: 10, Failed: 1},
				}}}},
				{
					status: http.StatusOK, about: "The same as lines, of which the first one has the names.", media: csvType, headers: []string{"Content-Disposition"},
					body: "day,model,cost,credits_cost,pending,processing,completed,failed,cancelled\r\n2026-03-01,alpha-v3,4.2,4200,0,1,10,1,0\r\n",
				},
			},
		},

		"GET " + keysPath:                      describeKeyList(),
		"POST " + keysPath:                     describeKeyCreation(),
		"GET " + keysPath + "/:key_id":         describeKey(),
		"PATCH " + keysPath + "/:key_id":       describeKeyChange(),
		"DELETE " + keysPath + "/:key_id":      describeKeyDeletion(),
		"POST " + keysPath + "/:key_id/rotate": describeKeyRotation(),

		"GET /v1/webhooks/secret": {
			id: "getWebhookSecret", tag: tagWebhooks, summary: "Read the signing secret", answers: exampleSecret(),
		},
		"POST /v1/webhooks/secret": {
			id: "rotateWebhookSecret", tag: tagWebhooks, summary: "Rotate the signing secret", answers: exampleSecret(),
			about:  "The secret before signs beside the new one for a day. Within that day it is a 409, unless forced.",
			query:  []parameter{wordParameter("force", "Drop the secret before at once, though it still signs.", yesNo...)},
			errors: []mediagate.Kind{mediagate.KindConflict},
		},

		"GET /healthz": {
			id: "getHealth", tag: tagService, summary: "Whether the process is alive",
			answers: []answer{{status: http.StatusOK, about: "It is.", body: health{"ok", "1.0.0"}}},
		},
		"GET /readyz": {
			id: "getReadiness", tag: tagService, summary: "Whether requests can be answered",
			answers: []answer{
				{status: http.StatusOK, about: "They can.", body: readiness{Status: "degraded", Degraded: []string{"temporal"}}},
				{status: http.StatusServiceUnavailable, about: "They cannot.", body: readiness{Status: "unavailable", Error: &errorA{
					http.StatusServiceUnavailable, "the database is not reachable", wordServer, exampleRequestID,
				}}},
			},
		},
		"GET " + openAPIPath: {
			id: "getOpenAPI", tag: tagService, summary: "This document",
			about:  "Made from the routes and the models that are in force.",
			header: []parameter{ifNoneMatch},
			answers: []answer{
				{status: http.StatusOK, about: "The document.", headers: cachedHeaders, body: map[string]any{}},
				notModified,
			},
		},
	}
}

// shieldHeaders keep browsers from taking a file for what it is not, and
// fileHeaders go with a file.
var (
	shieldHeaders = []string{"Content-Security-Policy", "Cross-Origin-Resource-Policy", "Referrer-Policy", "X-Content-Type-Options"}
	fileHeaders   = append([]string{"Cache-Control", "Content-Disposition", "ETag"}, shieldHeaders...)
)

// errorWords say when a kind of error is answered, and with what message, for
// instance.
var errorWords = map[mediagate.Kind]struct{ about, message string }{
	mediagate.KindInternal:        {"A fault of ours.", "internal error"},
	mediagate.KindInvalid:         {"The request breaks a rule; the message names the field and the rule.", "duration must be an integer between 3 and 15"},
	mediagate.KindUnauthenticated: {"There is no key, or none that we know.", "No Authorization header"},
	mediagate.KindPayment:         {"The key's quota or the account's balance is less than the quote.", "insufficient balance"},
	mediagate.KindForbidden:       {"The key may not do this: make this call, use this model, or be used from this address.", `this API key may not use model "alpha-v3"`},
	mediagate.KindNotFound:        {"There is no such thing, or it is not the caller's.", "not found"},
	mediagate.KindConflict:        {"The state of the thing forbids it.", "the task has ended"},
	mediagate.KindTooLarge:        {"The body is above its bound.", "the body must be at most 1048576 bytes"},
	mediagate.KindUnsupported:     {"The body is compressed, or otherwise encoded.", `Content-Encoding "gzip" is not taken: send the body as it is`},
	mediagate.KindModerated:       {"The content was refused.", "the content was refused"},
	mediagate.KindRateLimited:     {"Too many requests.", "too many requests"},
	mediagate.KindBadGateway:      {"A vendor failed the call.", "gateway temporarily unavailable"},
	mediagate.KindStalled:         {"The body did not arrive in time. The connection is closed.", "the body did not arrive in time"},
	mediagate.KindUnavailable:     {"A part that we need is away: try again.", "the service is temporarily unavailable, try again"},
}
