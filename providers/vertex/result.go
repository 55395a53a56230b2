package vertex

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/providers/googleapi"
	"github.com/mediagate/mediagate/providers/vendorhttp"
)

// bytesField is the member of an answer that holds a video.
const bytesField = "bytesBase64Encoded"

// result is the result of an operation.
type result struct {
	Videos []struct {
		Bytes vendorhttp.Text `json:"bytesBase64Encoded"` // the video's number, see readOperation
		GCS   vendorhttp.Text `json:"gcsUri"`
	} `json:"videos"`
	googleapi.Filtered
}

// Poll asks for a job by the vendor's id.
func (a *Adapter) Poll(ctx context.Context, ref mediagate.JobRef) (mediagate.Report, error) {
	answer, at, err := a.fetch(ctx, ref, vendorhttp.Limits{Total: pollTimeout})
	if err != nil {
		return mediagate.Report{}, err
	}
	defer answer.Body.Close()
	if answer.Status != http.StatusOK {
		whole, err := answer.Whole(textBytes)
		if err != nil {
			return mediagate.Report{}, err
		}
		return mediagate.Report{}, googleapi.ReadError(a.http, whole)
	}
	op, err := readOperation(answer.Body, at.samples)
	if err != nil {
		return mediagate.Report{}, malformedError(err)
	}
	report, err := op.State(a.http, ref)
	if err != nil || report.State != mediagate.JobSucceeded {
		return report, err
	}
	a.addResult(&report, op, at.samples)
	return report, nil
}

// readOperation reads the answer about an operation without keeping any video. It replaces each
// video by the number of its string among all strings with that name, from 0. readOperation stops
// as soon as the last possible video has begun, because reading the rest takes as long as its
// download.
func readOperation(answer io.Reader, samples int) (googleapi.Operation, error) {
	x := vendorhttp.NewExtractor(answer, bytesField, textBytes)
	videos := 0
	for n := 0; ; n++ {
		text, err := x.Next()
		if errors.Is(err, io.EOF) {
			op, err := decodeOperation(x.Document())
			return op, err
		}
		if err != nil {
			return googleapi.Operation{}, err
		}
		switch _, err := io.ReadFull(text, make([]byte, 1)); {
		case errors.Is(err, io.EOF):
			continue // an empty string is no video
		case err != nil:
			return googleapi.Operation{}, err
		}
		x.Replace(strconv.Itoa(n))
		if videos++; videos > samples {
			continue // an unexpected video; missing members come after it
		}
		if op, err := decodeOperation(x.Cut()); err == nil && isComplete(op, videos, samples) {
			return op, nil
		}
	}
}

func decodeOperation(document []byte) (op googleapi.Operation, err error) {
	err = vendorhttp.Answer{Body: document}.Decode(&op)
	return op, err
}

// isComplete reports whether enough of the answer was read: the operation is done, and each video that
// was asked for has begun or was withheld.
func isComplete(op googleapi.Operation, videos, samples int) bool {
	if _, _, named := op.Parts(); !named || op.Done == nil || *op.Done != "true" {
		return false
	}
	var made result
	_ = json.Unmarshal(op.Response, &made)
	held, _ := strconv.Atoi(string(made.Count))
	return videos+max(0, held) >= samples
}

// addResult completes the report on an operation that has succeeded. It ignores videos beyond those
// that were asked for, because the fetch of each costs the download of all before it.
func (a *Adapter) addResult(report *mediagate.Report, op googleapi.Operation, samples int) {
	var made result
	if err := (vendorhttp.Answer{Body: op.Response}).Decode(&made); err != nil {
		made = result{}
	}
	var media []mediagate.Media
	whole, elsewhere := true, false
	for i, v := range made.Videos {
		if v.Bytes != "" && len(media) < samples {
			media = append(media, mediagate.Media{Ref: string(v.Bytes), Index: i, MimeType: "video/mp4"})
		}
		whole, elsewhere = whole && v.Bytes != "", elsewhere || v.GCS != ""
	}
	if len(media) == 0 && elsewhere { // in a bucket of the account, which we did not ask for
		report.State, report.Outcome = mediagate.JobFailed, &mediagate.Outcome{Failure: &mediagate.Failure{
			Code: mediagate.CodeResultUnavailable, Message: "the vendor stored the video where the gateway does not read",
		}}
		return
	}
	googleapi.OfferVideos(a.http, report, media, whole, made.Filtered)
}

// Open asks for the operation again and reads up to the video that media names.
func (a *Adapter) Open(ctx context.Context, ref mediagate.JobRef, media mediagate.Media) (io.ReadCloser, int64, error) {
	number, err := strconv.Atoi(media.Ref)
	if err != nil || number < 0 {
		return nil, 0, malformedError(errors.New("the reference names no video"))
	}
	answer, _, err := a.fetch(ctx, ref, vendorhttp.Limits{Total: fileTimeout, Header: headTimeout})
	if err != nil {
		return nil, 0, err
	}
	text, err := a.find(answer, number)
	if err != nil {
		_ = answer.Body.Close()
		return nil, 0, err
	}
	return &video{answer: answer.Body, bytes: base64.NewDecoder(base64.StdEncoding, text)}, -1, nil
}

// find returns the string with that number in an answer.
func (a *Adapter) find(answer *vendorhttp.Stream, number int) (io.Reader, error) {
	switch answer.Status {
	case http.StatusOK:
	case http.StatusNotFound, http.StatusGone:
		return nil, goneError()
	default:
		whole, err := answer.Whole(textBytes)
		if err != nil {
			return nil, err
		}
		err = googleapi.ReadError(a.http, whole)
		return nil, mediagate.Errorf(mediagate.KindTransient, "the vendor does not give the video: %w", err)
	}
	x := vendorhttp.NewExtractor(answer.Body, bytesField, textBytes)
	for n := 0; ; n++ {
		text, err := x.Next()
		switch {
		case errors.Is(err, io.EOF):
			op, err := decodeOperation(x.Document())
			if err == nil && op.Done != nil && *op.Done == "true" {
				return nil, goneError()
			}
			return nil, malformedError(errors.New("the answer holds no video"))
		case err != nil:
			return nil, malformedError(err)
		case n == number:
			return text, nil
		}
	}
}

// video is a video that is being read. It ends at the end of its string, before the end of the
// answer.
type video struct {
	answer io.Closer
	bytes  io.Reader
}

func (v *video) Read(p []byte) (int, error) {
	n, err := v.bytes.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = malformedError(err)
	}
	return n, err
}

// Close ends the call, even if there is more to read.
func (v *video) Close() error { return v.answer.Close() }

func goneError() error {
	return mediagate.Errorf(mediagate.KindGone, "the vendor has the video no more")
}

// malformedError returns the error of an answer that is malformed or broke off. It is
// KindTransient, because a repeated call may get a correct answer.
func malformedError(err error) error {
	if _, ours := errors.AsType[*mediagate.Error](err); ours {
		return err
	}
	return &mediagate.Error{Kind: mediagate.KindTransient, Message: "the vendor's answer cannot be read", Err: err}
}
