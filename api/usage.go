package api

import (
	"encoding/json"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mediagate/mediagate"
)

const (
	usageDays    = 30  // covered by a query without from, in addition to the last day
	maxUsageDays = 366 // for one query
	maxUsageRows = 50_000
)

const day = 24 * time.Hour

// dateQuery reads a time or a date. A date is the beginning of its day in UTC.
func dateQuery(q url.Values, name string) (time.Time, error) {
	s := q.Get(name)
	if s == "" {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.DateOnly, s)
	ok := err == nil
	if !ok {
		t, ok = parseTime(s)
	}
	if !ok || t.Unix() < 0 || t.Unix() > maxUnix {
		return time.Time{}, mediagate.Invalid(
			name, "%s must be a date such as 2026-03-01, Unix seconds or an RFC 3339 time, from 1970 on", name,
		)
	}
	return t.UTC(), nil
}

// spanQuery reads from and to. A missing to means no end. A missing from means the beginning of a
// day, usageDays before the end.
func (s *Server) spanQuery(q url.Values) (from, to time.Time, err error) {
	if from, err = dateQuery(q, "from"); err != nil {
		return from, to, err
	}
	if to, err = dateQuery(q, "to"); err != nil {
		return from, to, err
	}
	end := to
	if end.IsZero() {
		end = s.cfg.Now().UTC()
	}
	if q.Get("from") == "" {
		from = end.Add(-usageDays * day).Truncate(day)
	}
	switch {
	case q.Get("to") != "" && !from.Before(to):
		return from, to, mediagate.Invalid("from", "from must be before to")
	case from.After(end):
		return from, to, mediagate.Invalid("from", "from must not be in the future without to")
	}
	return from, to, nil
}

// usageQuery reads from, to, model, key, and group_by, which takes several of the known words.
func (s *Server) usageQuery(q url.Values, known []mediagate.UsageBy) (f mediagate.UsageFilter, err error) {
	if f.From, f.To, err = s.spanQuery(q); err != nil {
		return f, err
	}
	end := f.To
	if end.IsZero() {
		end = s.cfg.Now()
	}
	if end.Sub(f.From) > maxUsageDays*day {
		return f, mediagate.Invalid("from", "from and to must be at most %d days apart", maxUsageDays)
	}
	for word := range strings.SplitSeq(strings.Join(q["group_by"], ","), ",") {
		by := mediagate.UsageBy(strings.TrimSpace(word))
		switch {
		case by == "":
		case !slices.Contains(known, by):
			return f, mediagate.Invalid(
				"group_by", "group_by must be one or several of %s, with commas between", strings.Join(words(known), ", "),
			)
		case !slices.Contains(f.By, by):
			f.By = append(f.By, by)
		}
	}
	if f.Model, err = textQuery(q, "model"); err != nil {
		return f, err
	}
	if f.KeyID = q.Get("key"); f.KeyID != "" && !isID(f.KeyID, keyIDPrefix) {
		return f, mediagate.Invalid("key", "key must be the id of a key")
	}
	f.Limit = maxUsageRows
	return f, nil
}

// namedUsage is usage with the names of its accounts and keys.
type namedUsage struct {
	mediagate.UsageFilter
	rows  []mediagate.Usage
	names map[string]string
}

// usageOf reads usage, and the names of the accounts and keys in it.
func (s *Server) usageOf(c *call, f mediagate.UsageFilter) (u namedUsage, err error) {
	u.UsageFilter = f
	rows, more, err := s.cfg.Store.Usage(c.ctx, f)
	if err == nil && more {
		err = mediagate.Invalid(
			"group_by", "group_by gives more than %d rows: ask for a shorter time, or group by less", maxUsageRows,
		)
	}
	if err != nil {
		return u, err
	}
	ids := map[string]bool{}
	for _, row := range rows {
		ids[row.AccountID], ids[row.KeyID] = true, true
	}
	delete(ids, "")
	u.rows = rows
	u.names, err = s.cfg.Store.Names(c.ctx, slices.Collect(maps.Keys(ids)))
	return u, err
}

// usageList is the answer to a client.
type usageList struct {
	Object string      `json:"object"`
	Data   []usageItem `json:"data"`
}

// usageItem is a row of usage. Columns that the query does not group by are left out.
type usageItem struct {
	Day         *string     `json:"day,omitempty"`
	Model       *string     `json:"model,omitempty"`
	Key         *string     `json:"key,omitempty"`
	KeyName     *string     `json:"key_name,omitempty"`
	Cost        json.Number `json:"cost"`
	CreditsCost json.Number `json:"credits_cost"`
	Tasks       usageTasks  `json:"tasks"`
}

type usageTasks struct {
	Pending    int64 `json:"pending"`
	Processing int64 `json:"processing"`
	Completed  int64 `json:"completed"`
	Failed     int64 `json:"failed"`
	Cancelled  int64 `json:"cancelled"`
}

func (s *Server) usageItem(of namedUsage, u mediagate.Usage) usageItem {
	key := of.cell(mediagate.ByKey, u)
	return usageItem{
		Day: of.cell(mediagate.ByDay, u), Model: of.cell(mediagate.ByModel, u), Key: key, KeyName: of.name(key),
		Cost: u.Cost.Number(), CreditsCost: u.Cost.Credits(s.cfg.CreditsPerUnit), Tasks: usageTasks(u.Tasks),
	}
}

// name returns the name of the account or key in a cell, or nil if the cell is nil.
func (of namedUsage) name(cell *string) *string {
	if cell == nil {
		return nil
	}
	return new(of.names[*cell])
}

