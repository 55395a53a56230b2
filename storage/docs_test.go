package storage_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/mediagate/mediagate/storage"
	"github.com/mediagate/mediagate/storage/pgtest"
)

// Statements of the documentation: blocks of SQL, and those within a line.
var (
	statementBlock = regexp.MustCompile("(?s)```sql\n(.*?)```")
	statementText  = regexp.MustCompile("`(SELECT [^`]*;)`")
	onTables       = regexp.MustCompile("^(SELECT|WITH|UPDATE|DELETE) ")
)

// TestStatementsOfDocs plans each statement on our tables that the documentation gives
// operators.
func TestStatementsOfDocs(t *testing.T) {
	t.Parallel()
	url := pgtest.New(t)
	openPostgres(t, url, storage.Config{})
	db := openRaw(t, url)
	planned := 0
	for _, pattern := range []string{"../docs/*.md", "../docs/runbook/*.md"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, found := range append(statementBlock.FindAllStringSubmatch(string(text), -1), statementText.FindAllStringSubmatch(string(text), -1)...) {
				for statement := range strings.SplitSeq(found[1], ";") {
					if statement = strings.TrimSpace(statement); !onTables.MatchString(statement) {
						continue
					}
					planned++
					if _, err := db.ExecContext(t.Context(), "EXPLAIN "+statement); err != nil {
						t.Errorf("%s: %v:\n%s", file, err, statement)
					}
				}
			}
		}
	}
	if planned < 10 {
		t.Errorf("only %d statements were found", planned)
	}
}
