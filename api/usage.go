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
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mediagate/mediagate"
)

const (
	usageDays    = 30  // that are told without a beginning, besides the last one
	maxUsageDays = 366 // of one question
	maxUsageRows = 50_000
)

const day = 24 * time.Hour

// momentQuery reads a time or a date, which is the beginning of its day in UTC.
func momentQuery(q url.Values, name string) (time.Time, error) {
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
		return time.Time{}, mediagate.Invalid(name, "%s must be a date such as 2026-03-01, Unix seconds or an RFC 3339 time, from 1970 on", name)
	}
	return t.UTC(), nil
}

// spanQuery reads from and to. Without to the time has no end; without from it
// begins with a day, so many before its end.
func (s *Server) spanQuery(q url.Values) (from, to time.Time, err error) {
	if from, err = momentQuery(q, "from"); err != nil {
		return from, to, err
	}
	if to, err = momentQuery(q, "to"); err != nil {
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

// usageQuery reads from, to, model, key, and group_by, which takes several of the words.
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
			return f, mediagate.Invalid("group_by", "group_by must be one or several of %s, with commas between", strings.Join(words(known), ", "))
		case !slices.Contains(f.By, by):
			f.By = append(f.By, by)
		}
	}
	if f.Model, err = textQuery(q, "model"); err != nil {
		return f, err
	}
	if f.KeyID = q.Get("key"); f.KeyID != "" && !looksLike(f.KeyID, keyIDPrefix) {
		return f, mediagate.Invalid("key", "key must be the id of a key")
	}
	f.Limit = maxUsageRows
	return f, nil
}

// namedUsage is what was used, with the names of its accounts and keys.
type namedUsage struct {
	mediagate.UsageFilter
	rows  []mediagate.Usage
	names map[string]string
}

// usageOf asks for usage, and for the names of what it tells apart.
func (s *Server) usageOf(c *call, f mediagate.UsageFilter) (u namedUsage, err error) {
	u.UsageFilter = f
	rows, more, err := s.cfg.Store.Usage(c.ctx, f)
	if err == nil && more {
		err = mediagate.Invalid("group_by", "group_by makes more than %d rows: ask for a shorter time, or tell less apart", maxUsageRows)
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

// usageItem is a row of usage. What nobody asked to tell apart is left out.
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

// name is that of an account or a key in a cell; nil where the cell is.
func (of namedUsage) name(cell *string) *string {
	if cell == nil {
		return nil
	}
	return new(of.names[*cell])
}

// cell is what a row has in one of the columns that tell rows apart; nil where
// it was not asked for.
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

// clientUsage and operatorUsage are what each may tell apart, in the order of columns.
func clientUsage() []mediagate.UsageBy {
	return []mediagate.UsageBy{mediagate.ByDay, mediagate.ByModel, mediagate.ByKey}
}

func operatorUsage() []mediagate.UsageBy {
	return append(clientUsage(), mediagate.ByAccount, mediagate.ByProvider)
}

// handleUsage tells what the caller's account used.
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
	Provider      *string                   `json:"provider,omitempty"` // empty of what no vendor was asked for
	VendorCharges *[]mediagate.VendorCharge `json:"vendor_charges,omitempty"`
}

// handleAdminUsage tells what all accounts used, or one.
func (s *Server) handleAdminUsage(c *call) error {
	c.within(checkTime)
	q := c.query()
	f, err := s.usageQuery(q, operatorUsage())
	if err != nil {
		return err
	}
	if f.AccountID = q.Get("account"); f.AccountID != "" {
		if !looksLike(f.AccountID, accountPrefix) {
			return mediagate.Invalid("account", "account must be the id of an account")
		}
		if _, err := s.cfg.Store.Account(c.ctx, f.AccountID); err != nil {
			return notFoundAs(err, mediagate.Invalid("account", "account must be the id of an account"))
		}
	}
	byProvider := slices.Contains(f.By, mediagate.ByProvider)
	if byProvider && (f.From.Truncate(time.Hour) != f.From || f.To.Truncate(time.Hour) != f.To) {
		return mediagate.Invalid("group_by", "group_by provider takes whole hours: what vendors charged is known by the hour")
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
			Account: account, AccountName: used.name(account), usageItem: s.usageItem(used, u), Provider: used.cell(mediagate.ByProvider, u),
		}
		if byProvider {
			charges := append([]mediagate.VendorCharge{}, u.VendorCharges...)
			item.VendorCharges = &charges
		}
		return item
	}))
}

// named are what has a name beside its id.
var named = []mediagate.UsageBy{mediagate.ByAccount, mediagate.ByKey}

