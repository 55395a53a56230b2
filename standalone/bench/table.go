package main

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"
)

// row is a line of a chapter's table.
type row struct {
	what     string
	measured string
	floor    string // its figure, and what it is
	ratio    string // of the measured figure to the floor's
	aim      string // empty: the figure is not judged
	met      bool
}

// rateRow is the row of a comparison that should reach at least aim of its
// floor's rate.
func rateRow(what, floor string, c comparison, aim float64) row {
	subjectFigure, floorFigure := c.figures()
	ratios := c.ratios()
	return row{
		what: what, measured: subjectFigure, floor: floorFigure + ", " + floor,
		ratio: fmt.Sprintf("%.2f (%.2f–%.2f)", quantile(ratios, 0.5), quantile(ratios, 0.25), quantile(ratios, 0.75)),
		aim:   fmt.Sprintf("≥ %.2f", aim), met: quantile(ratios, 0.5) >= aim,
	}
}

// timeRow is the row of a quantile of times that should be at most aim times
// that of its floor.
func timeRow(what, floor string, q float64, subject, alone []time.Duration, aim float64) row {
	slow, base := quantile(subject, q), quantile(alone, q)
	ratio := float64(slow) / float64(max(base, 1))
	return row{
		what: fmt.Sprintf("%s, p%.0f", what, 100*q), measured: short(slow), floor: short(base) + ", " + floor,
		ratio: fmt.Sprintf("× %.2f", ratio), aim: fmt.Sprintf("≤ × %.2f", aim), met: ratio <= aim,
	}
}

// short is a duration in its unit.
func short(d time.Duration) string {
	switch {
	case d >= time.Second:
		return digits(d.Seconds()) + " s"
	case d >= time.Millisecond:
		return digits(1e3*d.Seconds()) + " ms"
	default:
		return digits(1e6*d.Seconds()) + " µs"
	}
}

// digits is a figure with as many digits as one can trust.
func digits(figure float64) string {
	if figure >= 10 {
		return fmt.Sprintf("%.0f", figure)
	}
	return fmt.Sprintf("%.2g", figure)
}

// printTable writes a chapter's rows.
func printTable(w io.Writer, rows []row) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "\tmeasured\tfloor\tratio\taim\t")
	for _, r := range rows {
		verdict := "missed"
		switch {
		case r.aim == "":
			verdict = ""
		case r.met:
			verdict = "ok"
		}
		_, _ = fmt.Fprintf(table, "  %s\t%s\t%s\t%s\t%s\t%s\n", r.what, r.measured, r.floor, r.ratio, r.aim, verdict)
	}
	_, _ = fmt.Fprintln(table)
	return table.Flush()
}
