package storage

import (
	"cmp"
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/task"
)

// idempotencyTTL counts from the end of the task.
const idempotencyTTL = 24 * time.Hour

// Submit takes a task in: the idempotency record when there is a key, that of its waiter,
// the pending row with its wake, and the hold on key and account, all or nothing. A repetition
// of an earlier submit returns that one's task id and replayed, also when both
// arrive at once.
//
// Returns KindUnauthenticated when the key was deleted or has expired meanwhile,
// KindPayment when key or account is short, or a cap of the key is reached,
// KindRateLimited with code rate_limited when either has as many tasks in flight
// as it may, KindConflict with code idempotency_conflict when the idempotency key
// belongs to another request, KindRateLimited with code group_saturated when the
// group has no room left, KindNotFound when the task that the request works on
// was erased meanwhile, and KindInvalid, naming the field, when a task whose file it uses
// has ended without that file.
func (s *Store) Submit(ctx context.Context, n mediagate.NewTask) (taskID string, replayed bool, err error) {
	for range 3 { // a record may end between the insert that saw it and the look at it
		row, err := s.newSubmission(n)
		if err != nil {
			return "", false, err
		}
		stored, err := s.store(ctx, row)
		if err != nil && !mediagate.Is(err, mediagate.KindRateLimited) {
			return "", false, dbError(err, "submit")
		}
		if stored {
			s.observer.TaskSubmitted(n.Task.Type)
			return n.Task.ID, false, nil
		}
		taskID, found, replay := s.Replay(ctx, n.Task.AccountID, n.IdempotencyKey, n.Path, n.BodySHA256)
		if found || replay != nil {
			return taskID, found, replay
		}
		if err != nil { // no twin has taken the last place
			return "", false, err
		}
		if err := s.sourceStands(s.on(ctx), row.source); err != nil {
			return "", false, dbError(err, "submit")
		}
	}
	return "", false, mediagate.Errorf(mediagate.KindUnavailable, "the idempotency record keeps changing")
}

// holdTries is how often a hold is tried that was refused for a reason that is
// gone when it is looked for.
const holdTries = 8

// store stores what is new and its hold. It tells false where an idempotency
// record of an earlier submit stands against it.
func (s *Store) store(ctx context.Context, n submission) (stored bool, err error) {
	leave, err := s.enter(ctx, n.hold.AccountID)
	if err != nil {
		return false, err
	}
	defer leave()
	for range holdTries {
		stored, err = s.storeOnce(ctx, n)
		if !errors.Is(err, errRefused) {
			return stored, err
		}
		if err := s.refusal(ctx, n); err != nil {
			return false, err
		}
	}
	return false, mediagate.Errorf(mediagate.KindUnavailable, "the balance keeps changing")
}

type idempotencyRow struct {
	AccountID  string `gorm:"primaryKey"`
	Key        string `gorm:"primaryKey"`
	Path       string
	BodySHA256 []byte `gorm:"column:body_sha256"`
	TaskID     string
	CreatedAt  stamp
	ExpiresAt  stamp
	OpensAt    stamp // of a waiter's record, see Adopt
}

// TableName tells GORM.
func (idempotencyRow) TableName() string { return "idempotency" }

// Replay looks for an earlier submit with the idempotency key. Returns
// KindConflict with code idempotency_conflict when it was another request.
func (s *Store) Replay(
	ctx context.Context, accountID, idemKey, path string, body [32]byte,
) (taskID string, found bool, err error) {
	row, err := one[struct {
		Path       string
		BodySHA256 []byte `gorm:"column:body_sha256"`
		TaskID     string
	}](s.on(ctx), `SELECT path, body_sha256, task_id FROM idempotency
		WHERE account_id = ? AND key = ? AND (expires_at IS NULL OR expires_at > ?)`, accountID, idemKey, at(s.clock()))
	if err != nil {
		return "", false, dbError(err, "read idempotency record")
	}
	if row == nil {
		return "", false, nil
	}
	if row.Path != path || subtle.ConstantTimeCompare(row.BodySHA256, body[:]) == 0 {
		return "", false, &mediagate.Error{
			Kind:    mediagate.KindConflict,
			Code:    "idempotency_conflict",
			Message: "idempotency key reused with a different request",
		}
	}
	return row.TaskID, true, nil
}

// submission is a new task, or a speech, as rows.
type submission struct {
	row      *statement      // inserts the row itself
	sourced  *task.State     // a task with sources, whose row is made under their locks; nil for others
	record   *idempotencyRow // nil without a key
	waiter   *idempotencyRow // nil for a request that cannot be adopted
	wakeAt   stamp           // of a task's run; a speech has none
	source   string          // the task that it works on, if any
	group    string
	capacity int // of the group; 0: no limit
	hold     mediagate.Transfer
	tasks    int // in flight: a speech is none
	defaults mediagate.AccountLimits
	now      stamp
}

