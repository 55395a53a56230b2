package api

import (
	"net/url"
	"time"

	"github.com/mediagate/mediagate"
)

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

// handleStatement tells what moved an account's balance.
func (s *Server) handleStatement(c *call) error {
	id, err := pathAccount(c)
	if err != nil {
		return err
	}
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
	c.within(checkTime)
	st, err := s.cfg.Store.Statement(c.ctx, f)
	if err != nil {
		return notFoundAs(err, errAccountID)
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
