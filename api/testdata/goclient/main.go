// Command goclient submits a video with what oapi-codegen makes of the gateway's
// OpenAPI document, and reads the task back.
package main

import (
	"context"
	"fmt"
	"net/http"
	"os"

	"goclient/gateway"
)

func main() {
	if err := run(context.Background(), os.Getenv("MEDIAGATE_URL"), os.Getenv("MEDIAGATE_API_KEY")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, url, key string) error {
	signed := gateway.WithRequestEditorFn(func(_ context.Context, r *http.Request) error {
		r.Header.Set("Authorization", "Bearer "+key)
		return nil
	})
	client, err := gateway.NewClientWithResponses(url, signed)
	if err != nil {
		return err
	}
	models, err := client.ListModelsWithResponse(ctx, nil)
	if err != nil || models.JSON200 == nil {
		return fmt.Errorf("the models: %w, %s", err, models.Body)
	}
	duration := 3
	var body gateway.CreateVideo
	err = body.FromCreateVideoAlphaV3(
		gateway.CreateVideoAlphaV3{Model: "alpha-v3", Prompt: "a paper boat", Duration: &duration},
	)
	if err != nil {
		return err
	}
	submitted, err := client.CreateVideoWithResponse(ctx, nil, body)
	if err != nil || submitted.JSON200 == nil {
		return fmt.Errorf("the submit: %w, %s", err, submitted.Body)
	}
	read, err := client.GetTaskWithResponse(ctx, submitted.JSON200.Data[0].TaskId, nil)
	if err != nil || read.JSON200 == nil {
		return fmt.Errorf("the task: %w, %s", err, read.Body)
	}
	task := read.JSON200.Data
	fmt.Println(len(models.JSON200.Data) > 0, task.Id, task.Status, *task.EstimatedCost)
	return nil
}