func (s *Store) newSubmission(n mediagate.NewTask) (submission, error) {
	t, now := n.Task, s.clock()
	if t.CreatedAt.IsZero() {
		t.CreatedAt = now
	}
	t.Status, t.Version = mediagate.StatusPending, 1
	row, err := newTaskRow(&task.State{Task: t})
	if err != nil {
		return submission{}, err
	}
	row.GroupName = n.Group
	sub := submission{
		row:      insert("tasks", row, nil),
		sourced:  withSources(t),
		wakeAt:   at(now.Add(startLease)),
		source:   row.SourceID,
		group:    n.Group,
		capacity: n.Capacity,
		hold:     s.newHold(t.ID, t.AccountID, t.KeyID, t.Hold, now),
		tasks:    1,
		defaults: s.defaults,
		now:      at(now),
	}
	if n.IdempotencyKey != "" {
		sub.record = &idempotencyRow{
			AccountID:  t.AccountID,
			Key:        n.IdempotencyKey,
			Path:       n.Path,
			BodySHA256: n.BodySHA256[:],
			TaskID:     t.ID,
			CreatedAt:  at(now),
		}
	}
	if n.Waiter != nil {
		sub.waiter = newWaiterRow(n, now)
	}
	return sub, nil
}

// storeOnce stores the rows in one transaction. Rows that others wait for are locked as
// late as possible: the account's row is the last row, and the lock of its group comes after.
// Whoever waits for a busy account therefore holds no lock that other accounts need.
func (s *Store) storeOnce(ctx context.Context, n submission) (stored bool, err error) {
	err = s.write(ctx, "submit", func(tx *gorm.DB) error {
		stored = false
		if n.record != nil {
			if first, err := remember(tx, n.record, n.now); err != nil || !first {
				return err
			}
		}
		if err := s.sourceStands(tx, n.source); err != nil {
			return err
		}
		if err := s.insertTask(tx, n); err != nil {
			return err
		}
		if n.waiter != nil {
			if err := tx.Create(n.waiter).Error; err != nil {
				return err
			}
		}
		if !n.wakeAt.IsZero() {
			if _, err := exec(tx, "INSERT INTO wakes (task_id, kind, account_id, wake_at) VALUES (?, 'run', ?, ?)",
				n.hold.TaskID, n.hold.AccountID, n.wakeAt); err != nil {
				return err
			}
		}
		if err := hold(tx, n); err != nil {
			return err
		}
		if err := s.checkCapacity(tx, n); err != nil {
			return err
		}
		stored = true
		return nil
	})
	return stored, err
}

// insertTask stores the row of a submission, and the sources of a task that has some.
func (s *Store) insertTask(tx *gorm.DB, n submission) error {
	row := n.row
	if n.sourced != nil {
		st := *n.sourced
		if err := s.lockSources(tx, &st); err != nil {
			return err
		}
		waiting, err := newTaskRow(&st)
		if err != nil {
			return err
		}
		waiting.GroupName = n.group
		row = insert("tasks", waiting, nil)
	}
	err := row.run(tx)
	switch {
	case isDuplicate(err):
		return conflict("%s exists", n.hold.TaskID)
	case err != nil || n.sourced == nil:
		return err
	default:
		return insertSources(tx, &n.sourced.Task)
	}
}

// withSources is the state of a new task that uses files of other tasks; nil for one that
// does not.
func withSources(t mediagate.Task) *task.State {
	if len(t.Sources) == 0 {
		return nil
	}
	return &task.State{Task: t}
}

// sourceStands reports with KindNotFound that the task that a request works on
// is erased. Otherwise its row is locked against that until the transaction ends.
func (s *Store) sourceStands(db *gorm.DB, source string) error {
	if source == "" {
		return nil
	}
	row, err := one[struct{ ID string }](db,
		"SELECT id FROM tasks WHERE id = ? AND erased_at IS NULL"+s.forReference(), source)
	if err == nil && row == nil {
		err = notFound("task", source)
	}
	return err
}

// remember stores the record of a request. It tells false where another stands
// against it; one that has expired does not.
func remember(tx *gorm.DB, record *idempotencyRow, now stamp) (first bool, err error) {
	inserted := tx.Clauses(clause.OnConflict{
		Columns:   []clause.Column{{Name: "account_id"}, {Name: "key"}},
		DoUpdates: clause.AssignmentColumns(columnsOf[idempotencyRow]().names),
		Where:     clause.Where{Exprs: []clause.Expression{gorm.Expr("idempotency.expires_at <= ?", now)}},
	}).Create(record)
	return inserted.RowsAffected > 0, inserted.Error
}

// groupLoad are the tasks in flight of a group, and those of an account among them.
type groupLoad struct{ All, Own int }

const groupLoadQuery = `SELECT COUNT(*) AS "all", COUNT(CASE WHEN account_id = ? THEN 1 END) AS own
	FROM tasks WHERE group_name = ? AND status IN ('pending', 'processing')`

// within tells what is too much of a group with that capacity. As in package limit, an
// account has no more than is free beside all, and its first task as long as any is.
func (l groupLoad) within(capacity int) error {
	switch {
	case l.All > capacity:
		return errSaturated(fmt.Sprintf("as many as %d tasks are in flight", capacity))
	case l.Own > 1 && l.Own > capacity-l.All:
		return errSaturated(fmt.Sprintf("the account has its share of %d tasks in flight", capacity))
	default:
		return nil
	}
}

