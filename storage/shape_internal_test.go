package storage

import (
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/task"
)

// fill sets each field within v to something that is not its zero value. Texts hold what a
// database may stumble over.
func fill(v reflect.Value, r *rand.Rand, path string) {
	switch v.Interface().(type) {
	case time.Time:
		v.Set(reflect.ValueOf(time.Date(2026, 3, 1, 12, 0, r.IntN(60), r.IntN(1e6)*1000, time.UTC)))
		return
	case json.RawMessage:
		v.SetBytes([]byte(`{"a":1.50,"b":"c"}`))
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), r, path+"."+v.Type().Field(i).Name)
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), r, path)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range 2 {
			fill(v.Index(i), r, path)
		}
	case reflect.Array:
		for i := range v.Len() {
			fill(v.Index(i), r, path)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key, r, path)
		fill(value, r, path)
		v.SetMapIndex(key, value)
	case reflect.String:
		v.SetString("<" + path + ">\u0000\u2028 \"keep_forever\":true")
	case reflect.Int, reflect.Int64, reflect.Int32:
		if strings.Contains(path, "Covers") || strings.Contains(path, "Plan.Inputs") {
			v.SetInt(1 + r.Int64N(9))
		} else {
			v.SetInt(1<<40 + r.Int64N(1<<20))
		}
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Float64:
		v.SetFloat(r.Float64() * 1e17)
	default:
		panic(path + ": " + v.Kind().String())
	}
}

// store gives a row the columns of another: that is all that the database keeps.
func store(to, from []column) {
	for i, c := range to {
		reflect.ValueOf(c.value).Elem().Set(reflect.ValueOf(from[i].value).Elem())
	}
}

// TestRowsLoseNothing fills all fields of a task and of an attempt, whatever they are, and
// expects them back from the rows: all but those that other tables have, or only a process.
func TestRowsLoseNothing(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	var want task.State
	fill(reflect.ValueOf(&want).Elem(), r, "")
	row, err := newTaskRow(&want)
	if err != nil {
		t.Fatal(err)
	}
	var stored taskRow
	store(stored.columns(), row.columns())
	got, err := stored.state()
	if err != nil {
		t.Fatal(err)
	}
	a := want.Attempts[0]
	want.QueuedFor, want.Granted, want.Unreadable, want.Attempts = nil, false, false, nil
	want.Plan.Source.Own, want.Plan.Source.URL = false, ""
	want.SourceTasks = nil
	for i := range want.Sources {
		want.Sources[i].Status = ""
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the task (-want +got):\n%s", diff)
	}
	of := mediagate.Task{ID: a.TaskID, AccountID: want.AccountID}
	attempt, err := newAttemptRow(of, a)
	if err != nil {
		t.Fatal(err)
	}
	var storedAttempt attemptRow
	store(storedAttempt.columns(), attempt.columns())
	read, err := storedAttempt.attempt()
	if err != nil {
		t.Fatal(err)
	}
	a.Await = nil
	if diff := cmp.Diff(a, read); diff != "" {
		t.Errorf("the attempt (-want +got):\n%s", diff)
	}
}
