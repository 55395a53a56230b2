package client

import (
	"fmt"
	"net/url"
	"regexp"
	"strconv"
)

// Source is an input of a task that is a file of another task.
type Source struct {
	TaskID string `json:"task_id"`
	File   int    `json:"file"`   // from 1
	Field  string `json:"field"`  // of the request, such as image_urls[0]
	Status string `json:"status"` // of that task, or "erased"
}

// FileOf returns the address of the n-th file of a task, counted from 1. A field of a request
// accepts it in place of a file's URL, even while that task runs: the new task then waits for
// the file. So a whole chain of tasks can be submitted at once.
func FileOf(taskID string, n int) string {
	return "/v1/tasks/" + url.PathEscape(taskID) + "/files/" + strconv.Itoa(n)
}

// namedFile matches the short name that people and language models use for a file of a task.
var namedFile = regexp.MustCompile(`^(task_[0-7][0-9A-HJKMNP-TV-Z]{25})(#(.*))?$`)

// ParseFile returns FileOf for TASK and TASK#N, which name the first and the N-th file of a
// task. It returns any other text as it is.
func ParseFile(text string) (address string, err error) {
	match := namedFile.FindStringSubmatch(text)
	if match == nil {
		return text, nil
	}
	n := 1
	if match[2] != "" {
		n, err = strconv.Atoi(match[3])
	}
	if err != nil || n < 1 {
		return "", fmt.Errorf("%q is no file of a task, which is TASK or TASK#N with N from 1", text)
	}
	return FileOf(match[1], n), nil
}
