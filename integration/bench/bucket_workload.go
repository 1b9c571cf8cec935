package main

const (
	smallDir      = "small"
	largeDir      = "large"
	treeDir       = "many"
	bucketThreads = 8
)

// A bucketWorkload is one row of the table for buckets. Each tree is mounted
// for it alone and has seen nothing, unless again says otherwise.
type bucketWorkload struct {
	workload
	foreign   bool // of what was there before; else in a prefix of its own
	again     bool // what setup has read is on the disk, and nothing of it in memory
	stale     bool // what setup has seen of the store is too old to be believed
	writeBack bool
	limit     limit   // nil: ext4
	wrote     witness // nil: nothing that could get lost
	needs     string  // a program that must be installed
}

// bucketWorkloads have bars for a service that is 10 ms away.
func bucketWorkloads() []bucketWorkload {
	return []bucketWorkload{
		{workload: workload{name: "ls -lR, cold", unit: "s", less: true, dir: smallDir, bar: bar{most: 0.15}, run: place.listAll},
			foreign: true, limit: rawList},
		{workload: workload{name: "walk of 1,000 directories", unit: "s", less: true, dir: treeDir, bar: bar{limit: 1 / 1.2}, run: place.walkMany},
			foreign: true, limit: rawWalk},
		{workload: workload{name: "the same, TTL over", unit: "s", less: true, dir: treeDir, bar: bar{limit: 1 / 1.2}, setup: place.walkManyFirst, run: place.walkMany},
			foreign: true, stale: true, limit: rawWalk},
		{workload: workload{name: "grep -r, all local, TTL over", unit: "s", less: true, dir: smallDir, bar: bar{most: 0.3}, setup: place.grepAllFirst, run: place.grepAll},
			foreign: true, stale: true, needs: "grep"},
		{workload: workload{name: "small reads, cold, 8 threads", unit: "files/s", dir: smallDir, bar: bar{least: 1500}, run: place.readSmall,
			probe: bucketName(0)}, foreign: true, limit: rawSmall},
		{workload: workload{name: "large read, cold", unit: "MiB/s", dir: largeDir, bar: bar{limit: 0.8}, run: place.readLarge,
			probe: largeName}, foreign: true, limit: rawLarge},
		{workload: workload{name: "large read, disk", unit: "MiB/s", dir: largeDir, bar: bar{limit: 0.85}, setup: place.readLargeFirst, run: place.readLarge,
			probe: largeName}, foreign: true, again: true},
		{workload: workload{name: "small reads, warm", unit: "files/s", dir: smallDir, bar: bar{least: 10_000}, run: place.readWarm,
			probe: bucketName(0)}, foreign: true},
		{workload: workload{name: "misses, warm", unit: "op/s", dir: smallDir, bar: bar{limit: 0.5}, run: place.missWarm}, foreign: true},
		{workload: workload{name: "large write and fsync", unit: "MiB/s", dir: "out", bar: bar{limit: 0.8}, setup: place.fresh, run: place.writeLargeFile,
			probe: largeName, probeWrites: true}, limit: rawWrite, wrote: wroteLarge},
		{workload: workload{name: "create, write-back", unit: "files/s", dir: "out", bar: bar{least: 2500}, setup: place.fresh, run: createSmall(1),
			probe: smallName(0), probeWrites: true}, writeBack: true, wrote: wroteSmall},
		{workload: workload{name: "create, 8 threads", unit: "files/s", dir: "out", bar: bar{limit: 0.85}, setup: place.fresh, run: createSmall(bucketThreads),
			probe: smallName(0), probeWrites: true}, limit: rawCreate, wrote: wroteSmall},
		{workload: workload{name: "git clone, write-back", unit: "s", less: true, dir: "git", bar: bar{most: 0.3}, setup: place.gitSmallSetup, run: place.gitCloneTime,
			probe: "clone/.git/index"}, writeBack: true, wrote: wroteClone, needs: "git"},
		{workload: workload{name: "sqlite3, write-back", unit: "s", less: true, dir: "out", bar: bar{most: 0.05}, setup: place.fresh, run: place.sqliteCommits,
			probe: sqliteName, probeWrites: true}, writeBack: true, wrote: wroteSqlite, needs: "sqlite3"},
	}
}
