package app

import (
	"regexp"
	"strconv"
)

// ByteSize is a number of bytes, written as 512MiB or as a plain number.
type ByteSize int64

// byteUnits are the units of a ByteSize, the largest first.
var byteUnits = []struct {
	name  string
	shift uint
}{{"GiB", 30}, {"MiB", 20}, {"KiB", 10}, {"", 0}}

var byteSize = regexp.MustCompile(`^(0|[1-9][0-9]*)(GiB|MiB|KiB|)$`)

// String writes the size in the largest unit that leaves no remainder.
func (s ByteSize) String() string {
	for _, u := range byteUnits {
		if n := int64(s) >> u.shift; s != 0 && n<<u.shift == int64(s) {
			return strconv.FormatInt(n, 10) + u.name
		}
	}
	return "0"
}

// parseByteSize parses what String writes. It does not round.
func parseByteSize(text string) (size ByteSize, ok bool) {
	m := byteSize.FindStringSubmatch(text)
	if m == nil {
		return 0, false
	}
	n, err := strconv.ParseInt(m[1], 10, 64)
	for _, u := range byteUnits {
		if u.name == m[2] {
			return ByteSize(n << u.shift), err == nil && n <= 1<<62>>u.shift
		}
	}
	return 0, false
}
