package api

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/mediagate/mediagate"
)

const (
	accountPrefix  = "acc_"
	keyIDPrefix    = "key_"
	transferPrefix = "txn_"
	auditPrefix    = "aud_"
)

var (
	errAccountID = &mediagate.Error{Kind: mediagate.KindNotFound, Message: "account not found", Param: "account_id"}
	errKeyID     = &mediagate.Error{Kind: mediagate.KindNotFound, Message: "key not found", Param: "key_id"}
)

// adminList is a page of an operator's list.
type adminList[T any] struct {
	Object  string `json:"object"`
	Data    []T    `json:"data"`
	HasMore bool   `json:"has_more"`
}

// listOf renders a page. An empty page is an empty array, not null.
func listOf[D, V any](rows []D, more bool, view func(D) V) adminList[V] {
	page := adminList[V]{Object: "list", Data: make([]V, 0, len(rows)), HasMore: more}
	for _, row := range rows {
		page.Data = append(page.Data, view(row))
	}
	return page
}

// answerList answers with a page that the store returned, or with the store's error.
func answerList[D, V any](c *call, rows []D, more bool, err error, view func(D) V) error {
	if err != nil {
		return err
	}
	return c.ok(listOf(rows, more, view))
}

// answerOne answers with what the store returned, or with the store's error.
func answerOne[D, V any](c *call, status int, stored D, err error, view func(D) V) error {
	if err != nil {
		return err
	}
	return c.json(status, view(stored))
}

// pathID returns the id in the path. Text that does not have the form of an id gets the same
// answer as an unknown id, without a query to the database.
func pathID(c *call, name, prefix string, unknown *mediagate.Error) (string, error) {
	id := c.Param(name)
	if !isID(id, prefix) {
		return "", unknown
	}
	return id, nil
}

// page reads limit and after. An after that does not have the form of an id is refused without a
// query to the database.
func page(c *call, prefix string) (after string, limit int, err error) {
	q := c.query()
	if limit, err = intQuery(q, "limit", 1, maxLimit, defaultLimit); err != nil {
		return "", 0, err
	}
	after = q.Get("after")
	if after != "" && !isID(after, prefix) {
		return "", 0, errAfterPage
	}
	return after, limit, nil
}

var errAfterPage = mediagate.Invalid("after", "after must be the id of an entry in this list")

// notFoundAs replaces the store's KindNotFound with the route's own error.
func notFoundAs(err error, as *mediagate.Error) error {
	if mediagate.Is(err, mediagate.KindNotFound) {
		return as
	}
	return err
}

type accountView struct {
	ID          string  `json:"id"`
	Name        string  `json:"name"`
	Group       string  `json:"group"`
	Available   string  `json:"available"`
	Held        string  `json:"held"`
	Spent       string  `json:"spent"`
	Rate        *int    `json:"rate"` // null: account_defaults applies, as for the other limits
	InFlight    *int    `json:"in_flight"`
	EraseInputs bool    `json:"erase_inputs"`
	Webhook     *string `json:"webhook"` // for submits that name none
	Suspended   bool    `json:"suspended"`
	Created     int64   `json:"created"`

	Unpaid        *string `json:"unpaid"`
	UploadsPerDay *int64  `json:"uploads_per_day"`

	Abandoned *abandonedView `json:"abandoned,omitempty"` // only where a single account is read
}

// abandonedView counts the jobs of cancelled tasks that may still run, and what they cost.
type abandonedView struct {
	Jobs int    `json:"jobs"`
	Cost string `json:"cost"`
}

func viewAccount(a mediagate.Account) accountView {
	v := accountView{
		ID:            a.ID,
		Name:          a.Name,
		Group:         a.Group,
		Available:     a.Available.String(),
		Held:          a.Held.String(),
		Spent:         a.Spent.String(),
		Rate:          a.Rate,
		InFlight:      a.InFlight,
		UploadsPerDay: a.UploadsPerDay,
		EraseInputs:   a.EraseInputs,
		Webhook:       orNull(a.Webhook),
		Suspended:     a.Suspended,
		Created:       a.CreatedAt.Unix(),
	}
	if a.Unpaid != nil {
		v.Unpaid = new(a.Unpaid.String())
	}
	return v
}

