package api

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"regexp"
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

// clientUsage and operatorUsage list what each may group by, in the order of the columns.
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

// The messages of failed lookups on the balance endpoints.
const (
	noRecord      = "record not found"
	noUser        = "user does not exist"
	databaseError = "database error"
)

// lookupFailure is a failed lookup on a balance endpoint, which answers it with HTTP 200.
type lookupFailure struct {
	message string
	err     error
}

func (f *lookupFailure) Error() string { return f.message + ": " + f.err.Error() }
func (f *lookupFailure) Unwrap() error { return f.err }

// asLookupFailure turns the store's error into a lookupFailure. absent is the message if there is
// no row.
func asLookupFailure(err error, absent string) error {
	switch mediagate.KindOf(err) {
	case mediagate.KindNotFound, mediagate.KindUnauthenticated:
		return &lookupFailure{absent, err}
	default:
		return &lookupFailure{databaseError, err}
	}
}

type balanceError struct {
	Success bool   `json:"success"`
	Message string `json:"message"`
}

func balanceFailure(err error) (balanceError, bool) {
	var f *lookupFailure
	if !errors.As(err, &f) {
		return balanceError{}, false
	}
	return balanceError{Message: f.message}, true
}

type tokenBalance struct {
	Success        bool        `json:"success"`
	RemainBalance  json.Number `json:"remain_balance"`
	RemainCredits  int64       `json:"remain_credits"`
	UsedBalance    json.Number `json:"used_balance"`
	UsedCredits    int64       `json:"used_credits"`
	UnlimitedQuota bool        `json:"unlimited_quota"`
}

type userBalance struct {
	Success       bool        `json:"success"`
	RemainBalance json.Number `json:"remain_balance"`
	RemainCredits int64       `json:"remain_credits"`
	UsedBalance   json.Number `json:"used_balance"`
	UsedCredits   json.Number `json:"used_credits"`
}

// handleTokenBalance reads the key anew. The cached key suffices to admit the call, but its
// amounts may be outdated.
func (s *Server) handleTokenBalance(c *call) error {
	key, err := s.cfg.Store.Key(c.ctx, c.caller.key.ID)
	if err != nil {
		return asLookupFailure(err, noRecord)
	}
	b := tokenBalance{
		Success: true, RemainBalance: "-1", RemainCredits: -1,
		UsedBalance: key.Spent.Number(), UsedCredits: key.Spent.WholeCredits(s.cfg.CreditsPerUnit),
		UnlimitedQuota: key.Unlimited,
	}
	if !key.Unlimited {
		b.RemainBalance = key.Remaining().Number()
		b.RemainCredits = key.Remaining().WholeCredits(s.cfg.CreditsPerUnit)
	}
	return c.ok(b)
}

func (s *Server) handleUserBalance(c *call) error {
	account, err := s.cfg.Store.Account(c.ctx, c.caller.key.AccountID)
	if err != nil {
		return asLookupFailure(err, noUser)
	}
	return c.ok(userBalance{
		Success:       true,
		RemainBalance: account.Available.Number(),
		RemainCredits: account.Available.WholeCredits(s.cfg.CreditsPerUnit),
		UsedBalance:   account.Spent.Number(),
		UsedCredits:   account.Spent.Credits(s.cfg.CreditsPerUnit),
	})
}

// maxStatementLines bounds the lines of a statement as a file.
const maxStatementLines = 10_000

type balanceView struct {
	Available string `json:"available"`
	Held      string `json:"held"`
	Spent     string `json:"spent"`
}

func viewBalance(b mediagate.Balance) balanceView {
	return balanceView{b.Available.String(), b.Held.String(), b.Spent.String()}
}

// statementView is a page of a statement, with balances and lines in one of two forms. The
// opening balance and the changes of the lines sum to the closing balance.
type statementView[B, L any] struct {
	Object   string `json:"object"`
	Account  string `json:"account"`
	Currency string `json:"currency"`
	From     int64  `json:"from"`
	To       *int64 `json:"to"`
	Opening  B      `json:"opening"`
	Data     []L    `json:"data"`
	Closing  B      `json:"closing"`
	HasMore  bool   `json:"has_more"`
}

func viewStatement[B, L any](
	s *Server, object string, f mediagate.StatementFilter, st mediagate.Statement,
	balance func(mediagate.Balance) B, line func(mediagate.StatementLine) L,
) statementView[B, L] {
	return statementView[B, L]{
		Object: object, Account: f.AccountID, Currency: s.cfg.Currency, From: f.From.Unix(), To: unixOrNull(f.To),
		Opening: balance(st.Opening), Data: listOf(st.Lines, st.HasMore, line).Data, Closing: balance(st.Closing),
		HasMore: st.HasMore,
	}
}

// byTask requests a statement with one line a task.
const byTask = "task"

// totalView is what an account has, held or not, and what it has spent.
type totalView struct {
	Balance string `json:"balance"`
	Spent   string `json:"spent"`
}

func viewTotal(b mediagate.Balance) totalView { return totalView{b.Total().String(), b.Spent.String()} }

