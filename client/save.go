package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"

	"github.com/gabriel-vasile/mimetype"
)

// Save saves the files of a completed task in the folder and returns their paths. Files are
// named TASK-N, with the extension of their media type. A file appears complete or not at all.
func (c *Client) Save(ctx context.Context, t Task, folder string) (paths []string, err error) {
	if !isID(t.ID) {
		return nil, fmt.Errorf("no file can be named for a task with the id %q", t.ID)
	}
	for _, f := range t.Files {
		extension := ""
		if kind := mimetype.Lookup(f.MediaType); kind != nil {
			extension = kind.Extension()
		}
		path := filepath.Join(folder, fmt.Sprintf("%s-%d%s", t.ID, f.N, extension))
		if err := c.save(ctx, f.URL, path); err != nil {
			return paths, fmt.Errorf("file %d of task %s: %w", f.N, t.ID, err)
		}
		paths = append(paths, path)
	}
	return paths, nil
}

func (c *Client) save(ctx context.Context, link, path string) (err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, link, nil)
	if err != nil {
		return err
	}
	// The request has no key: the link needs none, and its host must not see it.
	response, err := send(c.http(), r, longestSilence, false)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("the link answered %s", response.Status)
	}
	part, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(part.Name())
		}
	}()
	_, err = io.Copy(part, response.Body)
	if err = errors.Join(err, part.Chmod(0o644), part.Close()); err != nil {
		return err
	}
	return os.Rename(part.Name(), path)
}
