// Package client speaks to a gateway from Go: it submits a request so that it is made
// once, waits for the end of its task and saves the files.
//
//	c := client.Client{URL: "https://api.example.com", Key: key}
//	task, err := c.Run(ctx, client.Request{Model: "alpha-v3", Fields: map[string]any{"prompt": "a paper boat"}}, nil)
//	if err == nil {
//		paths, err = c.Save(ctx, task, ".")
//	}
//
// Whoever makes requests that a program must not lose keeps the idempotency key of each
// with it, and submits it again after a crash: within 24 hours it is the same task.
//
// A file of a task is an input of the next one before it exists (FileOf): a program submits a
// chain at once and waits for its last task alone, or for none.
//
// Promise: a request whose answer was lost is made once. It imports nothing of ours.
package client