// readAccount reads the fields of an account and returns the function that applies them. Null
// removes a limit and changes nothing else.
func (s *Server) readAccount(f *fields) (apply func(a *mediagate.Account)) {
	name, group, erase := f.text("name"), s.knownGroup(f), f.flag("erase_inputs")
	rate, inFlight := f.number("rate", mostOf), f.number("in_flight", mostOf)
	unpaid, uploads := f.decimal("unpaid"), f.whole("uploads_per_day", mostUploads)
	webhook, suspended := s.webhookAddress(f, "webhook"), f.flag("suspended")
	return func(a *mediagate.Account) {
		if name != "" {
			a.Name = name
		}
		if group != "" {
			a.Group = group
		}
		if f.given("rate") {
			a.Rate = rate
		}
		if f.given("in_flight") {
			a.InFlight = inFlight
		}
		if f.given("unpaid") {
			a.Unpaid = unpaid
		}
		if f.given("uploads_per_day") {
			a.UploadsPerDay = uploads
		}
		if f.has("erase_inputs") {
			a.EraseInputs = erase
		}
		if f.given("webhook") {
			a.Webhook = webhook
		}
		if f.has("suspended") {
			a.Suspended = suspended
		}
	}
}

// knownGroup reads the optional field group, which must name a configured group.
func (s *Server) knownGroup(f *fields) string {
	group := f.text("group")
	if _, ok := s.cfg.Groups[group]; group != "" && !ok {
		f.fail("group", "group %s is not configured", mediagate.Quote(group))
	}
	return group
}

func (s *Server) handleAccountCreation(c *call) error {
	_, apply, err := readFields(s, c, settingsFields, func(f *fields) func(*mediagate.Account) {
		f.required("name")
		return s.readAccount(f)
	})
	if err != nil {
		return err
	}
	account := mediagate.Account{Group: defaultGroup}
	apply(&account)
	account, err = s.cfg.Store.CreateAccount(c.ctx, account)
	return answerOne(c, http.StatusCreated, account, err, viewAccount)
}

func (s *Server) handleAccounts(c *call) error {
	after, limit, err := page(c, accountPrefix)
	if err != nil {
		return err
	}
	search, err := textQuery(c.query(), "q")
	if err != nil {
		return err
	}
	rows, more, err := s.cfg.Store.Accounts(c.ctx, search, after, limit)
	return answerList(c, rows, more, err, viewAccount)
}

// accountOf returns the account that the call is about: the one in an operator's path, or the
// caller's own.
func accountOf(c *call) (string, error) {
	if c.isOperators() {
		return pathID(c, "account_id", accountPrefix, errAccountID)
	}
	return c.caller.key.AccountID, nil
}

// errNoAccount is the answer for an account that does not exist. A key is deleted with its
// account, so a caller whose account is gone has an unknown key.
func errNoAccount(c *call) *mediagate.Error {
	if c.isOperators() {
		return errAccountID
	}
	return errUnknownKey
}

// queryAccount reads the account that a list is filtered by. It returns "" if the query names
// none.
func (s *Server) queryAccount(ctx context.Context, q url.Values) (string, error) {
	id := q.Get("account")
	if id == "" {
		return "", nil
	}
	if !isID(id, accountPrefix) {
		return "", errAccountID
	}
	_, err := s.cfg.Store.Account(ctx, id)
	return id, notFoundAs(err, errAccountID)
}

// handleAccount answers with an account. Operators also see how many jobs of its cancelled tasks
// may still run, and what they cost.
func (s *Server) handleAccount(c *call) error {
	id, err := accountOf(c)
	if err != nil {
		return err
	}
	a, err := s.cfg.Store.Account(c.ctx, id)
	if err != nil {
		return notFoundAs(err, errNoAccount(c))
	}
	v := viewAccount(a)
	if c.isOperators() {
		jobs, err := s.cfg.Store.Abandoned(c.ctx, id)
		if err != nil {
			return err
		}
		v.Abandoned = &abandonedView{jobs.Jobs, jobs.Cost.String()}
	}
	return c.ok(v)
}

