package api

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
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

// usageQuery reads from, to and group_by, which takes several of the words.
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
	f.Limit = maxUsageRows
	return f, nil
}

// usageOf asks for usage.
func (s *Server) usageOf(c *call, f mediagate.UsageFilter) ([]mediagate.Usage, error) {
	rows, more, err := s.cfg.Store.Usage(c.ctx, f)
	if err == nil && more {
		err = mediagate.Invalid("group_by", "group_by makes more than %d rows: ask for a shorter time, or tell less apart", maxUsageRows)
	}
	return rows, err
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

func (s *Server) usageItem(f mediagate.UsageFilter, u mediagate.Usage) usageItem {
	return usageItem{
		Day: cellOf(f, mediagate.ByDay, u), Model: cellOf(f, mediagate.ByModel, u), Key: cellOf(f, mediagate.ByKey, u),
		Cost: u.Cost.Number(), CreditsCost: u.Cost.Credits(s.cfg.CreditsPerUnit), Tasks: usageTasks(u.Tasks),
	}
}

// cellOf is what a row has in one of the columns that tell rows apart; nil where
// it was not asked for.
func cellOf(f mediagate.UsageFilter, by mediagate.UsageBy, u mediagate.Usage) *string {
	if !slices.Contains(f.By, by) {
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
	rows, err := s.usageOf(c, f)
	if err != nil {
		return err
	}
	if c.wantsCSV() {
		return c.csv("usage", s.usageLines(f, rows))
	}
	answer := usageList{Object: "list", Data: make([]usageItem, 0, len(rows))}
	for _, u := range rows {
		answer.Data = append(answer.Data, s.usageItem(f, u))
	}
	return c.ok(answer)
}

// adminUsageItem is a row as operators see it.
type adminUsageItem struct {
	Account *string `json:"account,omitempty"`
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
	rows, err := s.usageOf(c, f)
	if err != nil {
		return err
	}
	if c.wantsCSV() {
		return c.csv("usage", s.usageLines(f, rows))
	}
	return c.ok(listOf(rows, false, func(u mediagate.Usage) adminUsageItem {
		item := adminUsageItem{Account: cellOf(f, mediagate.ByAccount, u), usageItem: s.usageItem(f, u), Provider: cellOf(f, mediagate.ByProvider, u)}
		if byProvider {
			charges := append([]mediagate.VendorCharge{}, u.VendorCharges...)
			item.VendorCharges = &charges
		}
		return item
	}))
}

// usageLines are the rows as lines.
func (s *Server) usageLines(f mediagate.UsageFilter, rows []mediagate.Usage) [][]string {
	var names []string
	columns := []mediagate.UsageBy{mediagate.ByDay, mediagate.ByAccount, mediagate.ByKey, mediagate.ByModel, mediagate.ByProvider}
	for _, by := range columns {
		if slices.Contains(f.By, by) {
			names = append(names, string(by))
		}
	}
	names = append(names, "cost", "credits_cost", "pending", "processing", "completed", "failed", "cancelled")
	byProvider := slices.Contains(f.By, mediagate.ByProvider)
	if byProvider {
		names = append(names, "vendor_charges")
	}
	lines := append(make([][]string, 0, len(rows)+1), names)
	for _, u := range rows {
		line := make([]string, 0, len(names))
		for _, by := range columns {
			if cell := cellOf(f, by, u); cell != nil {
				line = append(line, csvText(*cell))
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

// statementView is a page of a statement: what it begins with and the changes of
// its lines sum to what it ends with.
type statementView struct {
	Object   string          `json:"object"`
	Account  string          `json:"account"`
	Currency string          `json:"currency"`
	From     int64           `json:"from"`
	To       *int64          `json:"to"`
	Opening  balanceView     `json:"opening"`
	Data     []statementLine `json:"data"`
	Closing  balanceView     `json:"closing"`
	HasMore  bool            `json:"has_more"`
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
		return c.csv("statement-"+id, statementLines(f, st))
	}
	page := listOf(st.Lines, st.HasMore, viewLine)
	return c.ok(statementView{
		Object: "statement", Account: id, Currency: s.cfg.Currency, From: f.From.Unix(), To: unixOrNull(f.To),
		Opening: viewBalance(st.Opening), Data: page.Data, Closing: viewBalance(st.Closing), HasMore: st.HasMore,
	})
}

// linkNext tells where the lines go on.
func (c *call) linkNext(q url.Values, after string) {
	q.Set("after", after)
	c.Response().Header().Set("Link", "<"+c.Request().URL.Path+"?"+q.Encode()+`>; rel="next"`)
}

// statementLines are the statement as lines. The first and the last one are its
// balances, those between them changes.
func statementLines(f mediagate.StatementFilter, st mediagate.Statement) [][]string {
	moment := func(t time.Time) string {
		if t.IsZero() {
			return ""
		}
		return t.UTC().Format(time.RFC3339Nano)
	}
	balance := func(at, word string, b mediagate.Balance) []string {
		return []string{at, word, "", b.Available.String(), b.Held.String(), b.Spent.String(), "", "", "", "", ""}
	}
	lines := append(make([][]string, 0, len(st.Lines)+3),
		[]string{"at", "kind", "amount", "available", "held", "spent", "task", "model", "key", "reference", "id"},
		balance(moment(f.From), "opening", st.Opening))
	for _, l := range st.Lines {
		lines = append(lines, []string{
			moment(l.At), string(l.Kind), l.Amount.String(), l.Change.Available.String(), l.Change.Held.String(), l.Change.Spent.String(),
			csvText(l.TaskID), csvText(l.Model), csvText(l.KeyID), csvText(l.Reference), csvText(l.ID),
		})
	}
	last := moment(f.To)
	if st.HasMore {
		last = moment(st.Lines[len(st.Lines)-1].At)
	}
	return append(lines, balance(last, "closing", st.Closing))
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
