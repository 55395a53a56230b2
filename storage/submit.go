package storage

import (
	"cmp"
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"strconv"
	"time"

	"gorm.io/gorm"

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
		if stored {
			s.observer.TaskSubmitted(n.Task.Type)
			return n.Task.ID, false, nil
		}
		err = dbError(err, "submit")
		isFault := mediagate.Is(err, mediagate.KindUnavailable) || mediagate.Is(err, mediagate.KindInternal)
		if n.IdempotencyKey != "" && !isFault { // its twin may have taken the last of the money, or of the places
			taskID, found, replay := s.Replay(ctx, n.Task.AccountID, n.IdempotencyKey, n.Path, n.BodySHA256)
			if found || replay != nil {
				return taskID, found, replay
			}
		}
		if err != nil {
			return "", false, err
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
	row      *statement      // inserts the row itself, from payer
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
		row:      insert("tasks", row, nil).say(" FROM payer"),
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

// storeOnce stores a submission in one transaction. On PostgreSQL it is a single statement,
// unless the request works on other tasks or its group has a capacity. The group is locked
// last, so a submit that waits for a busy account holds no lock that other accounts need.
func (s *Store) storeOnce(ctx context.Context, n submission) (stored bool, err error) {
	rows := func(tx *gorm.DB) error {
		stored, err = s.storeRows(tx, n)
		if isDuplicate(err) {
			err = conflict("%s exists", n.hold.TaskID)
		}
		return err
	}
	if !s.lite && n.source == "" && n.sourced == nil && n.capacity == 0 {
		err = retry("submit", func() error { return rows(s.on(ctx)) })
		return stored, err
	}
	err = s.write(ctx, "submit", func(tx *gorm.DB) error {
		if err := s.sourceStands(tx, n.source); err != nil {
			return err
		}
		if n.sourced != nil {
			if n.row, err = s.sourcedRow(tx, n); err != nil {
				return err
			}
		}
		if err := rows(tx); err != nil || !stored {
			return err
		}
		return s.checkCapacity(tx, n)
	})
	return stored && err == nil, err
}

// storeRows locks key and account, stores the rows of a submission, and takes the hold. It stores
// nothing if key and account cannot bear the hold, which is errRefused, or if the record of an
// earlier submit stands against it, which is false.
//
// On PostgreSQL all of this is one statement, so that key and account are not locked for the length of
// a round trip. On SQLite the same parts run one after the other.
func (s *Store) storeRows(tx *gorm.DB, n submission) (stored bool, err error) {
	if s.lite {
		return storeParts(tx, n)
	}
	all := (&statement{}).say("WITH able AS (").add(n.able()).say(s.forUpdate("keys, accounts"), ")")
	payer := "able"
	if n.record != nil {
		all.say(", record AS (").add(n.record.insert(" FROM able", n.now)).say(" RETURNING key)")
		payer = "able, record"
	}
	all.say(", payer AS (SELECT able.* FROM ", payer, ")")
	for i, part := range n.parts() {
		all.say(", part", strconv.Itoa(i), " AS (").add(part).say(")")
	}
	all.say(" SELECT EXISTS (SELECT 1 FROM able), EXISTS (SELECT 1 FROM payer)")
	found, err := one[struct{ Able, Stored bool }](tx, all.text.String(), all.args...)
	if err == nil && !found.Able {
		err = errRefused
	}
	return err == nil && found.Stored, err
}

// storeParts is storeRows on SQLite.
func storeParts(tx *gorm.DB, n submission) (stored bool, err error) {
	able := n.able()
	payer, err := one[struct {
		QuotaID string
		Day     stamp
	}](tx, able.text.String(), able.args...)
	if err != nil || payer == nil {
		return false, cmp.Or(err, errRefused)
	}
	if n.record != nil {
		if first, err := storeRecord(tx, n.record, n.now); err != nil || !first {
			return false, err
		}
	}
	for _, part := range n.parts() {
		with := (&statement{}).with("WITH payer (quota_id, day) AS (SELECT ?, ?) ", payer.QuotaID, payer.Day)
		if err := with.add(part).run(tx); err != nil {
			return false, err
		}
	}
	return true, nil
}

// parts write the rows of a submission beside its record, and the hold to the rows of key and
// account: if payer has a row.
func (n submission) parts() []*statement {
	amount, transfer := n.asked(), newTransferRow(n.hold)
	parts := []*statement{n.row, transfer.insert().say("payer.day FROM payer")}
	for _, entry := range entries(transfer, 0) {
		parts = append(parts, insert("ledger_entries", entry, nil).say(" FROM payer"))
	}
	if n.sourced != nil {
		for _, id := range n.sourced.SourceIDs() {
			parts = append(parts, (&statement{}).with(`INSERT INTO sources (source_id, task_id)
				SELECT ?, ? FROM payer`, id, n.hold.TaskID))
		}
	}
	if n.waiter != nil {
		parts = append(parts, insert("idempotency", *n.waiter, nil).say(" FROM payer"))
	}
	if !n.wakeAt.IsZero() {
		parts = append(parts, (&statement{}).with(`INSERT INTO wakes (task_id, kind, account_id, wake_at)
			SELECT ?, 'run', ?, ? FROM payer`, n.hold.TaskID, n.hold.AccountID, n.wakeAt))
	}
	return append(parts, n.holdOnKey(), (&statement{}).with(`UPDATE accounts
		SET available = available - ?, held = held + ?, in_flight = in_flight + ?
		WHERE id = ? AND EXISTS (SELECT 1 FROM payer)`, amount, amount, n.tasks, n.hold.AccountID))
}

// sourcedRow inserts the row of a task with sources, as it begins under their locks.
func (s *Store) sourcedRow(tx *gorm.DB, n submission) (*statement, error) {
	st := *n.sourced
	if err := s.lockSources(tx, &st); err != nil {
		return nil, err
	}
	row, err := newTaskRow(&st)
	if err != nil {
		return nil, err
	}
	row.GroupName = n.group
	return insert("tasks", row, nil).say(" FROM payer"), nil
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

// storeRecord stores the record of a request. It tells false where another stands
// against it; one that has expired does not.
func storeRecord(tx *gorm.DB, record *idempotencyRow, now stamp) (first bool, err error) {
	into := record.insert("", now)
	inserted, err := exec(tx, into.text.String(), into.args...)
	return inserted > 0, err
}

// insert writes the INSERT of the record, in place of one that has expired.
func (r *idempotencyRow) insert(from string, now stamp) *statement {
	c := columnsOf[idempotencyRow]()
	return insert("idempotency", *r, nil).say(from, " WHERE true ON CONFLICT (account_id, key) DO UPDATE").
		with(" SET ("+c.text+") = ("+c.of("excluded")+") WHERE idempotency.expires_at <= ?", now)
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
// that of the account. The statement that locks both asks them whether they can bear
// the hold. Which limit forbade it is looked up afterwards.

// errRefused says that a limit forbids a hold, or that its key is gone.
var errRefused = errors.New("the hold is refused")

// asked is what the hold asks of both rows: more than an account may have is too
// much, however much, and the rows' sums must not overflow before they say so.
func (n submission) asked() mediagate.Micros { return min(n.hold.Amount, maxAccount+1) }

// live is what a submit asks of its key: parameters are its account and the time.
const live = "account_id = ? AND deleted_at IS NULL AND (expires_at IS NULL OR expires_at > ?)"

// able writes the SELECT of the shared quota's id and of the day to which the hold counts,
// if key and account can bear the hold. A key that is its own shared quota is checked
// as it is once its row is locked: the SELECT may have waited for a deletion.
//
// PostgreSQL reads the columns of both rows again under their locks, but abandoned jobs as
// they were when the statement began. If tasks are cancelled while a submit waits for the rows,
// it does not count the jobs that they leave behind. So in_flight and unpaid may be exceeded by these
// jobs; balance, quota and caps are columns and hold.
func (n submission) able() *statement {
	s, amount, key, account := &statement{}, n.asked(), n.hold.KeyID, n.hold.AccountID
	today := periods[0].start(n.now.Time)
	s.with("SELECT keys.id AS quota_id, CASE WHEN day_start >= ? THEN day_start ELSE ? END AS day", today, today).
		with(" FROM keys, accounts WHERE accounts.id = ? AND available >= ?", account, amount).
		with(" AND keys.id = (SELECT COALESCE(quota_id, id) FROM keys WHERE id = ? AND "+live+")", key, account, n.now).
		with(" AND (keys.id <> ? OR "+live+")", key, account, n.now).
		with(" AND (unlimited OR quota - keys.held - keys.spent >= ?)", amount)
	for _, p := range periods {
		s.with(" AND (cap_"+p.name+" IS NULL OR cap_"+p.name+" - "+p.current()+" >= ?)", p.start(n.now.Time), amount)
	}
	if n.tasks > 0 {
		const inFlightCap = "COALESCE(accounts.in_flight_cap, CAST(? AS bigint))"
		const unpaidCap = "COALESCE(unpaid_cap, CAST(? AS bigint))"
		s.say(" AND ", keysInFlight.room("keys.in_flight_cap"))
		s.with(" AND "+accountsInFlight.room(inFlightCap), n.defaults.InFlight, n.defaults.InFlight)
		unpaid := abandoned(abandonedCost, "accounts.id") + ")"
		s.with(" AND ("+unpaidCap+" IS NULL OR "+unpaid+" <= "+unpaidCap+")", n.defaults.Unpaid, n.defaults.Unpaid)
	}
	return s
}

// holdOnKey writes the UPDATE of the key's shared quota, which counts the hold in the
// periods of its caps too.
func (n submission) holdOnKey() *statement {
	s, amount := &statement{}, n.asked()
	s.with("UPDATE keys SET held = held + ?, in_flight = in_flight + ?", amount, n.tasks)
	for _, p := range periods {
		start := p.start(n.now.Time)
		s.with(", "+p.name+"_start = CASE WHEN "+p.name+"_start >= ? THEN "+p.name+"_start ELSE ? END", start, start).
			with(", "+p.name+"_used = "+p.current()+" + ?", start, amount)
	}
	return s.say(" WHERE id = (SELECT quota_id FROM payer)")
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
