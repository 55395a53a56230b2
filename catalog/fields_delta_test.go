package catalog_test

import (
	"bytes"
	"encoding/base64"
	"io"
	"maps"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/mediagate/mediagate/catalog"
)

// frameCases are for a field that takes a URL or a data URI.
func frameCases(field, beside string) map[string]fieldCase {
	cases := map[string]fieldCase{}
	for name, tt := range map[string]struct{ value, param, rule string }{
		"a URL":           {`"https://media.example.com/a.png"`, "", ""},
		"null":            {`null`, "", ""},
		"of 2048":         {urlOf(2048), "", ""},
		"of 2049":         {urlOf(2049), field, "longer than 2048 characters"},
		"private":         {`"http://10.0.0.1/a.png"`, field, "is refused: "},
		"ftp":             {`"ftp://media.example.com/a.png"`, field, ""},
		"a number":        {`5`, field, "must be a string"},
		"a list":          {`["https://media.example.com/a.png"]`, field, "must be a string"},
		"an object":       {`{"url":"https://media.example.com/a.png"}`, field, "must be a string"},
		"empty":           {`""`, "", ""},
		"a PNG":           {`"data:image/png;base64,iVBORw0KGgo="`, "", ""},
		"a JPEG":          {`"data:image/jpeg;base64,/9j/"`, "", ""},
		"in capitals":     {`"DATA:Image/PNG;BASE64,iVBORw0KGgo="`, "", ""},
		"of another type": {`"data:video/mp4;base64,aGk="`, "", ""}, // its bytes decide
		"of no type":      {`"data:;base64,aGk="`, "", ""},
		"of a parameter":  {`"data:image/png;name=a.png; base64,aGk="`, "", ""},
		"no base64":       {`"data:image/png,abc"`, field, "a data URI of an image in base64"},
		"broken base64":   {`"data:image/png;base64,a=bc"`, field, "is not valid base64"},
		"no padding":      {`"data:image/png;base64,iVBORw0KGgo"`, "", ""},
		"lines":           {`"data:image/png;base64,iVBO\r\nRw0K\nGgo=\n"`, "", ""},
		"blanks":          {`"data:image/png;base64, iVBO Rw0K\tGg o = "`, "", ""},
		"for URLs":        {`"data:image/png;base64,_-__"`, "", ""},
		"padding within":  {`"data:image/png;base64,iVA=BORw0"`, field, "is not valid base64"},
		"one letter":      {`"data:image/png;base64,a"`, field, "is not valid base64"},
		"no data":         {`"data:image/png;base64,"`, field, "a data URI of an image in base64"},
		"nothing but it":  {`"data:"`, field, "a data URI of an image in base64"},
		"without a comma": {`"data:image/png;base64"`, field, "a data URI of an image in base64"},
	} {
		cases[field+" "+name] = fieldCase{beside + `"` + field + `":` + tt.value, tt.param, tt.rule}
	}
	return cases
}

// hailuoCases are what delta-02 and delta-2.3 have in common.
func hailuoCases() map[string]fieldCase {
	// The vendor's bound of the prompt is its adapter's.
	switches := joined(switchCases("prompt_optimizer"), switchCases("fast_pretreatment"), switchCases("watermark"))
	return joined(promptCases(0), switches, map[string]fieldCase{
		"only what is required": {},
		"duration 5":            {`"duration":5`, "", ""},
		"duration 10":           {`"duration":10`, "", ""},
		"duration 4":            {`"duration":4`, "duration", "must be 5 or 10"},
		"duration 6":            {`"duration":6`, "duration", "must be 5 or 10"},
		"duration a text":       {`"duration":"5"`, "duration", "must be 5 or 10, sent as a JSON number, not as a string"},
		"resolution 768p":       {`"resolution":"768p"`, "", ""},
		"resolution 1080p":      {`"resolution":"1080p"`, "", ""},
		"resolution 1080P":      {`"resolution":"1080P"`, "resolution", "768p or 1080p"},
		"1080p, 5 s":            {`"resolution":"1080p","duration":5`, "", ""},
		"1080p, 10 s":           {`"resolution":"1080p","duration":10`, "duration", "must be 5 when resolution is 1080p"},
	})
}

