package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// row is a line of the table.
type row struct {
	what, floor string
	value       string // of the clock
	byCPU       string // of the CPU time, where that says something
	aim         string
	met         bool // by the clock
	metByCPU    bool
	compared    bool // a ratio, hence byCPU says something
}

// ratioRow is the row of a comparison that should reach at least aim of its
// floor.
func ratioRow(what, floor string, c comparison, aim float64) row {
	byTime, byCPU := c.byTime(), c.byCPU()
	r := row{
		what: what, floor: floor, aim: fmt.Sprintf("≥ %.2f", aim), value: summary(byTime), byCPU: summary(byCPU),
		met: quantile(byTime, 0.5) >= aim, metByCPU: quantile(byCPU, 0.5) >= aim, compared: byCPU != nil,
	}
	return r
}

// summary is the median and the middle half of ratios.
func summary(ratios []float64) string {
	if len(ratios) == 0 {
		return ""
	}
	return fmt.Sprintf("%.2f (%.2f–%.2f)", quantile(ratios, 0.5), quantile(ratios, 0.25), quantile(ratios, 0.75))
}

// crowded is the share of the machine that others may have before the clock
// says more about them than about us.
const crowded = 0.1

// printTable writes the rows. On a crowded machine ratios are judged by CPU
// time, else by the clock.
func printTable(w io.Writer, rows []row, others float64, footer string) error {
	var b strings.Builder
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "measured\tagainst\tby the clock\tby CPU time\taim\t")
	for _, r := range rows {
		_, _ = fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", r.what, r.floor, r.value, r.byCPU, r.aim, r.verdict(others))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "%s\n%s; others had %.0f %% of the machine", b.String(), footer, 100*others)
	if err == nil && others > crowded {
		_, err = fmt.Fprint(w, ": ratios are judged by CPU time")
	}
	if err == nil {
		_, err = fmt.Fprintln(w)
	}
	return err
}

func (r row) verdict(others float64) string {
	met := r.met
	if r.compared && others > crowded {
		met = r.metByCPU
	}
	if met {
		return "ok"
	}
	return "missed"
}
