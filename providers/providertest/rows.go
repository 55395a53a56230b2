package providertest

import (
	"bytes"
	"encoding/json"
	"image"
	"image/png"

	"github.com/mediagate/mediagate"
)

// Quote returns a text as a JSON string.
func Quote(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// Picture returns a PNG of this size.
func Picture(width, height int) string {
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, width, height))); err != nil {
		panic(err)
	}
	return b.String()
}

// Plain returns an answer without a fault.
func Plain(status int, body string) Reply { return Reply{Status: status, Body: body} }

// RowOf returns a row with an answer and the kind of error that it must cause.
func RowOf(kind mediagate.Kind, reply Reply) Row { return Row{Reply: reply, Kind: kind} }

// RowWithCode is RowOf with the error's code.
func RowWithCode(kind mediagate.Kind, code mediagate.FailureCode, reply Reply) Row {
	return Row{Reply: reply, Kind: kind, Code: code}
}
