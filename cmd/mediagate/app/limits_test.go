package app

import (
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mediagate/mediagate/internal/limit"
)

// TestLimits checks that every limit of a process is made, counted and documented.
func TestLimits(t *testing.T) {
	t.Parallel()
	c := Defaults()
	process := limit.For(c.sizes())
	figures := process.Figures()
	fields := reflect.ValueOf(*process)
	if len(figures) != fields.NumField() {
		t.Errorf("%d limits have %d figures", fields.NumField(), len(figures))
	}
	for i := range fields.NumField() {
		if fields.Field(i).IsNil() {
			t.Errorf("%s is not made", fields.Type().Field(i).Name)
		}
	}
	text, err := os.ReadFile("../../../docs/running.md")
	must(t, err)
	_, section, _ := strings.Cut(string(text), "\n## Limits\n")
	section, _, _ = strings.Cut(section, "\n## ")
	var told, counted [][2]string
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\|[^|]*\\| ([^|]*) \\|").FindAllStringSubmatch(section, -1) {
		told = append(told, [2]string{row[1], row[2]})
	}
	for _, f := range figures {
		counted = append(counted, [2]string{f.Name, f.Tenant})
		if f.Capacity <= 0 || !strings.Contains(c.Limits(), f.Name+" ") {
			t.Errorf("%+v, of\n%s", f, c.Limits())
		}
	}
	if diff := cmp.Diff(counted, told); diff != "" {
		t.Errorf("docs/running.md (-made +told):\n%s", diff)
	}
}