func delta02Cases() map[string]fieldCase {
	const first, last = `"first_frame_image":"https://a.example.com/1"`, `"last_frame_image":"https://a.example.com/2"`
	cases := hailuoCases()
	maps.Copy(cases, frameCases("first_frame_image", ""))
	maps.Copy(cases, frameCases("last_frame_image", first+","))
	maps.Copy(cases, map[string]fieldCase{
		"everything": {
			`"prompt":"a","duration":10,"resolution":"768p","prompt_optimizer":false,"fast_pretreatment":true,"watermark":true,` + first + `,` + last, "", "",
		},
		"512p, 10 s":               {`"resolution":"512p","duration":10,` + first, "", ""},
		"512p without a frame":     {`"resolution":"512p"`, "first_frame_image", "is required when resolution is 512p"},
		"512p, a frame as data":    {`"resolution":"512p","first_frame_image":"data:image/png;base64,iVBORw0KGgo="`, "", ""},
		"512p, two frames":         {`"resolution":"512p",` + first + `,` + last, "last_frame_image", "is not possible when resolution is 512p"},
		"512p, a last frame only":  {`"resolution":"512p",` + last, "first_frame_image", "is required when resolution is 512p"},
		"a last frame only":        {last, "last_frame_image", "only possible together with first_frame_image"},
		"a last frame beside data": {`"first_frame_image":"data:image/png;base64,iVBORw0KGgo=",` + last, "", ""},
	})
	return cases
}

func delta23Cases() map[string]fieldCase {
	cases := hailuoCases()
	maps.Copy(cases, frameCases("first_frame_image", ""))
	maps.Copy(cases, map[string]fieldCase{
		"everything": {
			`"prompt":"a","duration":10,"resolution":"768p","prompt_optimizer":false,"fast_pretreatment":true,"watermark":true,"first_frame_image":"https://a.example.com/1"`, "", "",
		},
		"a last frame only": {`"last_frame_image":"https://a.example.com/2"`, "last_frame_image", "is not supported"},
	})
	return cases
}

func deltaH3Cases() map[string]fieldCase {
	const (
		first, last = `"first_frame_image":"https://a.example.com/1"`, `"last_frame_image":"https://a.example.com/2"`
		none        = `"prompt":null`
		missing     = "is required, or one of image_urls, video_urls and first_frame_image"
	)
	one := func(field, beside string) map[string]fieldCase {
		return mediaCases(field, func(value string) string { return beside + `"` + field + `":` + value })
	}
	references := `"image_urls":` + urls(9) + `,"video_urls":` + urls(3) + `,"audio_urls":` + urls(3)
	common := joined(promptCases(0), lengthCases("prompt", "at most 7000 characters", 7000),
		listCases("image_urls", ""), listCases("video_urls", ""), listCases("audio_urls", `"image_urls":`+urls(1)+`,`),
		one("first_frame_image", ""), one("last_frame_image", first+`,`), integerCases("duration", 4, 15),
		choiceCases("resolution", "768p", "768P", "2K"),
		choiceCases("aspect_ratio", "adaptive", "21:9", "16:9", "4:3", "1:1", "3:4", "9:16"))
	return joined(common, map[string]fieldCase{
		"everything but frames":      {`"prompt":"a","duration":15,"resolution":"2K","aspect_ratio":"9:16",` + references, "", ""},
		"everything but references":  {`"prompt":"a","duration":15,"resolution":"2K",` + first + `,` + last, "", ""},
		"nothing":                    {none, "prompt", missing},
		"a blank prompt, an image":   {`"prompt":" ","image_urls":` + urls(1), "", ""},
		"prompt of any length":       {`"prompt":` + quoted("a", 30_000), "prompt", "7000"},
		"an empty prompt, an image":  {`"prompt":"","image_urls":` + urls(1), "", ""},
		"no prompt, an empty list":   {none + `,"image_urls":[]`, "prompt", missing},
		"no prompt, a video":         {none + `,"video_urls":` + urls(1), "", ""},
		"no prompt, a frame":         {none + `,` + first, "", ""},
		"no prompt, a sound":         {none + `,"audio_urls":` + urls(1), "prompt", missing},
		"no prompt, a last frame":    {none + `,` + last, "prompt", missing},
		"aspect_ratio beside images": {`"aspect_ratio":"2:1","image_urls":` + urls(1), "aspect_ratio", "21:9"},
		"aspect_ratio beside frames": {`"aspect_ratio":{"a":[1]},` + first, "", ""},
		"ten images":                 {`"image_urls":` + urls(10), "image_urls", "at most 9 items"},
		"four videos":                {`"video_urls":` + urls(4), "video_urls", "at most 3 items"},
		"three sounds, an image":     {`"image_urls":` + urls(1) + `,"audio_urls":` + urls(3), "", ""},
		"four sounds":                {`"image_urls":` + urls(1) + `,"audio_urls":` + urls(4), "audio_urls", "at most 3 items"},
		"a sound, a video":           {`"video_urls":` + urls(1) + `,"audio_urls":` + urls(1), "", ""},
		"a sound alone":              {`"audio_urls":` + urls(1), "audio_urls", "only possible together with image_urls or video_urls"},
		"a last frame only":          {last, "last_frame_image", "only possible together with first_frame_image"},
		"aspect_ratio beside a last": {`"aspect_ratio":[],` + last, "last_frame_image", "only possible together"},
		"a frame and an image":       {first + `,"image_urls":` + urls(1), "image_urls", "not possible together with first_frame_image"},
		"a frame and a video":        {first + `,"video_urls":` + urls(1), "video_urls", "not possible together with first_frame_image"},
		"a frame and a sound":        {first + `,"audio_urls":` + urls(1), "audio_urls", "not possible together with first_frame_image"},
		"a frame and an empty list":  {first + `,"image_urls":[]`, "", ""},
	})
}

