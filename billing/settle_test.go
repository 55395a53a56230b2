package billing_test

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/billing"
)

func TestSettle(t *testing.T) {
	t.Parallel()
	video := []mediagate.Charge{{Item: "alpha-v3 std", Unit: mediagate.UnitSecond, Quantity: 5, UnitPrice: 84_000}}
	images := []mediagate.Charge{{Item: "zeta 1K", Unit: mediagate.UnitImage, Quantity: 4, UnitPrice: 15_000}}
	speech := []mediagate.Charge{{Item: "eta", Unit: mediagate.UnitCharacter, Quantity: 4096, UnitPrice: 15}}
	song := []mediagate.Charge{{Item: "music-a", Unit: mediagate.UnitSong, Quantity: 1, UnitPrice: 80_000}}
	stems := []mediagate.Charge{{Item: "music-a stemsAll", Unit: mediagate.UnitOperation, Quantity: 1, UnitPrice: 50_000}}
	huge := []mediagate.Charge{{Unit: mediagate.UnitSecond, Quantity: math.MaxInt64, UnitPrice: math.MaxInt64}}
	samples := []mediagate.Charge{{Item: "epsilon 720p", Unit: mediagate.UnitSecond, Quantity: 32, Files: 4, UnitPrice: 10_000}}
	tests := map[string]struct {
		charges   []mediagate.Charge
		delivered billing.Delivered
		total     mediagate.Micros
		want      mediagate.Micros
	}{
		"length unknown: as quoted":       {video, billing.Delivered{}, 420_000, 420_000},
		"length as quoted":                {video, billing.Delivered{Seconds: 5}, 420_000, 420_000},
		"longer is not charged":           {video, billing.Delivered{Seconds: 5.04}, 420_000, 420_000},
		"much longer is not charged":      {video, billing.Delivered{Seconds: 1e300}, 420_000, 420_000},
		"shorter is charged less":         {video, billing.Delivered{Seconds: 3}, 420_000, 252_000},
		"started seconds count":           {video, billing.Delivered{Seconds: 3.001}, 420_000, 336_000},
		"a blink is a second":             {video, billing.Delivered{Seconds: 0.01}, 420_000, 84_000},
		"negative length is unknown":      {video, billing.Delivered{Seconds: -1}, 420_000, 420_000},
		"NaN is unknown":                  {video, billing.Delivered{Seconds: math.NaN()}, 420_000, 420_000},
		"endless":                         {video, billing.Delivered{Seconds: math.Inf(1)}, 420_000, 420_000},
		"by the file":                     {video, billing.Delivered{Lengths: []float64{2.4}}, 420_000, 252_000},
		"by the file, unknown":            {video, billing.Delivered{Lengths: []float64{0}}, 420_000, 420_000},
		"by the file, too long":           {video, billing.Delivered{Lengths: []float64{60}}, 420_000, 420_000},
		"more files than quoted":          {video, billing.Delivered{Lengths: []float64{2, 1}}, 420_000, 252_000},
		"many more than quoted":           {video, billing.Delivered{Lengths: []float64{4, 4}}, 420_000, 420_000},
		"what is stated counts first":     {video, billing.Delivered{Seconds: 3, Lengths: []float64{5}}, 420_000, 252_000},
		"all samples":                     {samples, billing.Delivered{Lengths: []float64{8, 8, 8, 8}}, 320_000, 320_000},
		"some samples":                    {samples, billing.Delivered{Lengths: []float64{8, 8, 8}}, 320_000, 240_000},
		"samples a little longer":         {samples, billing.Delivered{Lengths: []float64{8.04, 8.04, 8.04}}, 320_000, 240_000},
		"shorter samples":                 {samples, billing.Delivered{Lengths: []float64{7.2, 6}}, 320_000, 140_000},
		"a sample of unknown length":      {samples, billing.Delivered{Lengths: []float64{6, 0}}, 320_000, 140_000},
		"one sample, unknown":             {samples, billing.Delivered{Lengths: []float64{0}}, 320_000, 80_000},
		"samples of stated length":        {samples, billing.Delivered{Seconds: 12, Lengths: []float64{8, 8}}, 320_000, 120_000},
		"stated above what came":          {samples, billing.Delivered{Seconds: 32, Lengths: []float64{8, 8}}, 320_000, 160_000},
		"samples, nothing known":          {samples, billing.Delivered{}, 320_000, 320_000},
		"all images":                      {images, billing.Delivered{Images: 4}, 60_000, 60_000},
		"some images":                     {images, billing.Delivered{Images: 3}, 60_000, 45_000},
		"no image":                        {images, billing.Delivered{}, 60_000, 0},
		"images below zero":               {images, billing.Delivered{Images: -2}, 60_000, 0},
		"more images than quoted":         {images, billing.Delivered{Images: 9}, 60_000, 60_000},
		"seconds do not matter to images": {images, billing.Delivered{Images: 4, Seconds: 1}, 60_000, 60_000},
		"characters as sent":              {speech, billing.Delivered{}, 61_440, 61_440},
		"characters, whatever is heard":   {speech, billing.Delivered{Seconds: 1, Images: 9}, 61_440, 61_440},
		"a song, however long":            {song, billing.Delivered{Seconds: 1}, 80_000, 80_000},
		"an operation":                    {stems, billing.Delivered{}, 50_000, 50_000},
		"nothing charged":                 {nil, billing.Delivered{Seconds: 5, Images: 1}, 0, 0},
		"several lines":                   {append(video[:1:1], images...), billing.Delivered{Seconds: 2, Images: 1}, 480_000, 183_000},
		"no overflow":                     {huge, billing.Delivered{}, math.MaxInt64, math.MaxInt64},
		"no overflow of a sum":            {append(huge[:1:1], video...), billing.Delivered{}, math.MaxInt64, math.MaxInt64},
		"negative lines are nothing": {
			[]mediagate.Charge{{Unit: mediagate.UnitSecond, Quantity: -5, UnitPrice: 84_000}, {Unit: mediagate.UnitImage, Quantity: 1, UnitPrice: -1}},
			billing.Delivered{Images: 1},
			0, 0,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := billing.Total(tt.charges); got != tt.total {
				t.Errorf("Total = %v, want %v", got, tt.total)
			}
			if got := billing.Settle(tt.charges, tt.delivered); got != tt.want {
				t.Errorf("Settle = %v, want %v", got, tt.want)
			}
		})
	}
}