// cell returns a row's value in a column, or nil if the query does not group by it.
func (of namedUsage) cell(by mediagate.UsageBy, u mediagate.Usage) *string {
	if !slices.Contains(of.By, by) {
		return nil
	}
	switch by {
	case mediagate.ByDay:
		return new(u.Day.Format(time.DateOnly))
	case mediagate.ByAccount:
		return &u.AccountID
	case mediagate.ByKey:
		return &u.KeyID
	case mediagate.ByModel:
		return &u.Model
	default:
		return &u.Provider
	}
}

// clientUsage and operatorUsage list the columns that clients and operators may group by, in the
// order in which they are shown.
func clientUsage() []mediagate.UsageBy {
	return []mediagate.UsageBy{mediagate.ByDay, mediagate.ByModel, mediagate.ByKey}
}

func operatorUsage() []mediagate.UsageBy {
	return append(clientUsage(), mediagate.ByAccount, mediagate.ByProvider)
}

// handleUsage answers with the usage of the caller's account.
func (s *Server) handleUsage(c *call) error {
	f, err := s.usageQuery(c.query(), clientUsage())
	if err != nil {
		return err
	}
	f.AccountID = c.caller.key.AccountID
	used, err := s.usageOf(c, f)
	if err != nil {
		return err
	}
	if c.wantsCSV() {
		return c.csv("usage", s.usageLines(used))
	}
	answer := usageList{Object: "list", Data: make([]usageItem, 0, len(used.rows))}
	for _, u := range used.rows {
		answer.Data = append(answer.Data, s.usageItem(used, u))
	}
	return c.ok(answer)
}

// adminUsageItem is a row as operators see it.
type adminUsageItem struct {
	Account     *string `json:"account,omitempty"`
	AccountName *string `json:"account_name,omitempty"`
	usageItem
	Provider      *string                   `json:"provider,omitempty"` // empty for tasks without an attempt
	VendorCharges *[]mediagate.VendorCharge `json:"vendor_charges,omitempty"`
}

// handleAdminUsage answers with the usage of all accounts, or of one.
func (s *Server) handleAdminUsage(c *call) error {
	c.takeLong(checkTime)
	q := c.query()
	f, err := s.usageQuery(q, operatorUsage())
	if err != nil {
		return err
	}
	if f.AccountID = q.Get("account"); f.AccountID != "" {
		if !isID(f.AccountID, accountPrefix) {
			return mediagate.Invalid("account", "account must be the id of an account")
		}
		if _, err := s.cfg.Store.Account(c.ctx, f.AccountID); err != nil {
			return notFoundAs(err, mediagate.Invalid("account", "account must be the id of an account"))
		}
	}
	byProvider := slices.Contains(f.By, mediagate.ByProvider)
	if byProvider && (f.From.Truncate(time.Hour) != f.From || f.To.Truncate(time.Hour) != f.To) {
		return mediagate.Invalid("group_by", "group_by provider takes whole hours: move from and to to full hours")
	}
	used, err := s.usageOf(c, f)
	if err != nil {
		return err
	}
	if c.wantsCSV() {
		return c.csv("usage", s.usageLines(used))
	}
	return c.ok(listOf(used.rows, false, func(u mediagate.Usage) adminUsageItem {
		account := used.cell(mediagate.ByAccount, u)
		item := adminUsageItem{
			Account: account, AccountName: used.name(account), usageItem: s.usageItem(used, u),
			Provider: used.cell(mediagate.ByProvider, u),
		}
		if byProvider {
			charges := append([]mediagate.VendorCharge{}, u.VendorCharges...)
			item.VendorCharges = &charges
		}
		return item
	}))
}

// namedColumns are the columns with ids that also have names.
var namedColumns = []mediagate.UsageBy{mediagate.ByAccount, mediagate.ByKey}

// usageLines returns the rows as lines of a CSV file.
func (s *Server) usageLines(used namedUsage) [][]string {
	var names []string
	columns := []mediagate.UsageBy{
		mediagate.ByDay, mediagate.ByAccount, mediagate.ByKey, mediagate.ByModel, mediagate.ByProvider,
	}
	for _, by := range columns {
		if !slices.Contains(used.By, by) {
			continue
		}
		names = append(names, string(by))
		if slices.Contains(namedColumns, by) {
			names = append(names, string(by)+"_name")
		}
	}
	names = append(names, "cost", "credits_cost", "pending", "processing", "completed", "failed", "cancelled")
	byProvider := slices.Contains(used.By, mediagate.ByProvider)
	if byProvider {
		names = append(names, "vendor_charges")
	}
	lines := append(make([][]string, 0, len(used.rows)+1), names)
	for _, u := range used.rows {
		line := make([]string, 0, len(names))
		for _, by := range columns {
			cell := used.cell(by, u)
			if cell == nil {
				continue
			}
			line = append(line, csvText(*cell))
			if slices.Contains(namedColumns, by) {
				line = append(line, csvText(*used.name(cell)))
			}
		}
		line = append(line, u.Cost.Number().String(), u.Cost.Credits(s.cfg.CreditsPerUnit).String())
		for _, n := range []int64{u.Tasks.Pending, u.Tasks.Processing, u.Tasks.Completed, u.Tasks.Failed, u.Tasks.Cancelled} {
			line = append(line, strconv.FormatInt(n, 10))
		}
		if byProvider {
			charges := make([]string, len(u.VendorCharges))
			for i, charge := range u.VendorCharges {
				charges[i] = charge.Amount + " " + charge.Unit
			}
			line = append(line, csvText(strings.Join(charges, "; ")))
		}
		lines = append(lines, line)
	}
	return lines
}
