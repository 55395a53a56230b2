package storage

import (
	"cmp"
	"context"
	"math"
	"strings"
	"time"

	"gorm.io/gorm"

	"github.com/mediagate/mediagate"
)

// The buckets between which money moves. The four balances of an account sum to zero.
const (
	// A grant moves money from issued to available, a hold from available to held, and the end of the
	// hold from held to spent or back to available. Issued is therefore minus the sum of the other
	// three.
	bucketIssued    = "issued"
	bucketAvailable = "available"
	bucketHeld      = "held"
	bucketSpent     = "spent"
)

// transferRow is a transfer, read by transferColumns.
//
// A task has at most one hold, and at most one post or void: the unique indexes ledger_one_hold
// and ledger_one_end refuse a second row.
type transferRow struct {
	mediagate.Transfer
	// At replaces the At of the embedded Transfer, because insert passes it to the statement: each
	// database stores a stamp in its own form.
	At stamp
	// CountedDay is the day to which a hold was counted in the caps of its key. A post or a void
	// has the same day, since the amount that was not charged is taken from the count of that day.
	CountedDay stamp
	// A post or a void names what the hold was for. Usage is counted from these columns.
	Model, Provider *string
	Status          *mediagate.Status
}

// transferColumns are in the order of the fields of mediagate.Transfer; l is the ledger.
const transferColumns = `l.id, l.kind, l.account_id, COALESCE(l.key_id, ''), COALESCE(l.task_id, ''),
	l.amount, COALESCE(l.reference, ''), l.at, l.counted_day, l.model, l.provider, l.status`

// newTransferRow returns the row of a transfer that is about to be written.
func newTransferRow(t mediagate.Transfer) transferRow { return transferRow{Transfer: t, At: at(t.At)} }

// transfer returns the domain type of the row.
func (r transferRow) transfer() mediagate.Transfer {
	r.Transfer.At = r.At.Time
	return r.Transfer
}

// readTransfer reads the transfer that meets the conditions, or returns nil.
func readTransfer(db *gorm.DB, conditions string, args ...any) (*transferRow, error) {
	return one[transferRow](db, "SELECT "+transferColumns+" FROM ledger_transfers l WHERE "+conditions, args...)
}

