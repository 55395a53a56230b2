package vendorhttp

import (
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestExtract(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("QUJD", 100_000)
	for name, tc := range map[string]struct {
		in, out string
		texts   []string
	}{
		"none":             {`{"a":"data","b":[1,"x"]}`, `{"a":"data","b":[1,"x"]}`, nil},
		"one":              {`{"inline":{"type":"image/png","data":"` + long + `"},"b":1}`, `{"inline":{"type":"image/png","data":"#0"},"b":1}`, []string{long}},
		"spaces":           {"{ \"data\"\n:\t\"abc\" }", "{ \"data\"\n:\t\"#0\" }", []string{"abc"}},
		"several":          {`[{"data":"a"},{"data":""},{"data":"b"}]`, `[{"data":"#0"},{"data":"#1"},{"data":"#2"}]`, []string{"a", "", "b"}},
		"a value, no name": {`{"a":"data","c":"x"}`, `{"a":"data","c":"x"}`, nil},
		"in a list":        {`{"data":["x","y"]}`, `{"data":["x","y"]}`, nil},
		"after its list":   {`{"data":["x"],"a":"y"}`, `{"data":["x"],"a":"y"}`, nil},
		"no text":          {`{"data":{"a":"x"},"b":null}`, `{"data":{"a":"x"},"b":null}`, nil},
		"escapes":          {`{"data":"a\/b\u003d\u003D\"\\\n\u00e9\ud83d\ude00"}`, `{"data":"#0"}`, []string{"a/b==\"\\\né😀"}},
		"quotes around":    {`{"a\"data":"x","data\"":"y"}`, `{"a\"data":"x","data\"":"y"}`, nil},
		"text with colon":  {`{"a":"x\":\"","data":"y"}`, `{"a":"x\":\"","data":"#0"}`, []string{"y"}},
	} {
		for reader, of := range map[string]func(io.Reader) io.Reader{
			"whole": func(r io.Reader) io.Reader { return r }, "in bytes": iotest.OneByteReader, "in halves": iotest.HalfReader,
		} {
			t.Run(name+" "+reader, func(t *testing.T) {
				t.Parallel()
				var texts []string
				out, err := Extract(of(strings.NewReader(tc.in)), "data", 1000, func(text io.Reader) (string, error) {
					b, err := io.ReadAll(text)
					texts = append(texts, string(b))
					return "#" + strconv.Itoa(len(texts)-1), err
				})
				if err != nil {
					t.Fatal(err)
				}
				if d := cmp.Diff(tc.out, string(out)); d != "" {
					t.Errorf("document (-want +got):\n%s", d)
				}
				if d := cmp.Diff(tc.texts, texts); d != "" {
					t.Errorf("texts (-want +got):\n%s", d)
				}
			})
		}
	}
}

func TestExtractFails(t *testing.T) {
	t.Parallel()
	refused := errors.New("refused")
	all := func(text io.Reader) (string, error) {
		_, err := io.Copy(io.Discard, text)
		return "", err
	}
	for name, tc := range map[string]struct {
		in   io.Reader
		take func(io.Reader) (string, error)
		want error
	}{
		"ends in the file":   {strings.NewReader(`{"data":"abc`), all, io.ErrUnexpectedEOF},
		"ends in an escape":  {strings.NewReader(`{"data":"abc\u00`), all, io.ErrUnexpectedEOF},
		"ends in a text":     {strings.NewReader(`{"a":"abc`), all, io.ErrUnexpectedEOF},
		"breaks in the file": {io.MultiReader(strings.NewReader(`{"data":"abc`), iotest.ErrReader(refused)), all, refused},
		"not taken":          {strings.NewReader(`{"data":"abc"}`), func(io.Reader) (string, error) { return "", refused }, refused},
		"not read to its end": {
			io.MultiReader(strings.NewReader(`{"data":"abc`), iotest.ErrReader(refused)),
			func(io.Reader) (string, error) { return "", nil }, refused,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := Extract(tc.in, "data", 1000, tc.take); !errors.Is(err, tc.want) {
				t.Errorf("error %v, want %v", err, tc.want)
			}
		})
	}
	if _, err := Extract(strings.NewReader(`{"a":"`+strings.Repeat("x", 100)+`"}`), "data", 50, all); err == nil {
		t.Error("a document beyond the limit is kept")
	}
}

// Extract reads what a decoder would read, for all documents.
func TestExtractReadsWhatADecoderReads(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		type part struct {
			Data string `json:"data"`
			Name string `json:"name"`
		}
		part1 := rapid.Custom(func(t *rapid.T) part {
			return part{rapid.String().Draw(t, "data"), rapid.String().Draw(t, "name")}
		})
		want := rapid.SliceOf(part1).Draw(t, "parts")
		raw, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		var texts []string
		out, err := Extract(iotest.HalfReader(strings.NewReader(string(raw))), "data", 1<<20, func(text io.Reader) (string, error) {
			b, err := io.ReadAll(text)
			texts = append(texts, string(b))
			return "", err
		})
		if err != nil {
			t.Fatal(err)
		}
		var got []part
		if err := json.Unmarshal(out, &got); err != nil {
			t.Fatalf("%v in %s", err, out)
		}
		for i := range got {
			got[i].Data = texts[i]
		}
		if d := cmp.Diff(want, got); d != "" && len(want)+len(got) > 0 {
			t.Fatal(d)
		}
	})
}

// Cut returns a valid document that ends with the string last returned by Next.
func TestExtractorCut(t *testing.T) {
	t.Parallel()
	const in = `{"name":"a","list":[{"data":"one","kind":"x"},{"data":"two","kind":"y"}],"more":{"data":"three"}}`
	x := NewExtractor(strings.NewReader(in), "data", 1000)
	for i, want := range []struct{ text, cut string }{
		{"one", `{"name":"a","list":[{"data":"#0"}]}`},
		{"two", `{"name":"a","list":[{"data":"#0","kind":"x"},{"data":"#1"}]}`},
		{"three", `{"name":"a","list":[{"data":"#0","kind":"x"},{"data":"#1","kind":"y"}],"more":{"data":""}}`},
	} {
		text, err := x.Next()
		if err != nil {
			t.Fatal(err)
		}
		if i < 2 { // the replacement, whether the string was read or not
			x.Replace("#" + strconv.Itoa(i))
		}
		if i != 1 {
			if b, err := io.ReadAll(text); err != nil || string(b) != want.text {
				t.Errorf("text %q, %v, want %q", b, err, want.text)
			}
		}
		if got := string(x.Cut()); got != want.cut || !json.Valid([]byte(got)) {
			t.Errorf("cut at %q: %s, want %s", want.text, got, want.cut)
		}
	}
	if _, err := x.Next(); !errors.Is(err, io.EOF) {
		t.Errorf("after the last: %v", err)
	}
	const whole = `{"name":"a","list":[{"data":"#0","kind":"x"},{"data":"#1","kind":"y"}],"more":{"data":""}}`
	if got := string(x.Document()); got != whole {
		t.Errorf("document %s, want %s", got, whole)
	}
}

// A string that was handed out but not read must still end.
func TestExtractorSkipsToTheEnd(t *testing.T) {
	t.Parallel()
	x := NewExtractor(strings.NewReader(`{"data":"never ends`), "data", 1000)
	if _, err := x.Next(); err != nil {
		t.Fatal(err)
	}
	if _, err := x.Next(); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("%v", err)
	}
}
