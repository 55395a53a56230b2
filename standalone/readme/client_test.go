package readme_test

import (
	"bufio"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/mediagate/mediagate/internal/npmtest"
)

// The receiver that docs/api.md shows, with the library of the scheme's own
// authors: it takes what the gateway sends and refuses what it did not sign.
func TestStandardWebhooks(t *testing.T) {
	t.Parallel()
	receiver := npmtest.Install(t, "receiver", "")
	code := blocks(t, "docs/api.md", "js receiver")[0]
	if err := os.WriteFile(filepath.Join(receiver, "receiver.mjs"), []byte(code), 0o600); err != nil {
		t.Fatal(err)
	}

	p := start(t)
	var secret struct {
		Secret string `json:"secret"`
	}
	p.call(t.Context(), t, http.MethodGet, "/v1/webhooks/secret", "", &secret)
	address := "127.0.0.1:" + strconv.Itoa(port(t))
	printed := receive(t, receiver, "WEBHOOK_SECRET="+secret.Secret, "PORT="+address[strings.Index(address, ":")+1:])
	hook := "http://" + address + "/hooks"
	if status := forge(t, hook); status != http.StatusUnauthorized {
		t.Errorf("a forged callback is answered %d, want 401", status)
	}
	ended := p.image(t.Context(), t, map[string]any{"webhook": hook})
	limit := time.After(30 * time.Second)
	select {
	case line := <-printed:
		if want := ended.ID + " completed"; line != want {
			t.Errorf("the receiver printed %q, want %q", line, want)
		}
	case <-limit:
		t.Fatalf("nothing was delivered: %+v", p.task(t.Context(), t, ended.ID).Webhook)
	}
	for ended.Webhook.State == "pending" { // until the answer is recorded
		select {
		case <-time.After(20 * time.Millisecond):
		case <-limit:
			t.Fatal("the delivery is not recorded")
		}
		ended = p.task(t.Context(), t, ended.ID)
	}
	if ended.Webhook.State != "delivered" {
		t.Errorf("webhook %+v, want delivered", ended.Webhook)
	}
}

// receive runs the receiver of the folder until the test ends. The channel
// gets each line that it prints.
func receive(t *testing.T, folder string, env ...string) <-chan string {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	node := exec.CommandContext(ctx, "node", "receiver.mjs")
	node.Dir, node.Env, node.Stderr = folder, append(os.Environ(), env...), os.Stderr
	out, err := node.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := node.Start(); err != nil {
		t.Fatal(err)
	}
	lines := make(chan string, 16)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for scanner := bufio.NewScanner(out); scanner.Scan(); {
			select {
			case lines <- scanner.Text():
			case <-ctx.Done():
			}
		}
		_ = node.Wait() // it is killed
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	return lines
}

// forge sends a callback with a signature of nobody, as soon as the receiver
// listens.
func forge(t *testing.T, hook string) (status int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, hook+"/callback", strings.NewReader(`{"id":"task_1"}`))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("webhook-id", "task_1")
		req.Header.Set("webhook-timestamp", strconv.FormatInt(time.Now().Unix(), 10))
		req.Header.Set("webhook-signature", "v1,AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=")
		resp, err := http.DefaultClient.Do(req)
		if err == nil {
			if err := resp.Body.Close(); err != nil {
				t.Fatal(err)
			}
			return resp.StatusCode
		}
		select {
		case <-ctx.Done():
			t.Fatalf("the receiver does not listen: %v", err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// The AWS SDK, with what standalone.json says of the S3 server, finds one
// object for the task's one file, and the bytes are those behind the link.
func TestAWSSDKReadsTheObject(t *testing.T) {
	t.Parallel()
	p := start(t)
	ended := p.image(t.Context(), t, nil)
	client := s3.New(s3.Options{
		BaseEndpoint: aws.String(p.S3.Endpoint), Region: p.S3.Region, UsePathStyle: true,
		Credentials: credentials.NewStaticCredentialsProvider(p.S3.AccessKeyID, p.S3.SecretAccessKey, ""),
	})
	list, err := client.ListObjectsV2(t.Context(), &s3.ListObjectsV2Input{
		Bucket: &p.S3.Bucket, Prefix: aws.String("results/" + ended.ID + "/"),
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(list.Contents) != 1 {
		t.Fatalf("%d objects for one result", len(list.Contents))
	}
	object, err := client.GetObject(t.Context(), &s3.GetObjectInput{Bucket: &p.S3.Bucket, Key: list.Contents[0].Key})
	if err != nil {
		t.Fatal(err)
	}
	item := ended.Result.Images[0]
	if got := aws.ToString(object.ContentType); got != item.MimeType {
		t.Errorf("content type %q, the task says %q", got, item.MimeType)
	}
	stored := read(t, object.Body)
	if int64(len(stored)) != item.SizeBytes {
		t.Errorf("%d bytes, the task says %d", len(stored), item.SizeBytes)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, item.URL[0], nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	if linked := read(t, resp.Body); sha256.Sum256(linked) != sha256.Sum256(stored) {
		t.Errorf("the link leads to %d other bytes (%s)", len(linked), resp.Status)
	}
}

func read(t *testing.T, body io.ReadCloser) []byte {
	t.Helper()
	text, err := io.ReadAll(body)
	if err := errors.Join(err, body.Close()); err != nil {
		t.Fatal(err)
	}
	return text
}
