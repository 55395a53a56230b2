package operator

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// Standalone is the content of standalone.json, which describes a running standalone.
type Standalone struct {
	API      string `json:"api"`
	Admin    string `json:"admin"` // of the admin API, if not at API
	Temporal string `json:"temporal"`
	Key      string `json:"key"`
	AdminKey string `json:"admin_key"`
}

// FindStandalone reads standalone.json in the folder of a standalone.
func FindStandalone(data string) (Standalone, error) {
	text, err := os.ReadFile(filepath.Join(data, "standalone.json"))
	if err != nil {
		return Standalone{}, fmt.Errorf("no standalone runs on %s: %w", data, err)
	}
	var where Standalone
	if err := json.Unmarshal(text, &where); err != nil {
		return Standalone{}, fmt.Errorf("standalone.json: %w", err)
	}
	return where, nil
}