// deref returns the text at s, or "" for nil: the domain types have "" where a column is NULL.
func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// nullable is the reverse of deref. A grant, for example, has no key, so its key_id is NULL.
func nullable(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// entryRow is one line of a transfer.
//
// An example: a task with a hold of 5 ends at a cost of 3. The post has three lines: held -5,
// spent +3, available +2. The primary key (transfer_id, bucket) allows one line for each bucket.
type entryRow struct {
	TransferID string
	Bucket     string
	// AccountID and KeyID repeat those of the transfer. CheckLedger compares them, and sums the
	// entries by them.
	AccountID string
	KeyID     *string
	Amount    mediagate.Micros
}

// TableName implements GORM's Tabler.
func (entryRow) TableName() string { return "ledger_entries" }

// entries returns the lines of a transfer, by its kind. held is the amount of the hold; only posts
// use it.
//
// The lines always sum to zero. A post returns the part of the hold that is not charged, held -
// t.Amount, to available.
func entries(t transferRow, held mediagate.Micros) []entryRow {
	line := func(bucket string, amount mediagate.Micros) entryRow {
		return entryRow{
			TransferID: t.ID,
			Bucket:     bucket,
			AccountID:  t.AccountID,
			KeyID:      nullable(t.KeyID),
			Amount:     amount,
		}
	}
	switch t.Kind {
	case mediagate.EntryGrant:
		return []entryRow{line(bucketIssued, -t.Amount), line(bucketAvailable, t.Amount)}
	case mediagate.EntryHold:
		return []entryRow{line(bucketAvailable, -t.Amount), line(bucketHeld, t.Amount)}
	case mediagate.EntryPost:
		return []entryRow{line(bucketHeld, -held), line(bucketSpent, t.Amount), line(bucketAvailable, held-t.Amount)}
	case mediagate.EntryVoid:
		return []entryRow{line(bucketHeld, -t.Amount), line(bucketAvailable, t.Amount)}
	default:
		return nil
	}
}

// insert returns the INSERT of the transfer up to its last value, the counted day, which the caller
// appends.
//
// It is an INSERT by SELECT, because a submit takes the counted day from the row of payer
// (submission.parts), in the statement that locks key and account.
func (r transferRow) insert() *statement {
	return (&statement{}).with(`INSERT INTO ledger_transfers
			(id, kind, account_id, key_id, task_id, amount, reference, at, model, provider, status, counted_day)
		SELECT ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, `,
		r.ID, r.Kind, r.AccountID, nullable(r.KeyID), nullable(r.TaskID), r.Amount, nullable(r.Reference),
		r.At, r.Model, r.Provider, r.Status)
}

// record writes the transfer with its entries. It returns false if a unique constraint refused the
// transfer: the hold exists, it is resolved already, or the grant's reference is taken.
//
// If another transaction is inserting the same transfer, the INSERT waits for its end. So a true
// result means that this transaction alone moves the money.
func record(tx *gorm.DB, row transferRow, held mediagate.Micros) (bool, error) {
	// "WHERE true" stands between the SELECT and ON CONFLICT, because SQLite might otherwise read ON
	// as part of a join.
	into := row.insert().with("? WHERE true ON CONFLICT DO NOTHING", row.CountedDay)
	added, err := exec(tx, into.text.String(), into.args...)
	if err != nil || added == 0 {
		return false, err
	}
	err = tx.Create(entries(row, held)).Error
	return err == nil, err
}

// maxAccount bounds the money of an account, so that no sum overflows.
//
// A quarter leaves room for the sum of an account's three balances and one more amount (see asked
// in submit.go).
const maxAccount = math.MaxInt64 / 4

// Grant gives an account money. A negative amount takes money back. A repeated grant, with the same
// reference and the same amount, changes nothing and returns the first one. Returns KindInvalid for
// zero, KindNotFound for an unknown account, and KindConflict if the reference was used with another
// amount, if the available balance would become negative, or if the account would exceed maxAccount.
func (s *Store) Grant(ctx context.Context, accountID string, amount mediagate.Micros, reference string) (
	g mediagate.Transfer, available mediagate.Micros, created bool, err error,
) {
	if amount == 0 {
		return g, 0, false, mediagate.Invalid("amount", "amount must not be zero")
	}
	// The transfer is inserted first, and the account's row changes after it. Of two grants with the
	// same reference, the second waits at the unique index ledger_reference, and then finds the
	// first.
	err = s.writeFor(ctx, accountID, "grant", func(tx *gorm.DB) error {
		g = mediagate.Transfer{
			ID:        s.newID("txn_"),
			Kind:      mediagate.EntryGrant,
			AccountID: accountID,
			Amount:    amount,
			Reference: reference,
			At:        s.clock(),
		}
		created, err = record(tx, newTransferRow(g), 0)
		if err != nil {
			return err
		}
		if !created {
			g, available, err = firstGrant(tx, g)
			return err
		}
		// No row matches if the account is unknown, if a negative amount is more than what is available,
		// or if a positive amount would exceed maxAccount. The bounds are clipped, so that neither the
		// negation nor the subtraction overflows. An error rolls back the transfer.
		changed, err := exec(tx, `UPDATE accounts SET available = available + ?
			WHERE id = ? AND available >= ? AND available + held + spent <= ?`,
			amount, accountID, -max(min(amount, 0), -maxAccount-1), maxAccount-max(amount, 0))
		if err != nil {
			return err
		}
		account, err := readAccount(tx, accountID)
		switch {
		case err != nil:
			return err
		case changed == 0 && amount > 0:
			return conflict("the account would hold more than it can")
		case changed == 0:
			return conflict("only %s is available", account.Available)
		}
		available = account.Available
		return s.note(ctx, tx, deed{
			action:  mediagate.AuditGrant,
			object:  g.ID,
			account: accountID,
			after:   facts{"amount": amount.String(), "reference": reference},
		})
	})
	if err != nil {
		return mediagate.Transfer{}, 0, false, err
	}
	return g, available, created, nil
}

// firstGrant reads the earlier grant that has the same reference.
//
// An equal amount is a repetition: firstGrant returns it with the present balance. Another amount
// is a conflict.
func firstGrant(tx *gorm.DB, g mediagate.Transfer) (mediagate.Transfer, mediagate.Micros, error) {
	row, err := readTransfer(tx, "l.account_id = ? AND l.reference = ? AND l.kind = 'grant'", g.AccountID, g.Reference)
	if err != nil {
		return g, 0, err
	}
	if row == nil || row.Amount != g.Amount {
		return g, 0, conflict("the reference was used with another amount")
	}
	account, err := readAccount(tx, g.AccountID)
	return row.transfer(), account.Available, err
}

// Transfer reads an entry of the account's ledger. Returns KindNotFound.
func (s *Store) Transfer(ctx context.Context, accountID, id string) (mediagate.Transfer, error) {
	row, err := readTransfer(s.on(ctx), "l.id = ? AND l.account_id = ?", id, accountID)
	if err != nil || row == nil {
		return mediagate.Transfer{}, cmp.Or(dbError(err, "read ledger entry"), notFound("ledger entry", id))
	}
	return row.transfer(), nil
}

// Ledger lists an account's transfers, newest first. after is the id of the last transfer of the page
// before, or empty. With a taskID it lists only the transfers of that task.
func (s *Store) Ledger(
	ctx context.Context, accountID, taskID, after string, limit int,
) (transfers []mediagate.Transfer, hasMore bool, err error) {
	var last *transferRow
	if after != "" { // read first: the planner uses an index with a value, not with a subquery
		if last, err = readTransfer(s.on(ctx), "l.id = ?", after); err != nil || last == nil {
			return nil, false, dbError(err, "list ledger")
		}
	}
	list := ledgerListing(accountID, taskID, last, limit)
	var rows []transferRow
	if err := read(s.on(ctx), &rows, list.text.String(), list.args...); err != nil {
		return nil, false, dbError(err, "list ledger")
	}
	rows, hasMore = page(rows, limit)
	return convert(rows, transferRow.transfer), hasMore, nil
}

// ledgerListing returns the query of the page after the transfer last, or of the first page if last
// is nil.
//
// The index ledger_account_time (account, at, id) serves the whole ledger in the order of the
// list. Transfers of the same time are ordered by id, so that no page repeats or skips one of
// them.
func ledgerListing(accountID, taskID string, last *transferRow, limit int) *statement {
	list := (&statement{}).say("SELECT ", transferColumns, " FROM ")
	if taskID == "" {
		list.say("ledger_transfers l")
	} else { // each half uses a unique index, which finds at most one row
		const of = "SELECT * FROM ledger_transfers WHERE task_id = ? AND "
		list.with("("+of+"kind = 'hold' UNION ALL "+of+"kind IN ('post', 'void')) AS l", taskID, taskID)
	}
	list.with(" WHERE l.account_id = ?", accountID)
	if last != nil {
		list.with(" AND (l.at, l.id) < (?, ?)", last.At, last.ID)
	}
	return list.with(" ORDER BY l.at DESC, l.id DESC LIMIT ?", limit+1)
}

// holding is a hold that is to be ended, with its owner: a task or a speech.
//
// The amount is that of the task's row or the speech's row. CheckLedger compares it with the hold
// in the ledger.
type holding struct {
	id, accountID, keyID string
	amount               mediagate.Micros
	tasks                int // tasks in flight that end with it: 1 for a task, 0 for a speech
	model, provider      string
	status               mediagate.Status // how the owner ends
}

// newHold returns the transfer of a new hold.
//
// The id is that of a task or a speech. Both are in the column task_id, under the same unique
// indexes.
func (s *Store) newHold(id, accountID, keyID string, amount mediagate.Micros, now time.Time) mediagate.Transfer {
	return mediagate.Transfer{
		ID:        s.newID("txn_"),
		Kind:      mediagate.EntryHold,
		AccountID: accountID,
		KeyID:     keyID,
		TaskID:    id,
		Amount:    amount,
		At:        now,
	}
}

// resolve ends a hold by a post of the cost or by a void. The hold was counted in full in the periods
// of the key's caps: day, week and month. For each of these periods that is still the current one,
// resolve lowers the count by the amount that is not charged. It writes the account's row last, because
// other transactions wait for it.
func (s *Store) resolve(tx *gorm.DB, h holding, kind mediagate.EntryKind, cost mediagate.Micros) error {
	// The hold is read for its counted day.
	hold, err := readTransfer(tx, "l.task_id = ? AND l.kind = 'hold'", h.id)
	if err != nil {
		return err
	}
	if hold == nil {
		return mediagate.Errorf(mediagate.KindInternal, "there is no hold of %s", h.id)
	}
	// The end keeps the hold's account, key, task and counted day. It adds the model, the provider
	// and the status, from which usage is counted.
	end := *hold
	end.ID = s.newID("txn_")
	end.Kind = kind
	end.Amount = h.amount
	if kind == mediagate.EntryPost {
		end.Amount = cost
	}
	end.At = at(s.clock())
	end.Model = &h.model
	end.Provider = &h.provider
	end.Status = &h.status
	recorded, err := record(tx, end, h.amount)
	if err != nil {
		return err
	}
	// ledger_one_end has refused a second end. Callers end a task or speech once, by its row, so this
	// shows that the row and the ledger disagree.
	if !recorded {
		return mediagate.Errorf(mediagate.KindInternal, "the hold of %s is resolved already", h.id)
	}
	// The sums of usage are locked before the rows of key and account (see count).
	if err := s.count(tx, "e.id = ?", end.ID); err != nil {
		return err
	}
	// rest is the part of the hold that is not charged: all of it for a void, whose cost is 0.
	rest := h.amount - cost
	key := (&statement{}).with("UPDATE keys SET held = held - ?, spent = spent + ?, in_flight = in_flight - ?",
		h.amount, cost, h.tasks)
	// The count of a period is lowered only if the period in the key's row began at or before the day
	// of the hold. Example: a hold counted on Monday ends on Tuesday, after another hold was counted
	// on Tuesday. Monday's count is gone from the row, so the day stays as it is; the week and the
	// month are lowered.
	for _, p := range periods {
		const used = ", @_used = @_used - CASE WHEN @_start <= ? THEN CAST(? AS bigint) ELSE 0 END"
		key.with(strings.ReplaceAll(used, "@", p.name), hold.CountedDay, rest)
	}
	// The row of the shared quota has the amounts, also for a key made by rotation.
	key.with(" WHERE id = (SELECT COALESCE(quota_id, id) FROM keys WHERE id = ?)", h.keyID)
	if _, err := exec(tx, key.text.String(), key.args...); err != nil {
		return err
	}
	_, err = exec(tx, `UPDATE accounts
		SET available = available + ?, held = held - ?, spent = spent + ?, in_flight = in_flight - ?
		WHERE id = ?`, rest, h.amount, cost, h.tasks, h.accountID)
	return err
}
