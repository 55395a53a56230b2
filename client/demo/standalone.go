package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// where is the part of standalone.json that the demo reads.
type where struct {
	API string `json:"api"`
	UI  string `json:"ui"`
	Key string `json:"key"`
}

// start runs the standalone program on free ports. stop stops it cleanly.
func start(ctx context.Context, program, data, logFile string) (stop func() error, err error) {
	log, err := os.Create(logFile)
	if err != nil {
		return nil, err
	}
	free := "127.0.0.1:0"
	cmd := exec.CommandContext(ctx, program, "-data", data,
		"-api", free, "-temporal", free, "-ui", free, "-s3", free, "-sandbox", free, "-ops", free)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 25 * time.Second
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("start %s (make build makes it): %w", program, err), log.Close())
	}
	return func() error {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		err := cmd.Wait()
		if err != nil {
			err = fmt.Errorf("the standalone program ended badly, see %s: %w", logFile, err)
		}
		return errors.Join(err, log.Close())
	}, nil
}

// ready waits for standalone.json and returns its addresses and the key.
func ready(ctx context.Context, data string) (where, error) {
	for {
		text, err := os.ReadFile(filepath.Join(data, "standalone.json"))
		if err == nil {
			var w where
			return w, json.Unmarshal(text, &w)
		}
		select {
		case <-ctx.Done():
			return where{}, errors.New("the standalone program did not come up in time")
		case <-time.After(100 * time.Millisecond):
		}
	}
}
