package api

import (
	"maps"
	"net/url"
	"slices"
	"time"

	"github.com/mediagate/mediagate"
)

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
