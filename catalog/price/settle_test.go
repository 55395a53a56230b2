package price_test

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/catalog/price"
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
		delivered price.Delivered
		total     mediagate.Micros
		want      mediagate.Micros
	}{
		"length unknown: as quoted":       {video, price.Delivered{}, 420_000, 420_000},
		"length as quoted":                {video, price.Delivered{Seconds: 5}, 420_000, 420_000},
		"longer is not charged":           {video, price.Delivered{Seconds: 5.04}, 420_000, 420_000},
		"much longer is not charged":      {video, price.Delivered{Seconds: 1e300}, 420_000, 420_000},
		"shorter is charged less":         {video, price.Delivered{Seconds: 3}, 420_000, 252_000},
		"started seconds count":           {video, price.Delivered{Seconds: 3.001}, 420_000, 336_000},
		"a blink is a second":             {video, price.Delivered{Seconds: 0.01}, 420_000, 84_000},
		"negative length is unknown":      {video, price.Delivered{Seconds: -1}, 420_000, 420_000},
		"NaN is unknown":                  {video, price.Delivered{Seconds: math.NaN()}, 420_000, 420_000},
		"endless":                         {video, price.Delivered{Seconds: math.Inf(1)}, 420_000, 420_000},
		"by the file":                     {video, price.Delivered{Lengths: []float64{2.4}}, 420_000, 252_000},
		"by the file, unknown":            {video, price.Delivered{Lengths: []float64{0}}, 420_000, 420_000},
		"by the file, too long":           {video, price.Delivered{Lengths: []float64{60}}, 420_000, 420_000},
		"more files than quoted":          {video, price.Delivered{Lengths: []float64{2, 1}}, 420_000, 252_000},
		"many more than quoted":           {video, price.Delivered{Lengths: []float64{4, 4}}, 420_000, 420_000},
		"what is stated counts first":     {video, price.Delivered{Seconds: 3, Lengths: []float64{5}}, 420_000, 252_000},
		"all samples":                     {samples, price.Delivered{Lengths: []float64{8, 8, 8, 8}}, 320_000, 320_000},
		"some samples":                    {samples, price.Delivered{Lengths: []float64{8, 8, 8}}, 320_000, 240_000},
		"samples a little longer":         {samples, price.Delivered{Lengths: []float64{8.04, 8.04, 8.04}}, 320_000, 240_000},
		"shorter samples":                 {samples, price.Delivered{Lengths: []float64{7.2, 6}}, 320_000, 140_000},
		"a sample of unknown length":      {samples, price.Delivered{Lengths: []float64{6, 0}}, 320_000, 140_000},
		"one sample, unknown":             {samples, price.Delivered{Lengths: []float64{0}}, 320_000, 80_000},
		"samples of stated length":        {samples, price.Delivered{Seconds: 12, Lengths: []float64{8, 8}}, 320_000, 120_000},
		"stated above what came":          {samples, price.Delivered{Seconds: 32, Lengths: []float64{8, 8}}, 320_000, 160_000},
		"samples, nothing known":          {samples, price.Delivered{}, 320_000, 320_000},
		"all images":                      {images, price.Delivered{Images: 4}, 60_000, 60_000},
		"some images":                     {images, price.Delivered{Images: 3}, 60_000, 45_000},
		"no image":                        {images, price.Delivered{}, 60_000, 0},
		"images below zero":               {images, price.Delivered{Images: -2}, 60_000, 0},
		"more images than quoted":         {images, price.Delivered{Images: 9}, 60_000, 60_000},
		"seconds do not matter to images": {images, price.Delivered{Images: 4, Seconds: 1}, 60_000, 60_000},
		"characters as sent":              {speech, price.Delivered{}, 61_440, 61_440},
		"characters, whatever is heard":   {speech, price.Delivered{Seconds: 1, Images: 9}, 61_440, 61_440},
		"a song, however long":            {song, price.Delivered{Seconds: 1}, 80_000, 80_000},
		"an operation":                    {stems, price.Delivered{}, 50_000, 50_000},
		"nothing charged":                 {nil, price.Delivered{Seconds: 5, Images: 1}, 0, 0},
		"several lines":                   {append(video[:1:1], images...), price.Delivered{Seconds: 2, Images: 1}, 480_000, 183_000},
		"no overflow":                     {huge, price.Delivered{}, math.MaxInt64, math.MaxInt64},
		"no overflow of a sum":            {append(huge[:1:1], video...), price.Delivered{}, math.MaxInt64, math.MaxInt64},
		"negative lines are nothing": {
			[]mediagate.Charge{{Unit: mediagate.UnitSecond, Quantity: -5, UnitPrice: 84_000}, {Unit: mediagate.UnitImage, Quantity: 1, UnitPrice: -1}},
			price.Delivered{Images: 1},
			0, 0,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := price.Total(tt.charges); got != tt.total {
				t.Errorf("Total = %v, want %v", got, tt.total)
			}
			if got := price.Settle(tt.charges, tt.delivered); got != tt.want {
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
		delivered := price.Delivered{Seconds: rapid.Float64().Draw(t, "seconds"), Images: rapid.Int().Draw(t, "images")}
		if rapid.Bool().Draw(t, "files known") {
			delivered.Lengths = rapid.SliceOfN(rapid.Float64(), 0, 6).Draw(t, "lengths")
		}
		hold, due := price.Total(charges), price.Settle(charges, delivered)
		if due < 0 || due > hold {
			t.Fatalf("due %v of a hold of %v", due, hold)
		}
	})
}

func TestSettleGrowsWithWhatIsDelivered(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		charges := drawCharges(t)
		less := price.Delivered{Seconds: rapid.Float64Range(0.001, 1000).Draw(t, "seconds"), Images: rapid.IntRange(0, 100).Draw(t, "images")}
		more := price.Delivered{
			Seconds: less.Seconds + rapid.Float64Range(0, 1000).Draw(t, "more seconds"),
			Images:  less.Images + rapid.IntRange(0, 100).Draw(t, "more images"),
		}
		if a, b := price.Settle(charges, less), price.Settle(charges, more); a > b {
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
		want    price.Delivered
	}{
		"all":        {two, []mediagate.Result{film(0, 5), film(1, 5), cover}, price.Delivered{Seconds: 9, Lengths: []float64{5, 5}, Images: 2}},
		"one of two": {two, []mediagate.Result{film(1, 4.2), cover}, price.Delivered{Lengths: []float64{4.2}, Images: 1}},
		"no length":  {two, []mediagate.Result{film(1, 0)}, price.Delivered{Lengths: []float64{0}, Images: 1}},
		"an archive": {stems, []mediagate.Result{film(0, 0)}, price.Delivered{Lengths: []float64{0}, Images: 1}},
		"an uncut one": {
			mediagate.Outcome{Media: []mediagate.Media{{Role: mediagate.RoleGrid}}}, []mediagate.Result{{Role: mediagate.RoleGrid}}, price.Delivered{},
		},
	} {
		if diff := cmp.Diff(c.want, price.DeliveredBy(c.outcome, c.files)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
