package operator

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// accountsUsage prints the usage of one account or of all. The grouping keys of the rows are columns
// of the table, and so are the numbers of tasks.
func accountsUsage(ctx context.Context, c *call) error {
	flags := map[string]*string{
		"account": c.flags.String("account", "", ""), "from": c.flags.String("from", "", ""),
		"to":       c.flags.String("to", "", ""),
		"group_by": c.flags.String("group-by", "", ""),
	}
	if err := c.parse(); err != nil {
		return err
	}
	query := url.Values{}
	addGiven(query, flags)
	answer, err := c.client.do(ctx, http.MethodGet, "/usage?"+query.Encode(), nil)
	if err != nil || c.format == "json" {
		return orShow(c, answer, err)
	}
	var list struct {
		Data []map[string]any `json:"data"`
	}
	numbers := json.NewDecoder(bytes.NewReader(answer))
	numbers.UseNumber() // exact, however large
	if err := numbers.Decode(&list); err != nil {
		return fmt.Errorf("the answer is not readable: %w", err)
	}
	var columns []string
	for _, by := range []string{"day", "account", "key", "model", "provider"} {
		if slices.ContainsFunc(
			strings.Split(*flags["group_by"], ","), func(word string) bool { return strings.TrimSpace(word) == by },
		) {
			columns = append(columns, by)
		}
	}
	columns = append(columns, "cost", "open", "completed", "failed", "cancelled")
	if slices.Contains(columns, "provider") {
		columns = append(columns, "vendor_charges")
	}
	for _, row := range list.Data {
		tasks, _ := row["tasks"].(map[string]any)
		open := int64(0)
		for _, state := range []string{"pending", "processing"} {
			number, _ := tasks[state].(json.Number)
			n, _ := number.Int64()
			open += n
		}
		row["open"] = open
		for _, state := range []string{"completed", "failed", "cancelled"} {
			row[state] = tasks[state]
		}
		charges, _ := row["vendor_charges"].([]any)
		texts := make([]string, len(charges))
		for i, one := range charges {
			charge, _ := one.(map[string]any)
			texts[i] = fmt.Sprint(charge["amount"], " ", charge["unit"])
		}
		row["vendor_charges"] = strings.Join(texts, ", ")
	}
	return c.table(list.Data, columns)
}

// accountsStatement prints the entries that changed an account's balance. The table begins and ends
// with a balance.
func accountsStatement(ctx context.Context, c *call) error {
	account := c.flags.String("account", "", "")
	from, to := c.flags.String("from", "", ""), c.flags.String("to", "", "")
	limit, after := c.flags.Int("limit", 100, ""), c.flags.String("after", "", "")
	if err := c.parse(); err != nil {
		return err
	}
	if err := required(map[string]*string{"account": account}); err != nil {
		return err
	}
	query := page(*limit, *after)
	addGiven(query, map[string]*string{"from": from, "to": to})
	answer, err := c.client.do(
		ctx, http.MethodGet, "/accounts/"+url.PathEscape(*account)+"/statement?"+query.Encode(), nil,
	)
	if err != nil || c.format == "json" {
		return orShow(c, answer, err)
	}
	var st struct {
		Opening, Closing map[string]any
		Data             []map[string]any
		HasMore          bool `json:"has_more"`
	}
	if err := json.Unmarshal(answer, &st); err != nil {
		return fmt.Errorf("the answer is not readable: %w", err)
	}
	rows := make([]map[string]any, 0, len(st.Data)+2)
	balance := func(word string, b map[string]any) {
		rows = append(rows, map[string]any{"kind": word, "available": b["available"], "held": b["held"], "spent": b["spent"]})
	}
	balance("opening", st.Opening)
	for _, line := range st.Data {
		change, _ := line["change"].(map[string]any)
		for _, name := range []string{"available", "held", "spent"} {
			line[name] = change[name]
		}
		rows = append(rows, line)
	}
	balance("closing", st.Closing)
	if err := c.table(
		rows, []string{"at", "kind", "available", "held", "spent", "task", "model", "key", "reference"},
	); err != nil {
		return err
	}
	if st.HasMore && len(st.Data) > 0 {
		_, err = fmt.Fprintln(c.out, "… more: -after", st.Data[len(st.Data)-1]["id"])
	}
	return err
}
