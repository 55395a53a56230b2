package kernel

import (
	"encoding/base64"
	"errors"
	"fmt"
	"mime"
	"slices"
	"strings"
)

// ReadData reads a data URI in base64 whose content has one of the types.
func ReadData(uri string, types []string) (raw []byte, mimeType string, err error) {
	head, body, _ := strings.Cut(uri, ",")
	head, isData := strings.CutPrefix(head, "data:")
	head, encoded := strings.CutSuffix(head, ";base64")
	if !isData || !encoded {
		return nil, "", errors.New("must be a URL or a data URI in base64")
	}
	mimeType, _, err = mime.ParseMediaType(head)
	if err != nil || !slices.Contains(types, mimeType) {
		return nil, "", fmt.Errorf("must have one of the types %s", strings.Join(types, ", "))
	}
	raw, err = base64.StdEncoding.DecodeString(body)
	if err != nil || len(raw) == 0 {
		return nil, "", errors.New("must be valid base64")
	}
	return raw, mimeType, nil
}