// groupPatience is how long a submit waits for the lock of its group, with a connection.
// Others keep it for a count and a commit; only a process that stands still keeps it longer.
const groupPatience = time.Second

// checkCapacity returns KindRateLimited where the group has more tasks in flight than it
// may, this one among them. On PostgreSQL submits of a group do so one by one: each count
// sees what was committed before. Returns KindUnavailable where the lock is not free in time.
func (s *Store) checkCapacity(tx *gorm.DB, n submission) error {
	if n.capacity == 0 {
		return nil
	}
	if !s.lite {
		const lock = `SELECT set_config('lock_timeout', ?, true),
			pg_advisory_xact_lock(hashtextextended('mediagate group ' || ?, 0))`
		if _, err := exec(tx, lock, groupPatience.String(), n.group); err != nil {
			return err
		}
	}
	busy, err := one[groupLoad](tx, groupLoadQuery, n.hold.AccountID, n.group)
	if err != nil {
		return err
	}
	return busy.within(n.capacity)
}

// saturatedRetry is when a client that found its group saturated may try again:
// the shortest media take about as long.
const saturatedRetry = 5 * time.Second

func errSaturated(how string) error {
	return &mediagate.Error{
		Kind:       mediagate.KindRateLimited,
		Code:       "group_saturated",
		RetryAfter: saturatedRetry,
		Message:    "too many requests: the group's capacity is saturated, " + how,
	}
}

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
	s, amount, key, account := &statement{}, n.asked(), n.hold.KeyID, n.hold.AccountID
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
	s.with("UPDATE accounts SET available = available - ?, held = held + ?", amount, amount).
		with(", in_flight = in_flight + ?", n.tasks).
		with(" WHERE id = ? AND available >= ?", n.hold.AccountID, amount)
	if n.tasks > 0 {
		const inFlightCap = "COALESCE(in_flight_cap, CAST(? AS bigint))"
		const unpaidCap = "COALESCE(unpaid_cap, CAST(? AS bigint))"
		s.with(" AND "+accountsInFlight.room(inFlightCap), n.defaults.InFlight, n.defaults.InFlight)
		unpaid := abandoned(abandonedCost, "accounts.id") + ")"
		s.with(" AND ("+unpaidCap+" IS NULL OR "+unpaid+" <= "+unpaidCap+")", n.defaults.Unpaid, n.defaults.Unpaid)
	}
	return s
}

// hold takes the hold. The rows that others wait for are locked last: the key's shared quota,
// and then the account's, for which most wait.
func hold(tx *gorm.DB, n submission) error {
	counted, err := recordHold(tx, n)
	if err != nil {
		return err
	}
	key, account := n.holdOnKey(), n.holdOnAccount()
	sharedRow, err := one[struct{ DayStart time.Time }](tx, key.text.String(), key.args...)
	if err != nil || sharedRow == nil {
		return cmp.Or(err, errRefused)
	}
	if !sharedRow.DayStart.Equal(counted.Time) {
		return errRefused // another day has begun: the next try counts to that
	}
	changed, err := exec(tx, account.text.String(), account.args...)
	if err == nil && changed == 0 {
		err = errRefused
	}
	return err
}

// recordHold writes the transfer with its entries. It returns the day to which the
// shared quota's row, not locked yet, says that the hold will be counted.
func recordHold(tx *gorm.DB, n submission) (counted stamp, err error) {
	transfer, today := newTransferRow(n.hold), periods[0].start(n.now.Time)
	transfer.CountedDay = today
	sharedRow, err := one[struct{ DayStart stamp }](tx, `SELECT p.day_start
		FROM keys AS k JOIN keys AS p ON p.id = COALESCE(k.quota_id, k.id) WHERE k.id = ?`, n.hold.KeyID)
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
	n := submission{hold: s.newHold("", accountID, keyID, amount, now), now: at(now)}
	return dbError(s.refusal(ctx, n), "check a hold")
}

// refusal looks for what forbids a hold that was refused: first whether there is
// the key, then the money, at last the tasks in flight. Nil says that the hold may
// be tried again: what forbade it is gone.
func (s *Store) refusal(ctx context.Context, n submission) error {
	db, amount := s.on(ctx), n.hold.Amount
	key, err := one[keyRow](db, "SELECT "+columnsOf[keyRow]().text+" FROM keys WHERE id = ? AND "+live,
		n.hold.KeyID, n.hold.AccountID, n.now)
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
	if left := sharedRow.Quota - sharedRow.Held - sharedRow.Spent; !sharedRow.Unlimited && left < amount {
		return mediagate.Short("the key's quota is not enough", amount, left)
	}
	for _, p := range periods {
		limit, used := sharedRow.limit(p), p.used(sharedRow, n.now.Time)
		if limit != nil && *limit-used < amount {
			what := fmt.Sprintf("the key's cap of the %s, %s, is not enough", p.name, *limit)
			e := mediagate.Short(what, amount, *limit-used)
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
