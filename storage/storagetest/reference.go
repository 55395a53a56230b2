package storagetest

import (
	"strings"

	"github.com/mediagate/mediagate"
)

var referenceTests = map[string]func(*bench){
	"references from before are read by their adapter": func(b *bench) {
		p := b.newPayer(unit(10))
		plain, marked, bare := b.accepted(p, unit(1)), b.accepted(p, unit(1)), b.accepted(p, unit(1))
		n := b.draft(p, unit(1))
		n.Task.Plan.Source = &mediagate.Source{TaskID: plain, Clip: &mediagate.Clip{Lyrics: "one\x00two"}}
		_, _, err := b.Submit(b.Context(), n)
		b.noError(err)
		b.undoCheck()
		undo := []string{
			"DROP INDEX tasks_kind", "DROP INDEX tasks_model",
			"DROP TABLE audit", "DROP TABLE rates", "DROP TABLE speeches", "DROP TABLE makers",
			"DROP TABLE attempt_parts", "DROP TABLE channel_minutes",
			"DROP TABLE turns", "DROP TABLE queue", "DROP INDEX attempts_slots", "ALTER TABLE attempts DROP COLUMN slot_until",
			"DROP INDEX tasks_queued", "ALTER TABLE tasks DROP COLUMN queued_at",
			"ALTER TABLE tasks DROP COLUMN judgement",
			"ALTER TABLE tasks DROP COLUMN made",
			"DROP INDEX tasks_group", "ALTER TABLE tasks DROP COLUMN group_name",
			"ALTER TABLE tasks DROP COLUMN modal_input", "ALTER TABLE tasks DROP COLUMN modal_until",
			"ALTER TABLE tasks DROP COLUMN modal_n", "ALTER TABLE tasks DROP COLUMN art_state",
			"DROP INDEX tasks_source", "ALTER TABLE tasks DROP COLUMN source_id",
			"DROP INDEX tasks_account", "CREATE INDEX tasks_account ON tasks (account_id, id)",
			"ALTER TABLE tasks DROP COLUMN erased_at", "ALTER TABLE tasks DROP COLUMN inputs_erased_at",
			"DROP INDEX keys_purse",
			"ALTER TABLE ledger_transfers DROP COLUMN counted_day",
			"DROP TABLE vendor_sums", "DROP INDEX attempts_vendor_uncounted", "DROP TABLE usage_sums", "DROP INDEX tasks_account_open",
			"DROP INDEX ledger_time", "CREATE INDEX ledger_account ON ledger_transfers (account_id, id)",
			"DROP INDEX ledger_account_time", "DROP INDEX ledger_uncounted",
			"DELETE FROM goose_db_version WHERE version_id >= 8",
		}
		for column := range strings.FieldsSeq("breaker changed_at break_reason trips probe_at probe probe_until last_error last_error_at") {
			undo = append(undo, "ALTER TABLE channels DROP COLUMN "+column)
		}
		for column := range strings.FieldsSeq("vendor_uncounted_at vendor_unit vendor_amount") {
			undo = append(undo, "ALTER TABLE attempts DROP COLUMN "+column)
		}
		for column := range strings.FieldsSeq("status provider model") {
			undo = append(undo, "ALTER TABLE ledger_transfers DROP COLUMN "+column)
		}
		for column := range strings.FieldsSeq("erase_inputs in_flight in_flight_cap rate") {
			undo = append(undo, "ALTER TABLE accounts DROP COLUMN "+column)
		}
		for column := range strings.FieldsSeq(`successor_id purse_id month_used month_start week_used week_start day_used day_start
			cap_month cap_week cap_day in_flight in_flight_cap rate scopes`) {
			undo = append(undo, "ALTER TABLE keys DROP COLUMN "+column)
		}
		for _, statement := range undo {
			b.noError(b.database().Exec(statement).Error)
		}
		for id, ref := range map[string]string{
			plain:  `{"job_id":"1","external_id":"e","operation":"video","endpoint":"text2video"}`,
			marked: `{"job_id":"2","operation":"omni","endpoint":"omni-video","want_watermark":true}`,
			bare:   `{"job_id":"3","external_id":"e"}`,
		} {
			for _, table := range []string{"attempts", "awaits"} {
				b.noError(b.database().Exec("UPDATE "+table+" SET ref = ? WHERE task_id = ?", ref, id).Error)
			}
		}
		b.noError(b.Migrate(b.Context()))
		same(b, "tasks that work on another", b.count("SELECT COUNT(*) FROM tasks WHERE source_id = ?", plain), 1)
		awaited := map[string]mediagate.JobRef{}
		_, rows := b.claim("claim")
		for _, row := range rows {
			awaited[row.TaskID] = row.Ref
		}
		for id, want := range map[string]mediagate.JobRef{
			plain:  {JobID: "1", ExternalID: "e", Operation: "video", State: "text2video"},
			marked: {JobID: "2", Operation: "omni", State: "omni-video watermark"},
			bare:   {JobID: "3", ExternalID: "e"},
		} {
			same(b, "attempt", b.attempt(id, 1).Ref, want)
			same(b, "await", awaited[id], want)
		}
		for _, table := range []string{"attempts", "awaits"} {
			var texts []string
			b.noError(b.database().Raw("SELECT ref FROM " + table).Scan(&texts).Error)
			for _, text := range texts {
				if strings.Contains(text, "endpoint") || strings.Contains(text, "want_") {
					b.Errorf("%s still holds %s", table, text)
				}
			}
		}
	},
}
