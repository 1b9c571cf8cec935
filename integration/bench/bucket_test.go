package main

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/s3server"
	"github.com/wsmount/wsmount/integration/testrun"
	"github.com/wsmount/wsmount/integration/tier"
)

// The work itself, on a plain directory with what a bucket holds before.
func TestBucketWorkOnADirectory(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	t.Setenv(sizeVariable, "2")
	dir := testrun.InMemory(t)
	assert.OK(t, (&bucketBench{bench: &bench{o: options{size: 2}}}).fillDisk(dir))
	seen := map[string]bool{}
	for _, w := range bucketWorkloads() {
		_, taken := workloadNamed(w.name)
		assert.True(t, taken && !seen[w.name], w.name, "is no name, or stands twice")
		seen[w.name] = true
		for round := range 2 {
			t.Run(fmt.Sprintf("%s, round %d", w.name, round), func(t *testing.T) {
				if w.needs != "" {
					tier.RequireTools(t, w.needs)
				}
				p := place{dir: dir, name: w.where()}
				if w.setup != nil {
					assert.OK(t, w.setup(p))
				}
				got, err := w.run(p)
				assert.True(t, err == nil && (got > 0), got, err)
				assert.Is(t, assert.ErrOf(os.Stat(p.file(w.probe))), nil, "no file whose io mode can be seen")
			})
		}
	}
}

// A witness sees a file that is missing, cut, changed or too long.
func TestWitness(t *testing.T) {
	server := s3server.Start(t, s3server.Default())
	t.Run("s3", func(t *testing.T) { testWitness(t, newS3Client(server, server.Endpoint)) })
	for name, service := range map[string]*bucketService{"azure": azureService(), "gcs": gcsService(t.Context())} {
		t.Cleanup(service.stop)
		t.Run(name, func(t *testing.T) {
			c := assert.Of(service.client(service.endpoint)).OK(t)
			testWitness(t, c)
		})
	}
}

func testWitness(t *testing.T, c bucketClient) {
	t.Cleanup(c.close)
	want := smallContent(1)
	changed := slices.Clone(want)
	changed[smallSize-1]++
	for key, content := range map[string][]byte{"same": want, "cut": want[:smallSize-1], "changed": changed, "longer": append(slices.Clone(want), 0)} {
		assert.OK(t, c.put(t.Context(), key, content))
	}
	assert.Of(c.list(t.Context(), "")).Equal(t, 4)
	b := &bucketBench{near: c}
	for _, key := range []string{"same", "cut", "changed", "longer", "missing"} {
		want := loss{lost: 1, of: 1, key: key}
		if key == "same" {
			want = loss{of: 1}
		}
		assert.Of(b.lost(t.Context(), []written{bytesAt(key, smallContent(1))})).Equal(t, want, key)
	}
	assert.OK(t, c.putLarge(t.Context(), "large", partBlocks+3))
	l, err := b.lost(t.Context(), []written{{"large", partBlocks + 3, block, largeBlock}})
	assert.True(t, err == nil && l.lost <= 0, "large", l, err)
}

func TestRequestsSince(t *testing.T) {
	var before, after requests
	for text, to := range map[string]*requests{
		`{"Get": {"count": 1, "received": 5}, "List": {"count": 2}}`:                      &before,
		`{"Get": {"count": 4, "received": 9}, "List": {"count": 2}, "Put": {"count": 1}}`: &after,
	} {
		assert.OK(t, json.Unmarshal([]byte(text), to))
	}
	assert.Equal(t, after.since(before).String(), "3 Get, 1 Put")
}

// A time that is half of the limit's is twice as fast.
func TestRatioOfTimes(t *testing.T) {
	r := row{w: workload{less: true}, rounds: []map[kind]float64{{wsmount: 1, possible: 2}}}
	assert.Equal(t, r.ratio(possible), 2)
}
