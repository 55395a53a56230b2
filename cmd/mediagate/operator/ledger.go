package operator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

const (
	checkTimeout  = 35 * time.Minute // longer than the check takes
	checkProgress = 15 * time.Second
)

// ledgerCheck prints the broken invariants and fails if there are any.
func ledgerCheck(ctx context.Context, c *call) error {
	if err := c.parse(); err != nil {
		return err
	}
	c.client.http.Timeout = checkTimeout
	stop := reportTime(c.notes, checkProgress)
	answer, err := c.client.do(ctx, http.MethodGet, "/ledger/check", nil)
	stop()
	if err != nil {
		return err
	}
	var report struct {
		OK       bool     `json:"ok"`
		Checked  int      `json:"checked"`
		Problems []string `json:"problems"`
	}
	if err := json.Unmarshal(answer, &report); err != nil {
		return fmt.Errorf("the answer is not readable: %w", err)
	}
	if c.format == "json" {
		if err := c.show(answer); err != nil {
			return err
		}
	} else {
		for _, p := range report.Problems {
			_, _ = fmt.Fprintln(c.out, p)
		}
		_, _ = fmt.Fprintf(c.out, "%d accounts, keys and tasks checked, %d problems\n", report.Checked, len(report.Problems))
	}
	if !report.OK {
		return errors.New("the ledger does not hold")
	}
	return nil
}

// reportTime prints regularly how long the check takes, until stop is called.
func reportTime(to io.Writer, every time.Duration) (stop func()) {
	quit, done, began := make(chan struct{}), make(chan struct{}), time.Now()
	go func() {
		defer close(done)
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-quit:
				return
			case <-tick.C:
				_, _ = fmt.Fprintf(to, "checking since %s\n", time.Since(began).Round(time.Second))
			}
		}
	}()
	return func() {
		close(quit)
		<-done
	}
}
