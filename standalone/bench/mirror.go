package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/mediagate/mediagate/internal/outbound"
	"github.com/mediagate/mediagate/storage/blob"
)

// measureMirror compares the mirroring of a large file (guarded client, size
// cap, sniffed type, SHA-256, media headers, upload in parts) with a plain
// copy of it: download to a file, then one PutObject.
func measureMirror(ctx context.Context, m *machine) ([]row, error) {
	g, err := m.install(ctx, "mirror", m.channels(time.Second))
	if err != nil {
		return nil, err
	}
	from, err := url.Parse(m.vendor.url + largeFile)
	if err != nil {
		return nil, err
	}
	n := 0
	subject := once(func(ctx context.Context) error {
		n++
		open := func(ctx context.Context) (io.ReadCloser, int64, error) {
			body, err := download(ctx, outbound.Rules{}.MediaClient(from.Host), from.String())
			return body, -1, err
		}
		r, err := g.Bucket.Mirror(ctx, fmt.Sprintf("results/task_%d/1/0", n), open, blob.Limits{MaxBytes: 2 << 30, Media: "video"})
		if err == nil && r.Size != largeBytes {
			err = fmt.Errorf("mirrored %d bytes of %d", r.Size, int64(largeBytes))
		}
		return err
	})
	plain := s3.New(s3.Options{
		Region: g.Config.S3.Region, BaseEndpoint: aws.String(m.s3.Endpoint), UsePathStyle: true,
		Credentials:                credentials.NewStaticCredentialsProvider("bench", m.secret, ""),
		RequestChecksumCalculation: aws.RequestChecksumCalculationWhenRequired,
	})
	client := newHTTP()
	m.later(client.CloseIdleConnections)
	floor := once(func(ctx context.Context) error {
		n++
		return plainCopy(ctx, client, plain, g.Config.S3.Bucket, fmt.Sprintf("plain/%d", n), from.String(), m.dir)
	})
	c, err := compare(ctx, m.size(3, 1), breathe, floor, subject)
	if err != nil {
		return nil, err
	}
	return []row{rateRow("a file of 160 MiB", "download, then PutObject", c, 0.8)}, nil
}

func download(ctx context.Context, c *http.Client, from string) (io.ReadCloser, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, from, http.NoBody)
	if err != nil {
		return nil, err
	}
	resp, err := c.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		return nil, errors.Join(fmt.Errorf("download: %s", resp.Status), resp.Body.Close())
	}
	return resp.Body, nil
}

func plainCopy(ctx context.Context, c *http.Client, to *s3.Client, bucket, key, from, dir string) error {
	body, err := download(ctx, c, from)
	if err != nil {
		return err
	}
	defer body.Close()
	file, err := os.Create(filepath.Join(dir, "plain-copy"))
	if err != nil {
		return err
	}
	defer file.Close()
	if _, err := io.Copy(file, body); err != nil {
		return err
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	_, err = to.PutObject(ctx, &s3.PutObjectInput{Bucket: &bucket, Key: &key, Body: file, ContentType: aws.String("video/mp4")})
	return err
}