// taskLine is the end of a task, or a grant, with the change that it made and the balance after
// it.
type taskLine struct {
	transferView
	Model   *string `json:"model"`
	Balance string  `json:"balance"`
}

func viewTaskLine(l mediagate.StatementLine) taskLine {
	v := taskLine{viewTransfer(l.Transfer), orNull(l.Model), l.Total.String()}
	v.Amount = l.Change.Total().String()
	return v
}

// statementLine is an entry of the ledger with its model and the change of the balance.
type statementLine struct {
	transferView
	Model  *string     `json:"model"`
	Change balanceView `json:"change"`
}

func viewLine(l mediagate.StatementLine) statementLine {
	return statementLine{viewTransfer(l.Transfer), orNull(l.Model), viewBalance(l.Change)}
}

// handleStatement answers with the statement of an account. An operator's call may take long.
func (s *Server) handleStatement(c *call) error {
	id, err := accountOf(c)
	if err != nil {
		return err
	}
	if c.isOperators() {
		c.takeLong(checkTime)
	}
	return notFoundAs(s.answerStatement(c, id), errNoAccount(c))
}

// answerStatement answers with the entries that changed an account's balance.
func (s *Server) answerStatement(c *call, id string) (err error) {
	asFile := c.wantsCSV()
	q := c.query()
	f := mediagate.StatementFilter{AccountID: id, After: q.Get("after")}
	by, err := oneOfQuery(q, "by", byTask)
	if err != nil {
		return err
	}
	f.ByTask = by == byTask
	if f.From, f.To, err = s.spanQuery(q); err != nil {
		return err
	}
	most, absent := maxLimit, defaultLimit
	if asFile {
		most, absent = maxStatementLines, maxStatementLines
	}
	if f.Limit, err = intQuery(q, "limit", 1, most, absent); err != nil {
		return err
	}
	if f.After != "" && !isID(f.After, transferPrefix) {
		return errAfterPage
	}
	st, err := s.cfg.Store.Statement(c.ctx, f)
	if err != nil {
		return err
	}
	if asFile {
		if st.HasMore {
			c.linkNext(q, st.Lines[len(st.Lines)-1].ID)
		}
		names, err := s.keyNames(c, st.Lines)
		if err != nil {
			return err
		}
		return c.csv("statement-"+id, statementLines(f, st, names))
	}
	if f.ByTask {
		return c.ok(viewStatement(s, "task_statement", f, st, viewTotal, viewTaskLine))
	}
	return c.ok(viewStatement(s, "statement", f, st, viewBalance, viewLine))
}

// keyNames returns the names of the keys in a statement, by id.
func (s *Server) keyNames(c *call, lines []mediagate.StatementLine) (map[string]string, error) {
	ids := map[string]bool{}
	for _, l := range lines {
		ids[l.KeyID] = true
	}
	delete(ids, "")
	return s.cfg.Store.Names(c.ctx, slices.Collect(maps.Keys(ids)))
}

// linkNext adds the Link header of the next page.
func (c *call) linkNext(q url.Values, after string) {
	q.Set("after", after)
	c.Response().Header().Set("Link", "<"+c.Request().URL.Path+"?"+q.Encode()+`>; rel="next"`)
}

// statementLines returns the statement as lines of a CSV file. The first and last lines are
// balances, the others changes.
func statementLines(f mediagate.StatementFilter, st mediagate.Statement, names map[string]string) [][]string {
	moment := func(t time.Time) string {
		if t.IsZero() {
			return ""
		}
		return t.UTC().Format(time.RFC3339Nano)
	}
	money := []string{"amount", "available", "held", "spent"}
	balance := func(b mediagate.Balance) []string {
		return []string{"", b.Available.String(), b.Held.String(), b.Spent.String()}
	}
	change := func(l mediagate.StatementLine) []string {
		return append([]string{l.Amount.String()}, balance(l.Change)[1:]...)
	}
	if f.ByTask {
		money = []string{"amount", "balance"}
		balance = func(b mediagate.Balance) []string { return []string{"", b.Total().String()} }
		change = func(l mediagate.StatementLine) []string { return []string{l.Change.Total().String(), l.Total.String()} }
	}
	line := func(at, word string, money []string, about ...string) []string {
		return append(append([]string{at, word}, money...), about...)
	}
	lines := append(make([][]string, 0, len(st.Lines)+3),
		line("at", "kind", money, "task", "model", "key", "key_name", "reference", "id"),
		line(moment(f.From), "opening", balance(st.Opening), "", "", "", "", "", ""))
	for _, l := range st.Lines {
		lines = append(lines, line(moment(l.At), string(l.Kind), change(l),
			csvText(l.TaskID), csvText(l.Model), csvText(l.KeyID), csvText(names[l.KeyID]), csvText(l.Reference), csvText(l.ID)))
	}
	last := moment(f.To)
	if st.HasMore {
		last = moment(st.Lines[len(st.Lines)-1].At)
	}
	return append(lines, line(last, "closing", balance(st.Closing), "", "", "", "", "", ""))
}

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