func drawCharges(t *rapid.T) []mediagate.Charge {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) mediagate.Charge {
		return mediagate.Charge{
			Unit:      rapid.SampledFrom([]mediagate.Unit{mediagate.UnitSecond, mediagate.UnitImage, mediagate.UnitSong, mediagate.UnitCharacter}).Draw(t, "unit"),
			Quantity:  rapid.Int64().Draw(t, "quantity"),
			Files:     rapid.Int64Range(0, 4).Draw(t, "files"),
			UnitPrice: mediagate.Micros(rapid.Int64().Draw(t, "price")),
		}
	}), 0, 4).Draw(t, "charges")
}

func TestSettleNeverExceedsTheHold(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		charges := drawCharges(t)
		delivered := billing.Delivered{Seconds: rapid.Float64().Draw(t, "seconds"), Images: rapid.Int().Draw(t, "images")}
		if rapid.Bool().Draw(t, "files known") {
			delivered.Lengths = rapid.SliceOfN(rapid.Float64(), 0, 6).Draw(t, "lengths")
		}
		hold, due := billing.Total(charges), billing.Settle(charges, delivered)
		if due < 0 || due > hold {
			t.Fatalf("due %v of a hold of %v", due, hold)
		}
	})
}

func TestSettleGrowsWithWhatIsDelivered(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		charges := drawCharges(t)
		less := billing.Delivered{Seconds: rapid.Float64Range(0.001, 1000).Draw(t, "seconds"), Images: rapid.IntRange(0, 100).Draw(t, "images")}
		more := billing.Delivered{
			Seconds: less.Seconds + rapid.Float64Range(0, 1000).Draw(t, "more seconds"),
			Images:  less.Images + rapid.IntRange(0, 100).Draw(t, "more images"),
		}
		if a, b := billing.Settle(charges, less), billing.Settle(charges, more); a > b {
			t.Fatalf("%+v costs %v, but %+v costs %v", less, a, more, b)
		}
	})
}

// The vendor states the seconds of all that it made. Where a piece is missing, what
// came counts by its own length.
func TestDeliveredBy(t *testing.T) {
	t.Parallel()
	film := func(i int, seconds float64) mediagate.Result { return mediagate.Result{Index: i, Duration: seconds} }
	cover := mediagate.Result{Role: mediagate.RoleCover}
	two := mediagate.Outcome{Seconds: 9, Media: []mediagate.Media{{}, {Index: 1}, {Role: mediagate.RoleCover}}}
	stems := mediagate.Outcome{Media: []mediagate.Media{{Role: mediagate.RoleStem}, {Role: mediagate.RoleStem, Index: 1}}}
	for name, c := range map[string]struct {
		outcome mediagate.Outcome
		files   []mediagate.Result
		want    billing.Delivered
	}{
		"all":        {two, []mediagate.Result{film(0, 5), film(1, 5), cover}, billing.Delivered{Seconds: 9, Lengths: []float64{5, 5}, Images: 2}},
		"one of two": {two, []mediagate.Result{film(1, 4.2), cover}, billing.Delivered{Lengths: []float64{4.2}, Images: 1}},
		"no length":  {two, []mediagate.Result{film(1, 0)}, billing.Delivered{Lengths: []float64{0}, Images: 1}},
		"an archive": {stems, []mediagate.Result{film(0, 0)}, billing.Delivered{Lengths: []float64{0}, Images: 1}},
		"an uncut one": {
			mediagate.Outcome{Media: []mediagate.Media{{Role: mediagate.RoleGrid}}}, []mediagate.Result{{Role: mediagate.RoleGrid}}, billing.Delivered{},
		},
	} {
		if diff := cmp.Diff(c.want, billing.DeliveredBy(c.outcome, c.files)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
