package api

import (
	"bytes"
	"errors"
	"io"
	"mime/multipart"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/api/listener"
)

// A key is what NewKey makes, in every character, or is none.
func FuzzKey(f *testing.F) {
	good, _ := NewKey()
	for _, seed := range []string{good, good[:len(good)-1], good + "0", strings.ToUpper(good), "mgk_", "", "mgk_\xff", strings.Repeat("0", keyLength), " " + good[1:]} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if !wellFormed(text) {
			return
		}
		body := text[:keyLength-keyCheck]
		if len(text) != keyLength || !strings.HasPrefix(text, keyMark) || body+checkDigits(body) != text {
			t.Errorf("%q counts as a key", text)
		}
		for i := range len(text) { // no slip of one character makes another key
			if slip := text[:i] + string(text[i]^1) + text[i+1:]; wellFormed(slip) {
				t.Errorf("%q counts as a key beside %q", slip, text)
			}
		}
	})
}

// Whatever stands in the header, the caller's address is an entry that a trusted
// proxy has appended, or none; and no list of addresses allows all of them.
func FuzzClientAddress(f *testing.F) {
	for _, seed := range []struct{ forwarded, entry string }{
		{"1.2.3.4", "10.0.0.0/8"},
		{"1.2.3.4, 5.6.7.8", "::/0"},
		{"[::1]:80,fe80::1%eth0", "0.0.0.0/0"},
		{"", "::ffff:10.0.0.0/104"},
		{",,,", "1.2.3.4"},
		{"unknown, \"[2001:db8::1]\"", "1.2.3.4/33"},
		{"\x00", "fe80::1%eth0"},
	} {
		for proxies := range 4 {
			f.Add(seed.forwarded, seed.entry, proxies)
		}
	}
	f.Fuzz(func(t *testing.T, forwarded, entry string, proxies int) {
		r := &http.Request{RemoteAddr: "192.0.2.1:1234", Header: http.Header{"X-Forwarded-For": {forwarded}}}
		got := listener.ClientAddress(r, listener.Proxies{Hops: proxies})
		if proxies <= 0 && got != netip.MustParseAddr("192.0.2.1") {
			t.Errorf("without proxies the caller is %v", got)
		}
		if got.Zone() != "" || got.Is4In6() {
			t.Errorf("the caller is %v", got)
		}
		hops := strings.Split(forwarded, ",")
		if proxies > 0 && got.IsValid() && got != listener.ReadAddress(strings.TrimSpace(hops[max(0, len(hops)-min(proxies, len(hops)))])) {
			t.Errorf("%v is not what proxy %d saw in %q", got, proxies, forwarded)
		}
		allowed, err := parseAllowed("allow_ips", entry)
		switch {
		case err != nil && !mediagate.Is(err, mediagate.KindInvalid):
			t.Errorf("%q: %v", entry, err)
		case err == nil && (allowed.Bits() <= 0 || allowed.Masked() != allowed || allowed.Addr().Is4In6() && allowed.Bits() >= 96):
			t.Errorf("%q allows %v", entry, allowed)
		case err == nil:
			if again, err := parseAllowed("allow_ips", allowed.String()); err != nil || again != allowed {
				t.Errorf("%q is read as %v, that as %v, %v", entry, allowed, again, err)
			}
		}
	})
}

func FuzzIdempotencyKey(f *testing.F) {
	for _, seed := range []string{"", "a", "order 1", "\x7f", "ä", "\n", strings.Repeat("k", 255), strings.Repeat("k", 256)} {
		f.Add(seed, false)
		f.Add(seed, true)
	}
	f.Fuzz(func(t *testing.T, value string, twice bool) {
		h := http.Header{idempotencyHeader: {value}}
		if twice {
			h.Add(idempotencyHeader, value)
		}
		got, err := readIdempotencyKey(h)
		if (err == nil) == (got == "") || err == nil && (got != value || twice || len(got) > maxIdempotencyKey || strings.ContainsFunc(got, func(r rune) bool { return r < ' ' || r > '~' })) {
			t.Errorf("%q becomes %q, %v", value, got, err)
		}
		if err != nil && !mediagate.Is(err, mediagate.KindInvalid) {
			t.Error(err)
		}
	})
}

// A form of any bytes is read to its end or refused; names are fit to be shown.
func FuzzUploadForm(f *testing.F) {
	const boundary = "b0undary"
	part := func(head, body string) string { return "--" + boundary + "\r\n" + head + "\r\n\r\n" + body + "\r\n" }
	file := part(`Content-Disposition: form-data; name="file"; filename="a.png"`, "content")
	const end = "--" + boundary + "--\r\n"
	for _, seed := range []string{
		"", end, file + end, file, file + file + end, strings.Repeat(part(`Content-Disposition: form-data; name="a"`, ""), formParts+1) + end,
		part(`Content-Disposition: form-data; name="file"; filename="../../\u202e\\x"`, "") + end,
		part(`Content-Disposition: form-data; name*=utf-8''file; filename*=utf-8''%00%ff`, "x") + end,
		part("X: "+strings.Repeat("y", formHead), "x") + end, "--" + boundary, "--" + boundary + "\r\nX", file + end + "after",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		const most = 256 << 10
		body := &formBody{from: bytes.NewReader(raw), left: most}
		form := &form{body: body, parts: multipart.NewReader(body, boundary)}
		for parts := 0; ; parts++ {
			got, err := form.next()
			if errors.Is(err, io.EOF) {
				if err := form.finish(); err != nil && !mediagate.Is(err, mediagate.KindInvalid) && body.broken == nil {
					t.Fatalf("behind the end: %v", err)
				}
				return
			}
			if err != nil {
				if !mediagate.Is(err, mediagate.KindInvalid) && body.broken == nil {
					t.Fatalf("%T %v", err, err)
				}
				return
			}
			if parts >= formParts {
				t.Fatal("there is no end of parts")
			}
			name := uploadName(got)
			if name == "" || !utf8.ValidString(name) || utf8.RuneCountInString(name) > maxUploadName || strings.ContainsAny(name, `/\`) ||
				strings.ContainsFunc(name, unicode.IsControl) || strings.Trim(name, ".") == "" {
				t.Errorf("a file is called %q", name)
			}
		}
	})
}
