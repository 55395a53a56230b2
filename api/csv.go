package api

import (
	"bytes"
	"encoding/csv"
	"mime"
	"net/http"
	"regexp"
	"strconv"
	"strings"

	"github.com/mediagate/mediagate"
)

const csvType = "text/csv; charset=utf-8"

// wantsCSV reports whether the client prefers CSV to JSON. A client that names neither gets JSON.
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

// csv answers with a CSV file. The first line has the names of the columns.
func (c *call) csv(name string, lines [][]string) error {
	var text bytes.Buffer
	w := csv.NewWriter(&text)
	w.UseCRLF = true
	if err := w.WriteAll(lines); err != nil {
		return &mediagate.Error{Kind: mediagate.KindInternal, Message: "writing the answer", Err: err}
	}
	c.Response().Header().Set(
		"Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": name + ".csv"}),
	)
	c.text(http.StatusOK, csvType, text.Bytes())
	return nil
}

// formula matches the beginning of a cell that a spreadsheet would take for a formula, also in the
// full-width forms of East Asia. In some locales a spreadsheet begins a new cell after a semicolon.
var formula = regexp.MustCompile(`^([\t\r\n])|(^|[;\t\r\n])([=+@＝＋－＠-])`)

// csvText returns the text as a cell that no spreadsheet takes for a formula.
func csvText(s string) string { return formula.ReplaceAllString(s, "${2}'${1}${3}") }
