package channel_test

import (
	"bytes"
	"log/slog"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mediagate/mediagate"
)

// An outage is no storm of log lines: a few a minute say how many there were.
func TestPollerComplainsNowAndThen(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAccount(t, mediagate.Channel{RequestsPerSecond: 20, PollMin: time.Second, PollMax: 5 * time.Second})
		var log bytes.Buffer
		a.accounts.Logger = slog.New(slog.NewTextHandler(&log, nil))
		a.away = true
		a.accept(200, time.Hour)
		a.poll(3*time.Minute + 30*time.Second)
		lines := strings.Count(log.String(), `msg="poll failed"`)
		if lines < 4 || lines > 4*5 {
			t.Errorf("%d lines in four minutes", lines)
		}
		said := lines
		for _, m := range regexp.MustCompile(`withheld=(\d+)`).FindAllStringSubmatch(log.String(), -1) {
			n, err := strconv.Atoi(m[1])
			if err != nil {
				t.Fatal(err)
			}
			said += n
		}
		if asked := len(a.calls); said < asked/2 || said > asked {
			t.Errorf("the log counts %d failures, of %d polls", said, asked)
		}
	})
}
