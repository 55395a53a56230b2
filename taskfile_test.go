package mediagate_test

import (
	"testing"

	"github.com/mediagate/mediagate"
)

func TestMostFiles(t *testing.T) {
	t.Parallel()
	priced := func(c mediagate.Charge) []mediagate.Charge { return []mediagate.Charge{c} }
	told := func(files int) mediagate.Task {
		return mediagate.Task{Plan: mediagate.Plan{Files: &files}, Charges: priced(mediagate.Charge{Unit: mediagate.UnitSong, Quantity: 1})}
	}
	main, cover := mediagate.Result{Key: "0"}, mediagate.Result{Key: "1", Role: mediagate.RoleCover}
	for name, test := range map[string]struct {
		task mediagate.Task
		want int
	}{
		"a video":          {mediagate.Task{Type: mediagate.TypeVideo, Charges: priced(mediagate.Charge{Unit: mediagate.UnitSecond, Quantity: 5})}, 1},
		"two videos":       {mediagate.Task{Type: mediagate.TypeVideo, Charges: priced(mediagate.Charge{Unit: mediagate.UnitSecond, Quantity: 10, Files: 2})}, 2},
		"four images":      {mediagate.Task{Type: mediagate.TypeImage, Charges: priced(mediagate.Charge{Unit: mediagate.UnitImage, Quantity: 4})}, 4},
		"two clips":        {told(2), 2},
		"words":            {told(0), 0},
		"what is there":    {mediagate.Task{Type: mediagate.TypeMusic, Status: mediagate.StatusCompleted, Results: []mediagate.Result{cover, main}}, 1},
		"a price for none": {mediagate.Task{Type: mediagate.TypeImage}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := test.task.MostFiles(); got != test.want {
				t.Errorf("%d files, want %d", got, test.want)
			}
		})
	}
}
