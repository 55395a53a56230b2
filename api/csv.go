package api

import (
	"encoding/csv"
	"mime"
	"net/http"
	"strconv"
	"strings"

	"github.com/mediagate/mediagate"
)

const csvType = "text/csv; charset=utf-8"

// wantsCSV reports that the client would rather have lines than JSON. What does
// not name either type takes JSON.
func (c *call) wantsCSV() bool {
	c.Response().Header().Add("Vary", "Accept")
	weights := map[string]float64{}
	for one := range strings.SplitSeq(strings.Join(c.Request().Header.Values("Accept"), ","), ",") {
		name, parameters, err := mime.ParseMediaType(one)
		if err != nil {
			continue
		}
		q, err := strconv.ParseFloat(parameters["q"], 64)
		if err != nil {
			q = 1
		}
		weights[name] = max(weights[name], q)
	}
	return weights["text/csv"] > weights["application/json"]
}

// csv writes the answer as a file of lines, of which the first one has the names
// of the columns.
func (c *call) csv(name string, lines [][]string) error {
	var text strings.Builder
	w := csv.NewWriter(&text)
	w.UseCRLF = true
	if err := w.WriteAll(lines); err != nil {
		return &mediagate.Error{Kind: mediagate.KindInternal, Message: "writing the answer", Err: err}
	}
	response := c.Response()
	header := response.Header()
	header.Set("Content-Type", csvType)
	header.Set("Content-Length", strconv.Itoa(text.Len()))
	header.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": name + ".csv"}))
	response.WriteHeader(http.StatusOK)
	_, _ = response.Write([]byte(text.String())) // a client that left is no error of ours
	return nil
}

// csvText is a text as a cell that no spreadsheet takes for a formula.
func csvText(s string) string {
	if s != "" && strings.ContainsRune("=+-@\t\r\n", rune(s[0])) {
		return "'" + s
	}
	return s
}
