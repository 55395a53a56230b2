package dashscope_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/providers"
	"github.com/mediagate/mediagate/providers/providertest"
)

// TestPixels checks the contract's table of output sizes.
func TestPixels(t *testing.T) {
	t.Parallel()
	for size, want := range map[string][2]string{
		"1:1":  {"1024*1024", "2048*2048"},
		"4:3":  {"1152*864", "2048*1536"},
		"3:4":  {"864*1152", "1536*2048"},
		"16:9": {"1280*720", "2048*1152"},
		"9:16": {"720*1280", "1152*2048"},
		"3:2":  {"1248*832", "2048*1360"},
		"2:3":  {"832*1248", "1360*2048"},
	} {
		for i, resolution := range []string{"1K", "2K"} {
			t.Run(size+" "+resolution, func(t *testing.T) {
				t.Parallel()
				job := suite().Job
				job.Params = fmt.Appendf(nil, `{"prompt":"a","size":%q,"resolution":%q,"prompt_extend":true}`, size, resolution)
				vendor := providertest.NewVendor(t, suite().Accepted)
				if _, err := suite().Open(t, vendor.URL, providers.Options{}).Submit(t.Context(), job); err != nil {
					t.Fatal(err)
				}
				if sent := vendor.Requests()[0].Body; !strings.Contains(sent, fmt.Sprintf(`"size":%q`, want[i])) {
					t.Errorf("sent %s, want %s", sent, want[i])
				}
			})
		}
	}
}

// TestNoImage checks that an answer with choices but no image ends the job, because the vendor
// keeps no job that could be polled.
func TestNoImage(t *testing.T) {
	t.Parallel()
	for name, reply := range map[string]providertest.Reply{
		"no choices":              {Body: `{"output":{"choices":[]},"request_id":"req-1"}`},
		"no image":                content(`[{"text":"a red kite"}]`),
		"image that is no link":   content(`[{"image":"data:image/png;base64,AAAA"}]`),
		"image that is an object": content(`[{"image":{"url":"https://a.example.com"}}]`),
		"image that is null":      content(`[{"image":null}]`),
		"content that is a text":  content(`"done"`),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			vendor := providertest.NewVendor(t, reply)
			got, err := suite().Open(t, vendor.URL, providers.Options{}).Submit(t.Context(), suite().Job)
			if err != nil {
				t.Fatal(err)
			}
			if out := got.Outcome; out == nil || out.Succeeded || out.Failure == nil || out.Failure.Code != mediagate.CodeResultUnavailable {
				t.Errorf("the outcome is %+v", out)
			}
		})
	}
}
