package mediagate_test

import (
	"strings"
	"testing"
	"time"

	"github.com/mediagate/mediagate"
)

func TestFileNames(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 999_999_999, time.UTC)
	seen := map[string]bool{}
	for mime, ext := range map[string]string{"image/jpeg": ".jpg", "image/png": ".png", "image/webp": ".webp", "image/gif": ".gif"} {
		f, ok := mediagate.NewFile(now, mime)
		if !ok || f.MimeType() != mime || !f.CreatedAt.Equal(now.Truncate(time.Second)) {
			t.Errorf("%s: %+v", mime, f)
		}
		name := f.Name()
		if !strings.HasPrefix(name, "1772366400-") || !strings.HasSuffix(name, ext) || f.Key() != "files/"+name {
			t.Errorf("%s has the name %s and the key %s", mime, name, f.Key())
		}
		if again, ok := mediagate.ParseFile(name); !ok || again != f {
			t.Errorf("%s reads as %+v", name, again)
		}
		if secret := name[:len(name)-len(ext)]; seen[secret] {
			t.Errorf("%s was given twice", secret)
		} else {
			seen[secret] = true
		}
		end := f.CreatedAt.Add(72 * time.Hour)
		if f.Expired(end.Add(-1)) || !f.Expired(end) {
			t.Errorf("%s does not end after 72 hours", name)
		}
	}
	for _, mime := range []string{"image/svg+xml", "text/html", "image/avif", ""} {
		if _, ok := mediagate.NewFile(now, mime); ok {
			t.Errorf("%q can be uploaded", mime)
		}
	}
}

// Nothing but a name is read as one: it becomes the key of an object.
func TestParseFileRefuses(t *testing.T) {
	t.Parallel()
	const secret = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	if _, ok := mediagate.ParseFile("1772366400-" + secret + ".png"); !ok {
		t.Fatal("a name is refused")
	}
	for _, name := range []string{
		"", ".", "..", "-", secret, "1772366400-" + secret, "1772366400-" + secret + ".svg", "1772366400-" + secret + ".PNG",
		"1772366400-" + secret + ".png ", "1772366400-" + secret + ".png/", " 1772366400-" + secret + ".png", "+1772366400-" + secret + ".png",
		"01772366400-" + secret + ".png", "-1772366400-" + secret + ".png", "0-" + secret + ".png", "99999999999999999999-" + secret + ".png",
		"1772366400-" + strings.ToLower(secret) + ".png", "1772366400-" + secret[1:] + "/.png", "1772366400-../../results/task_1/1/0.png",
		"1772366400-" + secret[:23] + "/../results.png", "1772366400-" + secret[1:] + "1.png", "1772366400-" + secret + "A.png", "1772366400%2D" + secret + ".png",
	} {
		if f, ok := mediagate.ParseFile(name); ok {
			t.Errorf("%q reads as %+v", name, f)
		}
	}
}
