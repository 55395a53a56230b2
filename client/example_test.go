package client_test

import (
	"context"
	"fmt"
	"os"

	"github.com/mediagate/mediagate/client"
)

// This example submits a request, waits for its task and saves the files in a folder.
func Example() {
	ctx := context.Background()
	c := client.Client{URL: os.Getenv("MEDIAGATE_URL"), Key: os.Getenv("MEDIAGATE_API_KEY")}
	task, err := c.Run(ctx, client.Request{
		Model: "alpha-v3", Fields: map[string]any{"prompt": "a paper boat sails down a rainy street", "duration": 5},
	}, func(t client.Task) { fmt.Println(t.Status, t.Progress) })
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(c.Save(ctx, task, "."))
}
