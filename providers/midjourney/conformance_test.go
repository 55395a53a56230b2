package midjourney_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/providers"
	"github.com/mediagate/mediagate/providers/providertest"
)

var update = flag.Bool("update", false, "rewrite golden files")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// These are short names for the tables below.
var (
	quote = providertest.Quote
	plain = providertest.Plain
	row   = providertest.RowOf
	coded = providertest.RowWithCode
)

const (
	jobID      = "1735689600000123"
	parentID   = "1735689500000456"
	externalID = "task_01JZZZZZZZZZZZZZZZZZZZZZZZ"

	upscale2 = "MJ::JOB::upsample::2::3dbbd469-36af-4a0f-8f02-df6c579e7011"
)

func retried(reply providertest.Reply) providertest.Row {
	return providertest.Row{Reply: reply, Kind: mediagate.KindCapacity, RetryAfter: 5 * time.Second}
}

// answered returns an answer to a submission.
func answered(status, code int, text, result string) providertest.Reply {
	return plain(status, fmt.Sprintf(`{"code":%d,"description":%s,"result":%s,"properties":{}}`, code, quote(text), quote(result)))
}

// job returns the answer about a job.
func job(id, status, rest string) string {
	return fmt.Sprintf(`{"id":%q,"action":"IMAGINE","status":%s,"prompt":"a red kite","promptEn":"a red kite","state":%q,`+
		`"submitTime":1735689600000,"startTime":null,"finishTime":null,"properties":{"finalPrompt":"a red kite --v 7"}%s}`, id, quote(status), externalID, rest)
}

const (
	fourButtons = `"buttons":[{"customId":"MJ::JOB::upsample::1::u","emoji":"","label":"U1","type":2,"style":2},` +
		`{"customId":"MJ::JOB::upsample::2::u","label":"U2"},{"customId":"MJ::JOB::upsample::3::u","label":"U3"},` +
		`{"customId":"MJ::JOB::upsample::4::u","label":"U4"},{"customId":"MJ::JOB::reroll::0::u::SOLO","emoji":"🔄","label":""}]`
	finished = `,"progress":"100%","imageUrl":"https://cdn.example.com/grid.png?ex=1",` + fourButtons
)

// commonRows adds to rows the errors that mean the same for every submission.
func commonRows(rows map[string]providertest.Row) map[string]providertest.Row {
	all := map[string]providertest.Row{
		"4":                   coded(mediagate.KindInvalid, mediagate.CodeInvalidParameters, answered(200, 4, "base64格式错误", "")),
		"9":                   retried(answered(200, 9, "提交失败，队列已满，请稍后重试", "")),
		"9 in English":        retried(answered(200, 9, "try again later", "")),
		"23":                  retried(answered(200, 23, "队列已满，请稍后尝试", "")),
		"24":                  coded(mediagate.KindModerated, mediagate.CodeContentPolicy, plain(200, `{"code":24,"description":"可能包含敏感词","properties":{"promptEn":"a x","bannedWord":"x"}}`)),
		"4 for its content":   row(mediagate.KindModerated, answered(200, 4, "Banned prompt detected", "")),
		"3, no account":       retried(answered(200, 3, "无可用的账号实例", "")),
		"3, account is away":  retried(answered(200, 3, "账号不可用: 12", "")),
		"3, in English":       retried(answered(200, 3, "No available account instance", "")),
		"401, empty":          coded(mediagate.KindCredentials, mediagate.CodeProviderRefused, plain(401, "")),
		"401, a word":         row(mediagate.KindCredentials, plain(401, "Authorization header missing.")),
		"403, a word":         row(mediagate.KindCredentials, plain(403, "未登录")),
		"a new code":          row(mediagate.KindAmbiguous, answered(200, 77, "new", jobID)),
		"a new code with 400": row(mediagate.KindInvalid, answered(400, 77, "new", "")),
		"a code as text":      retried(plain(200, `{"code":"23","description":"full"}`)),
		"no id":               row(mediagate.KindAmbiguous, plain(200, `{"code":1,"description":"ok"}`)),
		"empty id":            row(mediagate.KindAmbiguous, answered(200, 1, "ok", "")),
		"21 without an id":    row(mediagate.KindAmbiguous, answered(200, 21, "ok", "")),
		"id with a space":     row(mediagate.KindAmbiguous, answered(200, 22, "ok", "a b")),
		"id that is a list":   row(mediagate.KindAmbiguous, plain(200, `{"code":1,"result":["1"]}`)),
		"accepted with 400":   row(mediagate.KindInvalid, answered(400, 1, "ok", jobID)),
	}
	maps.Copy(all, rows)
	return all
}

func credentials() map[string]providertest.Row {
	return map[string]providertest.Row{
		"401, empty":  coded(mediagate.KindCredentials, mediagate.CodeProviderRefused, plain(401, "")),
		"401, a word": row(mediagate.KindCredentials, plain(401, "Authorization header missing.")),
		"403, a word": row(mediagate.KindCredentials, plain(403, "未登录")),
		"429":         row(mediagate.KindThrottled, plain(429, "slow down")),
	}
}

