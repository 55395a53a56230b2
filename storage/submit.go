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

// idempotencyTTL is how long an idempotency record lasts after the end of its task.
//
// While the task is open, its record has no end (D16).
const idempotencyTTL = 24 * time.Hour

// Submit stores a new task in one transaction: its row and its wake, the hold on key and account, and
// the idempotency records of the client's key and of the waiter where there are any. If an earlier
// submit used the same idempotency key, Submit returns the id of that submit's task, and replayed is
// true. This holds even if both submits arrive at the same time.
//
// Submit returns an error of one of these kinds:
//
//	KindUnauthenticated  the key was deleted or has expired meanwhile
//	KindForbidden        the account is suspended
//	KindPayment          the money of key or account is not enough, or a cap of the key is reached
//	KindRateLimited      key or account has as many tasks in flight as it may (code rate_limited),
//	                     or the group has no room (code group_saturated)
//	KindConflict         the idempotency key belongs to another request (code idempotency_conflict)
//	KindNotFound         the task on which the request works was erased meanwhile
//	KindInvalid          a task whose file the request uses has ended without it; names the field
//
// Submit does not start the task's run. The wake, due after startLease, makes sure that the run
// starts even if this process dies after the commit (D2).
func (s *Store) Submit(ctx context.Context, n mediagate.NewTask) (taskID string, replayed bool, err error) {
	for range 3 { // a record may expire between the insert that saw it and Replay
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
		if n.IdempotencyKey != "" && !isFault { // an equal submit may have used up the money or the limit
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

// holdTries is how often a hold is tried. A refused hold is tried again if the reason for the refusal
// is gone by the time it is looked up.
const holdTries = 8

// store stores a submission and its hold. It returns false if the idempotency record of an earlier
// submit exists.
//
// store holds a permit of the account during all tries, since each of them locks the account's
// row.
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

// idempotencyRow is a row of idempotency: a client's key, or a waiter's id with a mark in front,
// and the task that the request made. ExpiresAt of a client's record is zero while the task is
// open; the task's end sets it (saveEnd). Path and BodySHA256 tell a repeated request from another
// one with the same key.
type idempotencyRow struct {
	AccountID  string
	Key        string
	Path       string
	BodySHA256 []byte `gorm:"column:body_sha256"`
	TaskID     string
	CreatedAt  stamp
	ExpiresAt  stamp
	OpensAt    stamp // of a waiter's record, see Adopt
}

// Replay finds the task of an earlier submit with the idempotency key. Returns KindConflict with code
// idempotency_conflict if that was another request.
//
// The primary key (account_id, key) serves it. A record that has expired counts as absent, even
// before retention removes it.
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

// submission has the rows of a new task or of a speech.
type submission struct {
	row      *statement      // inserts the row itself, from payer
	sourced  *task.State     // a task with sources, whose row is made under their locks; nil for others
	record   *idempotencyRow // nil without a key
	waiter   *idempotencyRow // nil for a request that cannot be adopted
	wakeAt   stamp           // of a task's run; zero for a speech
	source   string          // the task on which it works, if any
	group    string
	capacity int // of the group; 0: no limit
	hold     mediagate.Transfer
	tasks    int // tasks in flight that it adds: 1 for a task, 0 for a speech
	defaults mediagate.AccountLimits
	now      stamp
}

func (s *Store) newSubmission(n mediagate.NewTask) (submission, error) {
	t, now := n.Task, s.clock()
	if t.CreatedAt.IsZero() {
		t.CreatedAt = now
	}
	t.Status = mediagate.StatusPending
	t.Version = 1
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

// storeOnce stores a submission in one transaction. On PostgreSQL the transaction is a single
// statement, unless the request works on other tasks or its group has a capacity. The group is locked
// last, so a submit that waits for a busy account holds no lock that other accounts need.
//
// The lock of a group is held only for a count and the commit.
func (s *Store) storeOnce(ctx context.Context, n submission) (stored bool, err error) {
	rows := func(tx *gorm.DB) error {
		stored, err = s.storeRows(tx, n)
		if isDuplicate(err) {
			err = conflict("%s exists", n.hold.TaskID)
		}
		return err
	}
	// A single statement is a transaction of its own, and needs no BEGIN and COMMIT.
	if !s.lite && n.source == "" && n.sourced == nil && n.capacity == 0 {
		err = retry("submit", func() error { return rows(s.on(ctx)) })
		return stored, err
	}
	err = s.write(ctx, "submit", func(tx *gorm.DB) error {
		// Rows of other tasks are locked first, then key and account, and the group last.
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

// storeRows locks key and account, stores the rows of a submission, and takes the hold. If a limit of
// key or account forbids the hold, it stores nothing and returns errRefused. If the record of an earlier
// submit exists, it stores nothing and returns false.
//
// On PostgreSQL all of this is one statement, so that key and account are not locked during a round
// trip. On SQLite the same parts run one after the other.
//
// The statement is a chain of WITH clauses:
//
//	able      locks key and account, and has one row if their limits allow the hold
//	record    stores the idempotency record, and has one row unless an earlier one is in force
//	payer     has one row if both have
//	part0...  write the task, the hold, the wake and the counters, each once for the row of payer
//
// The last SELECT says whether able and payer had a row. If able had none, the hold is refused.
// If able had one and payer had none, the request is a repetition.
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
//
// SQLite allows no INSERT within a WITH clause. Its single writer already holds the lock.
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

// parts returns the statements that write a submission: its rows except the idempotency record, and
// the hold's amounts in the rows of key and account. If payer has no row, they write nothing.
//
// The statements of keys and accounts come last. On PostgreSQL all parts run in one statement and
// on one snapshot, so no part reads what another one writes.
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

// sourcedRow locks the sources of a task and returns the INSERT of the task's row. The states of the
// sources decide how the task begins.
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

// withSources returns the state of a new task that uses files of other tasks, or nil if it uses none.
func withSources(t mediagate.Task) *task.State {
	if len(t.Sources) == 0 {
		return nil
	}
	return &task.State{Task: t}
}

// sourceStands returns KindNotFound if the task on which a request works is erased. Otherwise it locks
// the row against an erasure until the transaction ends.
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

// storeRecord stores the record of a request. It returns false if the key has a record that has not
// expired.
func storeRecord(tx *gorm.DB, record *idempotencyRow, now stamp) (first bool, err error) {
	into := record.insert("", now)
	inserted, err := exec(tx, into.text.String(), into.args...)
	return inserted > 0, err
}

// insert returns the INSERT of the record, which replaces a record that has expired.
//
// If a record is in force, the WHERE of DO UPDATE leaves it, and RETURNING returns no row. Of two
// submits with the same key the second waits for the first one's transaction.
func (r *idempotencyRow) insert(from string, now stamp) *statement {
	c := columnsOf[idempotencyRow]()
	return insert("idempotency", *r, nil).say(from, " WHERE true ON CONFLICT (account_id, key) DO UPDATE").
		with(" SET ("+c.text+") = ("+c.of("excluded")+") WHERE idempotency.expires_at <= ?", now)
}

// groupLoad counts the tasks in flight of a group, and those of one account among them.
type groupLoad struct{ All, Own int }

const groupLoadQuery = `SELECT COUNT(*) AS "all", COUNT(CASE WHEN account_id = ? THEN 1 END) AS own
	FROM tasks WHERE group_name = ? AND status IN ('pending', 'processing')`

// within returns an error if the load, the new task included, is above the group's capacity. As in
// package limit, it also returns an error if the account then has more tasks in flight than the group
// has places left. The account's only task is never refused for that reason.
//
// Example with a capacity of 30, the new task included: an account alone may have 15 tasks in
// flight. Its 16th is refused, because 16 is more than the 14 that are left.
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

// groupPatience is how long a submit waits for the lock of its group, holding a connection. Other
// submits hold the lock for a count and a commit; only a stalled process holds it longer.
const groupPatience = time.Second

// checkCapacity returns KindRateLimited if the group has more tasks in flight than its capacity, this
// task included. On PostgreSQL the submits of a group count one after the other, so that each sees the
// commits before it. Returns KindUnavailable if the lock is not free in time.
func (s *Store) checkCapacity(tx *gorm.DB, n submission) error {
	if n.capacity == 0 {
		return nil
	}
	if !s.lite {
		// The lock is an advisory one, since a group has no row. It ends with the transaction.
		// hashtextextended turns the group's name into its number; two groups with the same number would
		// only wait for each other.
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

// saturatedRetry is the Retry-After of a submit to a saturated group: about as long as the shortest
// media take.
const saturatedRetry = 5 * time.Second

// errSaturated is the error of a submit for which the group has no room.
func errSaturated(how string) error {
	return &mediagate.Error{
		Kind:       mediagate.KindRateLimited,
		Code:       "group_saturated",
		RetryAfter: saturatedRetry,
		Message:    "too many requests: the group's capacity is saturated, " + how,
	}
}

// A hold is taken on two rows: the row of the account, and the row of the key's shared quota. The
// latter has the quota, the caps and the tasks in flight of all keys of a rotation. The statement that
// locks both rows checks their limits. If a limit forbids the hold, refusal finds out which one.

// errRefused means that a limit forbids a hold, or that its key is gone.
var errRefused = errors.New("the hold is refused")

// asked returns the amount of the hold, capped just above what any account can have. Any larger amount
// is refused all the same, and the sums in the rows cannot overflow.
//
// For example, an account with maxAccount available cannot bear a hold of maxAccount + 1.
func (n submission) asked() mediagate.Micros { return min(n.hold.Amount, maxAccount+1) }

// live is the condition that the key of a submit may be used. Its parameters are the account and the
// time.
const live = "account_id = ? AND deleted_at IS NULL AND (expires_at IS NULL OR expires_at > ?)"

// able returns the SELECT of the shared quota's id and of the day to which the hold is counted. It
// selects a row only if the limits of key and account allow the hold. If the key has its own quota, its
// row is one of the two locked rows, and the SELECT repeats there that the key is live: the key may
// have been deleted while the SELECT waited for the lock.
//
// PostgreSQL reads the columns of both rows again under their locks, but it counts abandoned jobs as
// they were when the statement began. If tasks are cancelled while a submit waits for the rows, the
// submit does not count the jobs that they leave behind. So these jobs may exceed the limits of tasks
// in flight and of unpaid jobs. Balance, quota and caps are columns and cannot be exceeded.
func (n submission) able() *statement {
	s, amount, key, account := &statement{}, n.asked(), n.hold.KeyID, n.hold.AccountID
	// The counted day never goes back: after a clock was set back, the day that was counted last
	// stays.
	today := periods[0].start(n.now.Time)
	s.with("SELECT keys.id AS quota_id, CASE WHEN day_start >= ? THEN day_start ELSE ? END AS day", today, today).
		with(" FROM keys, accounts WHERE accounts.id = ? AND NOT suspended AND available >= ?", account, amount).
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

// holdOnKey returns the UPDATE of the key's shared quota, which also counts the hold in the periods of
// its caps.
//
// A new period begins with the first hold in it: its start is set, and its count begins at this
// hold. The starts never go back, so setting the clock back gives no cap a second time.
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

// CheckHold checks whether account and key could bear a hold now. Returns KindPayment if they could
// not, KindForbidden if the account is suspended, KindUnauthenticated if the key is gone.
//
// CheckHold reserves nothing, so a submit may be refused all the same. The API calls it before it
// calls the moderation endpoint, if the cached account or key seems to be short of money.
func (s *Store) CheckHold(ctx context.Context, accountID, keyID string, amount mediagate.Micros) error {
	now := s.clock()
	n := submission{hold: s.newHold("", accountID, keyID, amount, now), now: at(now)}
	return dbError(s.refusal(ctx, n), "check a hold")
}

// refusal looks up why a hold was refused. It checks the key first, then whether the account is
// suspended, then the money, and the tasks in flight last. It returns nil if nothing forbids the hold
// any more, so that the caller may try again.
//
// refusal reads without locks, after the statement that was refused. Between the two a hold may
// have been voided; then nothing is short any more.
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
	account, err := readAccount(db, n.hold.AccountID)
	if err != nil {
		return err
	}
	if account.Suspended {
		return mediagate.Suspended()
	}
	sharedRow, err := withSharedQuota(db, *key)
	if err != nil {
		return err
	}
	if left := sharedRow.Quota - sharedRow.Held - sharedRow.Spent; !sharedRow.Unlimited && left < amount {
		return mediagate.NotEnough("the key's quota is not enough", amount, left)
	}
	for _, p := range periods {
		limit, used := sharedRow.limit(p), p.used(sharedRow, n.now.Time)
		if limit != nil && *limit-used < amount {
			what := fmt.Sprintf("the key's cap of the %s, %s, is not enough", p.name, *limit)
			e := mediagate.NotEnough(what, amount, *limit-used)
			e.Message += " until " + p.end(sharedRow, n.now.Time).Format(time.RFC3339)
			return e
		}
	}
	if account.Available < amount {
		return mediagate.NotEnough("insufficient balance", amount, account.Available)
	}
	// A speech and CheckHold add no task in flight.
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
