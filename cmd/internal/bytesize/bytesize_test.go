package bytesize

import (
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
)

func TestParse(t *testing.T) {
	for s, want := range map[string]int64{"": 0, "1": 1, "10k": 10 << 10, "20GiB": 20 << 30, "1.5 MB": 1500000, "2T": 2 << 40,
		"0": -1, "-1": -1, "1x": -1, "k": -1, "9999999T": -1, "1e3": -1} {
		got, err := Parse("--cache-size", s)
		assert.True(t, (err != nil) == (want < 0) && (err != nil || got == want), s, "got", got, err, "want", want)
	}
}

func TestText(t *testing.T) {
	for n, want := range map[int64]string{0: "0 B", 1023: "1023 B", 1536: "1.5 KiB", 20 << 30: "20.0 GiB", 1 << 60: "1048576.0 TiB"} {
		assert.Equal(t, Text(n), want)
	}
}