func with(rows, more map[string]providertest.Row) map[string]providertest.Row {
	maps.Copy(rows, more)
	return rows
}

func jobOf(operation, params string) mediagate.Job {
	return mediagate.Job{TaskID: externalID, ExternalID: externalID, Upstream: "midjourney", Operation: operation, Params: []byte(params)}
}

// following returns a job that works on the parent.
func following(operation, params, button string) mediagate.Job {
	j := jobOf(operation, params)
	j.Source = &mediagate.Source{
		TaskID: "task_2", Provider: "midjourney", Ref: mediagate.JobRef{JobID: parentID}, Button: button, Own: true,
	}
	return j
}

const (
	imagined  = `{"prompt":"a red kite","speed":"fast","version":"7"}`
	blended   = `{"image_urls":["https://img.example.com/a.png","https://img.example.com/b.png"],"dimensions":"SQUARE","speed":"fast"}`
	described = `{"image_urls":["https://img.example.com/a.png"],"speed":"fast"}`
	told      = `{"prompt":"a hat","mask_url":"https://img.example.com/a.png","speed":"fast"}`
)

func suite() providertest.Suite {
	first := jobOf("imagine", `{"prompt":"a red kite","image_urls":["https://img.example.com/a.png"],"speed":"fast","size":"16:9","version":"7","tile":false}`)
	ref := mediagate.JobRef{JobID: jobID, ExternalID: externalID, Operation: "imagine"}
	foreign := following("action", `{"speed":"fast"}`, upscale2)
	foreign.Source.Own = false
	sourceless := following("action", `{"speed":"fast"}`, upscale2)
	sourceless.Source = nil
	foreignModal := following("modal", told, "")
	foreignModal.Source.Own = false
	six := `["` + strings.Repeat(`https://img.example.com/a.png","`, 5) + `https://img.example.com/a.png"]`
	return providertest.Suite{
		Channel: mediagate.Channel{
			Name: "mj-a", Provider: "midjourney", Credentials: mediagate.Secrets(map[string]string{"api_secret": "mjs-4bX9mQ2vT7pW8nR3kL5"}),
		},
		Private: true,
		Job:     first,
		Others: []mediagate.Job{
			following("action", `{"speed":"fast"}`, upscale2), following("modal", told, ""),
			jobOf("blend", blended), jobOf("describe", described),
		},
		Inexpressible: []mediagate.Job{
			jobOf("imagine", `{"prompt":" ","speed":"fast","version":"7"}`),
			jobOf("imagine", `{"prompt":"a","version":"7"}`),
			jobOf("imagine", `{"prompt":"a","speed":"slow","version":"7"}`),
			jobOf("imagine", `{"prompt":"a","speed":"fast"}`),
			jobOf("imagine", `{"prompt":"a","speed":"fast","version":"4"}`),
			jobOf("imagine", `{"prompt":"a","speed":"fast","version":"7","size":"wide"}`),
			jobOf("imagine", `{"prompt":"a","speed":"fast","version":"7","size":"16:9 --v 4"}`),
			jobOf("imagine", `{"prompt":"a","speed":"fast","version":"7","image_urls":`+six+`}`),
			jobOf("blend", `{"image_urls":["https://img.example.com/a.png"],"dimensions":"SQUARE","speed":"fast"}`),
			jobOf("blend", `{"image_urls":`+six+`,"dimensions":"SQUARE","speed":"fast"}`),
			jobOf("blend", strings.Replace(blended, "SQUARE", "ROUND", 1)),
			jobOf("describe", `{"speed":"fast"}`),
			jobOf("describe", `{"image_urls":`+six+`,"speed":"fast"}`),
			foreign, sourceless, foreignModal,
			following("action", `{"speed":"fast"}`, ""),
			following("action", `{"speed":"fast"}`, "MJ::JOB::animate_low::1::u::SOLO"),
			following("action", `{"speed":"fast"}`, "MJ::BOOKMARK::u"),
			following("action", `{"speed":"fast"}`, "MJ::Job::PicReader::all"),
			following("modal", `{"speed":"fast"}`, ""),
		},
		Files: map[string]string{
			"https://img.example.com/a.png": providertest.Picture(1, 1),
			"https://img.example.com/b.png": providertest.Picture(2, 1),
		},
		Accepted:   plain(200, fmt.Sprintf(`{"code":1,"description":"提交成功","result":%q,"properties":{"discordInstanceId":"118"}}`, jobID)),
		Submission: mediagate.Submission{Ref: ref},
		Refused:    func(text string) providertest.Reply { return answered(200, 4, text, "") },
		SubmitRows: commonRows(map[string]providertest.Row{
			// The job works on no earlier job.
			"3, a task":          retried(answered(404, 3, "关联任务不存在或已失效", "")),
			"3, without a word":  retried(answered(200, 3, "", "")),
			"3 with server text": retried(answered(200, 3, "not found", "")),
		}),
		Ref:  ref,
		Word: func(word string) providertest.Reply { return plain(200, job(jobID, word, finished)) },
		Words: map[string]mediagate.JobState{
			"NOT_START": mediagate.JobQueued, "SUBMITTED": mediagate.JobQueued, "IN_PROGRESS": mediagate.JobRunning,
			"MODAL": mediagate.JobWaiting, "SUCCESS": mediagate.JobSucceeded, "FAILURE": mediagate.JobFailed, "CANCEL": mediagate.JobFailed,
		},
		Failed: func(text string) providertest.Reply {
			return plain(200, job(jobID, "FAILURE", `,"progress":"","failReason":`+quote(text)))
		},
		PollRows: with(credentials(), map[string]providertest.Row{
			// The proxy answers so for an unknown job.
			"empty 200":        row(mediagate.KindNotFound, plain(200, "")),
			"null":             row(mediagate.KindNotFound, plain(200, "null")),
			"204":              row(mediagate.KindNotFound, plain(204, "")),
			"404 with a code":  row(mediagate.KindNotFound, answered(404, 3, "关联任务不存在或已失效", "")),
			"200 with a code":  row(mediagate.KindNotFound, answered(200, 3, "task not found", "")),
			"no account":       row(mediagate.KindTransient, answered(200, 3, "无可用的账号实例", "")),
			"another code":     row(mediagate.KindTransient, answered(200, 9, "later", "")),
			"404 of something": row(mediagate.KindTransient, plain(404, "<html>")),
			"404, empty":       row(mediagate.KindTransient, plain(404, "")),
			"403 of something": row(mediagate.KindTransient, plain(403, "<html>")),
		}),
		ProtocolErrors: map[string]providertest.Reply{
			"another job": plain(200, job("1", "SUCCESS", finished)),
			"no id":       plain(200, job("", "SUCCESS", finished)),
		},
		Partial: map[string]providertest.Partial{
			"three of four": {
				Reply: plain(200, job(jobID, "SUCCESS", `,"imageUrl":null,"imageUrls":[{"url":"https://cdn.example.com/1.png"},{"url":null},{"url":"https://cdn.example.com/3.png"},{"url":"https://cdn.example.com/4.png"}]`)),
				Media: []mediagate.Media{{URL: "https://cdn.example.com/1.png"}, {URL: "https://cdn.example.com/3.png", Index: 2}, {URL: "https://cdn.example.com/4.png", Index: 3}},
			},
		},
		WithoutMedia: map[string]providertest.Reply{
			"no picture":         plain(200, job(jobID, "SUCCESS", `,"progress":"100%"`)),
			"a picture no link":  plain(200, job(jobID, "SUCCESS", `,"imageUrl":"soon"`)),
			"a file as picture":  plain(200, job(jobID, "SUCCESS", `,"imageUrl":"file:///etc/passwd"`)),
			"pictures of no use": plain(200, job(jobID, "SUCCESS", `,"imageUrl":null,"imageUrls":[{"url":"/a"}]`)),
		},
		Stop:    "POST /mj/task/" + jobID + "/cancel",
		Stopped: plain(200, ""),
		CancelRows: with(credentials(), map[string]providertest.Row{
			"a demo": row(mediagate.KindTransient, plain(400, "演示模式，禁止操作")),
			"404":    row(mediagate.KindNotFound, answered(404, 3, "not found", "")),
		}),
		BatchCall: func(ids []string) string {
			b, err := json.Marshal(map[string]any{"ids": ids})
			if err != nil {
				panic(err)
			}
			return "POST /mj/task/list-by-condition\n" + string(b)
		},
		Batch: func(ids, words []string) providertest.Reply {
			jobs := make([]string, len(ids))
			for i, id := range ids {
				jobs[i] = job(id, words[i], finished)
			}
			return plain(200, "["+strings.Join(jobs, ",")+"]")
		},
		BatchRows: with(credentials(), map[string]providertest.Row{
			// The caller polls each job before it takes all of them for lost.
			"array":    row(mediagate.KindNotFound, plain(200, "[]")),
			"odd jobs": row(mediagate.KindNotFound, plain(200, `[1,null,{"id":[]}]`)),
		}),
	}
}

func TestConformance(t *testing.T) {
	t.Parallel()
	providertest.Run(t, suite())
}

// TestRefusedActions checks refusals that concern the earlier job of an action. A mark makes no
// job: its answer has the id of the earlier one.
func TestRefusedActions(t *testing.T) {
	t.Parallel()
	for name, reply := range map[string]providertest.Reply{
		"the task is gone":             answered(404, 3, "关联任务不存在或已失效", ""),
		"with 200":                     answered(200, 3, "目标任务不存在", ""),
		"in English":                   answered(404, 3, "task not found", ""),
		"the task has not ended":       answered(200, 4, "关联任务状态错误", ""),
		"the parent itself, as a mark": answered(200, 1, "ok", parentID),
	} {
		vendor := providertest.NewVendor(t, reply)
		_, err := suite().Open(t, vendor.URL, providers.Options{}).Submit(t.Context(), following("action", `{"speed":"fast"}`, upscale2))
		if !mediagate.Is(err, mediagate.KindInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestGolden(t *testing.T) {
	t.Parallel()
	suite().Golden(t, "testdata/*.txtar", *update)
}

func FuzzDecode(f *testing.F) { providertest.Fuzz(f, suite()) }
