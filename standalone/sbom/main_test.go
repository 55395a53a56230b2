package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

// The test's own binary is a program like any other.
func TestBillOfThisProgram(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "bill.json")
	if err := run(program, "v1.2.3", out); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	var bill struct {
		Format   string `json:"bomFormat"`
		Version  string `json:"specVersion"`
		Metadata struct {
			Component struct{ Version string }
		}
		Components []struct {
			Name   string
			Purl   string
			Hashes []struct{ Alg, Content string }
		}
	}
	if err := json.Unmarshal(text, &bill); err != nil {
		t.Fatal(err)
	}
	if bill.Format != "CycloneDX" || bill.Version != "1.6" {
		t.Errorf("the bill is %s %s, want CycloneDX 1.6", bill.Format, bill.Version)
	}
	if v := bill.Metadata.Component.Version; v != "v1.2.3" {
		t.Errorf("the bill is of version %q, want v1.2.3", v)
	}
	found := map[string]string{}
	for _, c := range bill.Components {
		found[c.Name] = c.Purl
		for _, h := range c.Hashes {
			if h.Alg != "SHA-256" || len(h.Content) != 64 {
				t.Errorf("%s has the checksum %s %q", c.Name, h.Alg, h.Content)
			}
		}
	}
	for _, name := range []string{"stdlib", "github.com/CycloneDX/cyclonedx-go"} {
		if found[name] == "" {
			t.Errorf("the bill does not list %s", name)
		}
	}
	if err := run(out, "", ""); err == nil {
		t.Error("a file that is no program has a bill")
	}
}
