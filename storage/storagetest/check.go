package storagetest

// undoCheck takes back what the checks of the ledger have in the database.
func (b *bench) undoCheck() {
	b.Helper()
	undo := []string{
		"DROP TABLE ledger_checks", "DROP TABLE ledger_check_sums", "DROP TABLE ledger_check_marks",
		"DROP INDEX ledger_position", "ALTER TABLE ledger_transfers DROP COLUMN position",
	}
	if b.database().Name() == "sqlite" {
		undo = append([]string{"DROP TRIGGER ledger_positions"}, undo...)
	}
	for _, statement := range undo {
		b.noError(b.database().Exec(statement).Error)
	}
}