// handleAccountChange changes an account. The account's own keys may change only its webhook. An
// operator may give a reason, which goes into the audit.
func (s *Server) handleAccountChange(c *call) error {
	id, err := accountOf(c)
	if err != nil {
		return err
	}
	_, apply, err := readFields(s, c, settingsFields, func(f *fields) func(*mediagate.Account) {
		if !c.isOperators() {
			f.only("webhook")
		}
		c.setAuditReason(f.text("reason"))
		return s.readAccount(f)
	})
	if err != nil {
		return err
	}
	a, err := s.cfg.Store.UpdateAccount(c.ctx, id, func(a *mediagate.Account) error {
		apply(a)
		return nil
	})
	if err != nil {
		return notFoundAs(err, errNoAccount(c))
	}
	s.keys.forgetWhere(func(who *caller) bool { return who.key.AccountID == id })
	return c.ok(viewAccount(a))
}

type grantView struct {
	ID        string `json:"id"`
	Amount    string `json:"amount"`
	Reference string `json:"reference"`
	Available string `json:"available"`
}

// readGrant reads the amount of a grant and its reference.
func readGrant(f *fields) mediagate.Transfer {
	return mediagate.Transfer{Amount: f.amount("amount"), Reference: f.required("reference")}
}

// handleGrant grants money. If the reference was used before for the same amount, it grants
// nothing and answers 200 instead of 201.
func (s *Server) handleGrant(c *call) error {
	id, err := accountOf(c)
	if err != nil {
		return err
	}
	_, asked, err := readFields(s, c, settingsFields, readGrant)
	if err != nil {
		return err
	}
	g, available, created, err := s.cfg.Store.Grant(c.ctx, id, asked.Amount, asked.Reference)
	if err != nil {
		return notFoundAs(err, errAccountID)
	}
	status := http.StatusOK
	if created {
		status = http.StatusCreated
	}
	return c.json(status, grantView{
		ID: g.ID, Amount: g.Amount.String(), Reference: g.Reference, Available: available.String(),
	})
}

// transferView is one entry of the ledger. Fields that do not apply are null.
type transferView struct {
	ID        string  `json:"id"`
	Kind      string  `json:"kind"`
	Amount    string  `json:"amount"`
	Task      *string `json:"task"`
	Key       *string `json:"key"`
	At        int64   `json:"at"`
	Reference *string `json:"reference"`
}

func viewTransfer(t mediagate.Transfer) transferView {
	return transferView{
		ID: t.ID, Kind: string(t.Kind), Amount: t.Amount.String(), At: t.At.Unix(),
		Task: orNull(t.TaskID), Key: orNull(t.KeyID), Reference: orNull(t.Reference),
	}
}

func orNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// unixOrNull returns the time in Unix seconds, or nil for the zero time.
func unixOrNull(t time.Time) *int64 {
	if t.IsZero() {
		return nil
	}
	return new(t.Unix())
}

// handleLedger lists the entries of an account, or those of one of its tasks. It does not check
// that the task exists, since the entries of an erased task stay.
func (s *Server) handleLedger(c *call) error {
	id, err := accountOf(c)
	if err != nil {
		return err
	}
	after, limit, err := page(c, transferPrefix)
	if err != nil {
		return err
	}
	ctx := c.ctx
	if _, err := s.cfg.Store.Account(ctx, id); err != nil {
		return notFoundAs(err, errAccountID)
	}
	if after != "" { // any entry of the account, even one that the filter leaves out
		if _, err := s.cfg.Store.Transfer(ctx, id, after); err != nil {
			return notFoundAs(err, errAfterPage)
		}
	}
	task := c.query().Get("task")
	if task != "" && !isID(task, taskPrefix) {
		return c.ok(listOf(nil, false, viewTransfer))
	}
	rows, more, err := s.cfg.Store.Ledger(ctx, id, task, after, limit)
	return answerList(c, rows, more, err, viewTransfer)
}

// checkTime bounds the calls whose work grows with the whole history: the check of the ledger,
// and the totals, usage and statements that operators ask for.
const checkTime = 30 * time.Minute

// handleLedgerCheck checks the whole ledger and answers when it is done.
func (s *Server) handleLedgerCheck(c *call) error {
	c.takeLong(checkTime)
	report, err := s.cfg.Store.CheckLedger(c.ctx)
	if err != nil {
		return err
	}
	if report.Problems == nil {
		report.Problems = []string{}
	}
	return c.ok(report)
}
