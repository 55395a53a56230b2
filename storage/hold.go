package storage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"gorm.io/gorm"

	"github.com/mediagate/mediagate"
)

// A hold is taken on two rows: that of the key's shared quota, which has the quota, the
// caps and the tasks in flight of a key and of those that it was rotated into, and
// that of the account. The statement that writes a row asks it whether it can bear
// the hold. Which limit forbade it is looked up afterwards.

// errRefused says that a limit forbids a hold, or that its key is gone.
var errRefused = errors.New("the hold is refused")

// asked is what the hold asks of both rows: more than an account may have is too
// much, however much, and the rows' sums must not overflow before they say so.
func (n submission) asked() mediagate.Micros { return min(n.hold.Amount, maxAccount+1) }

// live is what a submit asks of its key: parameters are its account and the time.
const live = "account_id = ? AND deleted_at IS NULL AND (expires_at IS NULL OR expires_at > ?)"

// holdOnKey writes the UPDATE of the key's shared quota, which counts the hold in the
// periods of its caps too. It changes no row when the hold cannot be, and returns
// the day to which it was counted. A key that is its own shared quota is judged as the
// UPDATE finds it once it has the row: it may have waited for a deletion.
func (n submission) holdOnKey() *statement {
	s := &statement{}
	amount, key, account := n.asked(), n.hold.KeyID, n.hold.AccountID
	s.with("UPDATE keys SET held = held + ?, in_flight = in_flight + ?", amount, n.tasks)
	for _, p := range periods {
		start := p.start(n.now.Time)
		s.with(", "+p.name+"_start = CASE WHEN "+p.name+"_start >= ? THEN "+p.name+"_start ELSE ? END", start, start).
			with(", "+p.name+"_used = "+p.current()+" + ?", start, amount)
	}
	s.with(" WHERE id = (SELECT COALESCE(quota_id, id) FROM keys WHERE id = ? AND "+live+")", key, account, n.now).
		with(" AND (id <> ? OR "+live+")", key, account, n.now).
		with(" AND (unlimited OR quota - held - spent >= ?)", amount)
	for _, p := range periods {
		s.with(" AND (cap_"+p.name+" IS NULL OR cap_"+p.name+" - "+p.current()+" >= ?)", p.start(n.now.Time), amount)
	}
	if n.tasks > 0 {
		s.say(" AND ", keysInFlight.room("in_flight_cap"))
	}
	return s.say(" RETURNING day_start")
}

// holdOnAccount writes the UPDATE of the account, which changes no row when the
// hold cannot be.
func (n submission) holdOnAccount() *statement {
	s, amount := &statement{}, n.asked()
	s.with("UPDATE accounts SET available = available - ?, held = held + ?, in_flight = in_flight + ?", amount, amount, n.tasks).
		with(" WHERE id = ? AND available >= ?", n.hold.AccountID, amount)
	if n.tasks > 0 {
		own := func(column string) string { return "COALESCE(" + column + ", CAST(? AS bigint))" }
		s.with(" AND "+accountsInFlight.room(own("in_flight_cap")), n.defaults.InFlight, n.defaults.InFlight)
		s.with(" AND ("+own("unpaid_cap")+" IS NULL OR "+abandoned(abandonedCost, "accounts.id")+") <= "+own("unpaid_cap")+")", n.defaults.Unpaid, n.defaults.Unpaid)
	}
	return s.say(" RETURNING id")
}

// hold takes the hold. The rows that others wait for are locked last: the key's shared quota,
// and then the account's, for which most wait.
func hold(tx *gorm.DB, n submission) error {
	counted, err := recordHold(tx, n)
	if err != nil {
		return err
	}
	key, account := n.holdOnKey(), n.holdOnAccount()
	sharedRow, err := one[struct{ DayStart stamp }](tx, key.text.String(), key.args...)
	if err != nil || sharedRow == nil {
		return cmp.Or(err, errRefused)
	}
	if !sharedRow.DayStart.Equal(counted.Time) {
		return errRefused // another day has begun: the next try counts to that
	}
	found, err := one[struct{ ID string }](tx, account.text.String(), account.args...)
	if err != nil || found == nil {
		return cmp.Or(err, errRefused)
	}
	return nil
}

// recordHold writes the transfer with its entries. It returns the day to which the
// shared quota's row, not locked yet, says that the hold will be counted.
func recordHold(tx *gorm.DB, n submission) (counted stamp, err error) {
	transfer, today := newTransferRow(n.hold), periods[0].start(n.now.Time)
	transfer.CountedDay = today
	sharedRow, err := one[struct{ DayStart stamp }](tx,
		"SELECT p.day_start FROM keys AS k JOIN keys AS p ON p.id = COALESCE(k.quota_id, k.id) WHERE k.id = ?", n.hold.KeyID)
	if err != nil || sharedRow == nil {
		return stamp{}, cmp.Or(err, errRefused)
	}
	if sharedRow.DayStart.After(today.Time) {
		transfer.CountedDay = sharedRow.DayStart
	}
	recorded, err := record(tx, transfer, transfer.Amount)
	if err == nil && !recorded {
		err = conflict("%s exists", n.hold.TaskID)
	}
	return transfer.CountedDay, err
}

// CheckHold tells whether account and key can bear a hold: KindPayment where they cannot,
// KindUnauthenticated where the key is gone.
func (s *Store) CheckHold(ctx context.Context, accountID, keyID string, amount mediagate.Micros) error {
	now := s.clock()
	return dbError(s.refusal(ctx, submission{hold: s.newHold("", accountID, keyID, amount, now), now: at(now)}), "check a hold")
}

// refusal looks for what forbids a hold that was refused: first whether there is
// the key, then the money, at last the tasks in flight. Nil says that the hold may
// be tried again: what forbade it is gone.
func (s *Store) refusal(ctx context.Context, n submission) error {
	db, amount := s.on(ctx), n.hold.Amount
	key, err := one[keyRow](db, "SELECT "+columnsOf[keyRow]().text+" FROM keys WHERE id = ? AND "+live, n.hold.KeyID, n.hold.AccountID, n.now)
	if err != nil {
		return err
	}
	if key == nil {
		return mediagate.Errorf(mediagate.KindUnauthenticated, "the key is no longer valid")
	}
	sharedRow, err := withSharedQuota(db, *key)
	if err != nil {
		return err
	}
	if !sharedRow.Unlimited && sharedRow.Quota-sharedRow.Held-sharedRow.Spent < amount {
		return mediagate.Short("the key's quota is not enough", amount, sharedRow.Quota-sharedRow.Held-sharedRow.Spent)
	}
	for _, p := range periods {
		limit, used := sharedRow.limit(p), p.used(sharedRow, n.now.Time)
		if limit != nil && *limit-used < amount {
			e := mediagate.Short(fmt.Sprintf("the key's cap of the %s, %s, is not enough", p.name, *limit), amount, *limit-used)
			e.Message += " until " + p.end(sharedRow, n.now.Time).Format(time.RFC3339)
			return e
		}
	}
	account, err := readAccount(db, n.hold.AccountID)
	if err != nil {
		return err
	}
	if account.Available < amount {
		return mediagate.Short("insufficient balance", amount, account.Available)
	}
	if n.tasks == 0 {
		return nil
	}
	if err := s.checkInFlight(ctx, keysInFlight, sharedRow.quotaID(), nil); err != nil {
		return err
	}
	if err := s.checkInFlight(ctx, accountsInFlight, account.ID, s.defaults.InFlight); err != nil {
		return err
	}
	return s.checkUnpaid(ctx, account)
}
