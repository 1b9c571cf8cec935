// Package bytesize reads and writes numbers of bytes as people do: 20GiB.
package bytesize

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/wsmount/wsmount/cmd/internal/exit"
)

// sizeUnits are the suffixes of a size. One letter means the binary unit, as
// in df and du.
var sizeUnits = map[string]float64{"": 1, "b": 1,
	"k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40,
	"kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30, "tib": 1 << 40,
	"kb": 1e3, "mb": 1e6, "gb": 1e9, "tb": 1e12}

var sizeForm = regexp.MustCompile(`^([0-9]+(?:\.[0-9]+)?) ?([A-Za-z]*)$`)

// Parse reads a number of bytes; nothing is 0. flag is the name of its flag.
func Parse(flag, s string) (int64, error) {
	if s == "" {
		return 0, nil
	}
	m := sizeForm.FindStringSubmatch(s)
	if m == nil {
		return 0, badSize(flag, s)
	}
	unit, known := sizeUnits[strings.ToLower(m[2])]
	n, err := strconv.ParseFloat(m[1], 64)
	if !known || err != nil || n*unit < 1 || n*unit > 1<<62 {
		return 0, badSize(flag, s)
	}
	return int64(n * unit), nil
}

func badSize(flag, s string) error {
	return exit.New(exit.Usage, "%s %q is not a size", flag, s).Hint("for example %s 20GiB", flag)
}

// Text is a number of bytes in its largest unit.
func Text(n int64) string {
	f, units := float64(n), []string{"B", "KiB", "MiB", "GiB", "TiB"}
	i := 0
	for ; f >= 1024 && i < len(units)-1; i++ {
		f /= 1024
	}
	if i == 0 {
		return fmt.Sprintf("%d B", n)
	}
	return fmt.Sprintf("%.1f %s", f, units[i])
}
