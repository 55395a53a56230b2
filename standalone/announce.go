package main

import (
	"fmt"
	"io"
	"strings"
)

// announcement is the content of standalone.json: the addresses of the servers and the keys.
// Servers that were not started are left out.
type announcement struct {
	Version  string    `json:"version"`
	PID      int       `json:"pid"`
	API      string    `json:"api,omitempty"`
	Admin    string    `json:"admin,omitempty"` // of the admin API, if it has an address of its own
	Temporal string    `json:"temporal,omitempty"`
	UI       string    `json:"ui,omitempty"`
	S3       *s3Access `json:"s3,omitempty"`
	Sandbox  string    `json:"sandbox,omitempty"`
	Ops      string    `json:"ops,omitempty"`
	Key      string    `json:"key,omitempty"`
	AdminKey string    `json:"admin_key,omitempty"`

	// The links with which the account and the operator sign in at the console, once. Only the
	// banner shows them. They are empty if there is no console.
	Console   string `json:"-"`
	Operators string `json:"-"`
}

// s3Access is the configuration for a client of the S3 server.
type s3Access struct {
	Endpoint        string `json:"endpoint"`
	Region          string `json:"region"`
	Bucket          string `json:"bucket"`
	AccessKeyID     string `json:"access_key_id"`
	SecretAccessKey string `json:"secret_access_key"`
}

// printBanner prints the addresses and a command to try.
func printBanner(w io.Writer, a announcement, data string) error {
	var b strings.Builder
	fmt.Fprintf(&b, "\n  mediagate %s\n\n", a.Version)
	line := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&b, "  %-12s %s\n", name, value)
		}
	}
	line("API", a.API)
	line("Admin API", a.Admin)
	line("Temporal UI", a.UI)
	line("Temporal", a.Temporal)
	if a.S3 != nil {
		line("S3", a.S3.Endpoint+"  bucket "+a.S3.Bucket)
	}
	line("Sandbox", a.Sandbox)
	line("Health", a.Ops)
	line("Data", data)
	line("Key", a.Key)
	line("Console", a.Console)
	line("Operators", a.Operators)
	if a.API != "" && a.Key != "" {
		fmt.Fprintf(&b, "\n  Try:\n\n"+
			"  curl %s/v1/images/generations \\\n"+
			"    -H 'Authorization: Bearer %s' -H 'Content-Type: application/json' \\\n"+
			"    -d '{\"model\":\"theta-image-turbo\",\"prompt\":\"a lighthouse at dawn\"}'\n", a.API, a.Key)
	}
	fmt.Fprintf(&b, "\n  Ctrl-C stops it; the data stays.\n\n")
	_, err := io.WriteString(w, b.String())
	return err
}