// TestImageData is at both sides of the bound of what may come within a
// request, and holds that nothing of it stays in the parameters.
func TestImageData(t *testing.T) {
	t.Parallel()
	o := operation(t, "delta-02")
	for name, tt := range map[string]struct {
		bytes int
		rule  string
	}{
		"the largest":           {catalog.MaxImageData, ""},
		"the largest, in lines": {catalog.MaxImageData, ""},
		"one byte more":         {catalog.MaxImageData + 1, "at most 20971520 bytes"},
		"two bytes more":        {catalog.MaxImageData + 2, "at most 20971520 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := base64.StdEncoding.EncodeToString(make([]byte, tt.bytes))
			if strings.HasSuffix(name, "in lines") {
				text = strings.ReplaceAll(text, strings.Repeat("A", 76), strings.Repeat("A", 76)+"\r\n")
			}
			uri := "data:image/png;base64," + text
			given := parse(t, body(t, "delta-02", `"last_frame_image":"https://a.example.com/2"`))
			given["first_frame_image"] = uri
			r, err := o.Accept(given)
			if tt.rule != "" {
				if message := refusal(t, err, "first_frame_image"); !strings.Contains(message, tt.rule) || len(message) > 200 {
					t.Errorf("message %.300q", message)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if len(r.Uploads) != 1 || r.Uploads["first_frame_image"] != uri {
				t.Errorf("%d uploads", len(r.Uploads))
			}
			if strings.Contains(string(r.Params), "first_frame_image") || !strings.Contains(string(r.Params), "last_frame_image") {
				t.Errorf("params %.300s", r.Params)
			}
			if n, err := io.Copy(io.Discard, catalog.ImageData(uri)); err != nil || n != int64(tt.bytes) {
				t.Errorf("%d bytes, %v", n, err)
			}
			if given["first_frame_image"] != uri {
				t.Error("the body was changed")
			}
		})
	}
}

// TestImageDataOfAnyBase64 holds that the same bytes come out of each way to write
// them, whatever the reader asks for at once.
func TestImageDataOfAnyBase64(t *testing.T) {
	t.Parallel()
	for n := range 5 {
		file := bytes.Repeat([]byte{0xfb, 0xef, 0xbe, 0xff}, 300)[:1000+n]
		for name, text := range map[string]string{
			"standard":         base64.StdEncoding.EncodeToString(file),
			"bare":             base64.RawStdEncoding.EncodeToString(file),
			"for URLs":         base64.URLEncoding.EncodeToString(file),
			"bare, for URLs":   base64.RawURLEncoding.EncodeToString(file),
			"blank in padding": strings.ReplaceAll(base64.StdEncoding.EncodeToString(file), "=", " = \n"),
			"letters apart":    strings.Join(strings.Split(base64.URLEncoding.EncodeToString(file), ""), "\t"),
		} {
			uri := "data:;base64," + text
			for _, r := range []io.Reader{catalog.ImageData(uri), iotest.OneByteReader(catalog.ImageData(uri))} {
				if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, file) {
					t.Errorf("%s, %d bytes: %d came, %v", name, len(file), len(got), err)
				}
			}
		}
	}
}
