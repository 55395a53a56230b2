package client_test

import (
	"testing"

	"github.com/mediagate/mediagate/client"
)

func TestParseFile(t *testing.T) {
	t.Parallel()
	const id = "task_01KAJ5XW4M9Q7T2C8N6BVRE3HD"
	for text, want := range map[string]string{
		id:                                "/v1/tasks/" + id + "/files/1",
		id + "#1":                         "/v1/tasks/" + id + "/files/1",
		id + "#12":                        "/v1/tasks/" + id + "/files/12",
		id + "#":                          "",
		id + "#0":                         "",
		id + "#-1":                        "",
		id + "#two":                       "",
		id + "#1#2":                       "",
		"./" + id:                         "./" + id,
		id + ".png":                       id + ".png",
		id + "4":                          id + "4",
		"task_1":                          "task_1",
		"task_01kaj5xw4m9q7t2c8n6bvre3hd": "task_01kaj5xw4m9q7t2c8n6bvre3hd",
		"https://a.example.com/#1":        "https://a.example.com/#1",
		"":                                "",
	} {
		got, err := client.ParseFile(text)
		if refused := want == "" && text != ""; got != want || refused != (err != nil) {
			t.Errorf("%q: %q, %v, want %q", text, got, err, want)
		}
	}
}
