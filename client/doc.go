// Package client calls a gateway from Go. It submits a request so that exactly one task is made,
// waits for the task's end and saves the files.
//
//	c := client.Client{URL: "https://api.example.com", Key: key}
//	task, err := c.Run(ctx, client.Request{
//		Model: "alpha-v3", Fields: map[string]any{"prompt": "a paper boat"},
//	}, nil)
//	if err == nil {
//		paths, err = c.Save(ctx, task, ".")
//	}
//
// A program that must not lose its requests stores an idempotency key with each. After a crash
// it submits the request again with the same key. Within 24 hours, that returns the same task.
//
// A file of a task can be the input of the next task before the file exists (FileOf). So a
// program can submit a chain of tasks at once and wait only for the last one, or for none.
//
// A request whose answer is lost still makes exactly one task. The package imports nothing else
// of this module.
package client