// usageLines are the rows as lines.
func (s *Server) usageLines(used namedUsage) [][]string {
	var names []string
	columns := []mediagate.UsageBy{mediagate.ByDay, mediagate.ByAccount, mediagate.ByKey, mediagate.ByModel, mediagate.ByProvider}
	for _, by := range columns {
		if !slices.Contains(used.By, by) {
			continue
		}
		names = append(names, string(by))
		if slices.Contains(named, by) {
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
			if slices.Contains(named, by) {
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

// The words for what a balance endpoint could not look up.
const (
	noRecord      = "record not found"
	noUser        = "user does not exist"
	databaseError = "database error"
)

// lookupFailure is a failed look-up on a balance endpoint, which answers
// HTTP 200 all the same.
type lookupFailure struct {
	message string
	err     error
}

func (f *lookupFailure) Error() string { return f.message + ": " + f.err.Error() }
func (f *lookupFailure) Unwrap() error { return f.err }

// failedLookup words the store's verdict; absent is the word for no row.
func failedLookup(err error, absent string) error {
	switch mediagate.KindOf(err) {
	case mediagate.KindNotFound, mediagate.KindUnauthenticated:
		return &lookupFailure{absent, err}
	default:
		return &lookupFailure{databaseError, err}
	}
}

type balanceTrouble struct {
	Success bool   `json:"success"`
	Message string `json:"message"`
}

func balanceFailure(err error) (balanceTrouble, bool) {
	var f *lookupFailure
	if !errors.As(err, &f) {
		return balanceTrouble{}, false
	}
	return balanceTrouble{Message: f.message}, true
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

// handleTokenBalance reads the key anew: the remembered one is good enough to
// admit a call, not to tell amounts.
func (s *Server) handleTokenBalance(c *call) error {
	key, err := s.cfg.Store.Key(c.ctx, c.caller.key.ID)
	if err != nil {
		return failedLookup(err, noRecord)
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
		return failedLookup(err, noUser)
	}
	return c.ok(userBalance{
		Success:       true,
		RemainBalance: account.Available.Number(),
		RemainCredits: account.Available.WholeCredits(s.cfg.CreditsPerUnit),
		UsedBalance:   account.Spent.Number(),
		UsedCredits:   account.Spent.Credits(s.cfg.CreditsPerUnit),
	})
}

// maxStatementLines is how many lines a statement has as a file.
const maxStatementLines = 10_000

type balanceView struct {
	Available string `json:"available"`
	Held      string `json:"held"`
	Spent     string `json:"spent"`
}

func viewBalance(b mediagate.Balance) balanceView {
	return balanceView{b.Available.String(), b.Held.String(), b.Spent.String()}
}

// statementView is a page of a statement with balances and lines in one of two forms: what it
// begins with and the changes of its lines sum to what it ends with.
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
		Opening: balance(st.Opening), Data: listOf(st.Lines, st.HasMore, line).Data, Closing: balance(st.Closing), HasMore: st.HasMore,
	}
}

// byTask asks for a statement with one line a task.
const byTask = "task"

// totalView is what an account has, be it held or not, and what it has spent.
type totalView struct {
	Balance string `json:"balance"`
	Spent   string `json:"spent"`
}

func viewTotal(b mediagate.Balance) totalView { return totalView{b.Total().String(), b.Spent.String()} }

// taskLine is the end of a task, or a grant: what it changed, and the balance after it.
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

// statementLine is an entry of the ledger, the model that it was about, and by
// how much it changed the balance.
type statementLine struct {
	transferView
	Model  *string     `json:"model"`
	Change balanceView `json:"change"`
}

func viewLine(l mediagate.StatementLine) statementLine {
	return statementLine{viewTransfer(l.Transfer), orNull(l.Model), viewBalance(l.Change)}
}

// handleStatement answers the statement of an account. An operator's call may take long.
func (s *Server) handleStatement(c *call) error {
	id, err := accountOf(c)
	if err != nil {
		return err
	}
	if c.isOperators() {
		c.within(checkTime)
	}
	return notFoundAs(s.answerStatement(c, id), errNoAccount(c))
}

// answerStatement answers what moved an account's balance.
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
	if f.After != "" && !looksLike(f.After, transferPrefix) {
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

// keyNames are the names of the keys of a statement, by their ids.
func (s *Server) keyNames(c *call, lines []mediagate.StatementLine) (map[string]string, error) {
	ids := map[string]bool{}
	for _, l := range lines {
		ids[l.KeyID] = true
	}
	delete(ids, "")
	return s.cfg.Store.Names(c.ctx, slices.Collect(maps.Keys(ids)))
}

// linkNext tells where the lines go on.
func (c *call) linkNext(q url.Values, after string) {
	q.Set("after", after)
	c.Response().Header().Set("Link", "<"+c.Request().URL.Path+"?"+q.Encode()+`>; rel="next"`)
}

// statementLines are the statement as lines. The first and the last one are its
// balances, those between them changes.
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
	var text bytes.Buffer
	w := csv.NewWriter(&text)
	w.UseCRLF = true
	if err := w.WriteAll(lines); err != nil {
		return &mediagate.Error{Kind: mediagate.KindInternal, Message: "writing the answer", Err: err}
	}
	c.Response().Header().Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": name + ".csv"}))
	c.text(http.StatusOK, csvType, text.Bytes())
	return nil
}

// csvText is a text as a cell that no spreadsheet takes for a formula.
func csvText(s string) string {
	if s != "" && strings.ContainsRune("=+-@\t\r\n", rune(s[0])) {
		return "'" + s
	}
	return s
}
