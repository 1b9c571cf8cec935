# Bare `make` prints the targets. Everything that is built goes to bin/.
SHELL      := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.ONESHELL:
MAKEFLAGS  += --no-print-directory

GO       ?= go
PREFIX   ?= /usr/local
FUZZTIME ?= 60s
BENCH    ?=
VERSION  := $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
begun    := $(shell date +%s)

# Without the path of this clone in what is compiled, the compiler's cache serves the next.
export GOFLAGS := -trimpath $(GOFLAGS)
# All that is compiled without the race detector is compiled alike, as the program is, and once.
export CGO_ENABLED := 0

# What staticcheck looks for: quick fixes are taste, and comments and names are read by people.
checks := all,-QF*,-ST1000,-ST1003,-ST1005,-ST1016,-ST1020,-ST1021,-ST1022

# What each target needs, as command:Debian package.
need        := integration/tools/need.sh
build_needs := $(GO):golang-go git:git
run_needs   := fusermount3:fuse3
test_needs  := $(run_needs) git:git git-lfs:git-lfs gcc:gcc /usr/include/stdlib.h:libc6-dev sqlite3:sqlite3 rsync:rsync \
	rg:ripgrep bwrap:bubblewrap getfattr:attr getfacl:acl mkfs.ext4:e2fsprogs losetup:mount \
	npm:npm tar:tar find:findutils strace:strace s3fs:s3fs rclone:rclone sshd:openssh-server python3:python3 \
	podman:podman crun:crun
soak_needs  := $(test_needs) man:man-db mandoc:mandoc zsh:zsh fish:fish promtool:prometheus qemu-aarch64:qemu-user chromium:chromium
test_tools  := bin/gotestsum bin/versitygw bin/toxiproxy-server
soak_tools  := bin/minio bin/fake-gcs-server bin/azurite bin/nfpm bin/gitea bin/github-api.json

install_needs := gzip:gzip
release_needs := $(build_needs) gzip:gzip tar:tar

.PHONY: help modules quickstart build install uninstall release test soak check lint fuzz bench clean

help:
	@echo 'usage: make TARGET'
	sed -nE 's/^([a-z]+):[^#]*## (.*)/  \1\t\2/p' $(firstword $(MAKEFILE_LIST)) | expand -t 14

quickstart: build ## install what is missing, mount the example workspace and list it
	@$(need) $(run_needs)
	integration/example/quickstart.sh $(CURDIR)/bin/wsmount

build: ## build bin/wsmount
	@$(need) $(build_needs)
	$(GO) list -m >/dev/null 2>&1 || { echo "make: Go 1.26 or newer is needed, and this is $$($(GO) version)" >&2; exit 1; }
	GO=$(GO) integration/tools/build.sh bin/wsmount $(VERSION)

install: build ## put wsmount, its manual, completions, unit and mount helpers below PREFIX (/usr/local)
	@$(need) $(install_needs)
	PREFIX=$(PREFIX) DESTDIR=$(DESTDIR) integration/tools/install.sh bin/wsmount

uninstall: ## take away what `make install` put there
	@PREFIX=$(PREFIX) DESTDIR=$(DESTDIR) REMOVE=1 integration/tools/install.sh bin/wsmount

release: bin/nfpm ## make packages and archives in bin/release; VERSION= and ARCHES= (amd64 arm64)
	@$(need) $(release_needs)
	rm -rf bin/release
	GO=$(GO) integration/tools/release.sh $(VERSION) bin/release $(ARCHES)

test: modules lint $(test_tools) ## install what the tests need, and run all that are deterministic; JUNIT=DIR writes reports there, WSMOUNT_SEED=N uses another seed
	@$(need) $(test_needs)
	integration/tools/users-may-mount.sh
	BEGUN=$(begun) GO=$(GO) integration/tools/test.sh test

soak: $(test_tools) $(soak_tools) ## look for the unknown: new seeds for SOAK (1m) a test, kills, sizes, slow servers; RUN=REGEXP, WSMOUNT_SEED=N for one seed again; what it finds: integration/tier/tier.go
	@$(need) $(soak_needs)
	integration/tools/users-may-mount.sh
	BEGUN=$(begun) GO=$(GO) integration/tools/test.sh soak

check: ## exactly what CI runs: make test, where nothing may be skipped
	@.ci/run

lint: bin/staticcheck bin/errcheck ## gofmt, go vet, staticcheck and errcheck
	@unformatted=$$(gofmt -l .)
	[ -z "$$unformatted" ] || { echo "not formatted by gofmt:" $$unformatted >&2; exit 1; }
	echo '== lint'
	$(GO) vet -tags soak ./...
	bin/staticcheck -tags soak -checks $(checks) ./...
	# All of integration/posix is a test.
	bin/errcheck -ignoretests -exclude .ci/errcheck.txt $$($(GO) list ./... | grep -v '/integration/posix$$')

fuzz: ## run every fuzzer for FUZZTIME (60s)
	@for package in $$($(GO) list ./...); do
		for fuzzer in $$($(GO) test -list '^Fuzz' "$$package" | grep '^Fuzz' || true); do
			echo "== $$package $$fuzzer"
			$(GO) test -run '^$$' -fuzz "^$$fuzzer\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 1s "$$package"
		done
	done

bench: build bin/loopback bin/minio ## compare with ext4, go-fuse's loopback, mounts of buckets, git and a bar for store read; BENCH='-run NAME -rounds N ...'
	@$(need) $(run_needs) git:git tar:tar sqlite3:sqlite3 bwrap:bubblewrap
	integration/tools/users-may-mount.sh
	$(GO) build -o bin/bench ./integration/bench
	bin/bench -wsmount bin/wsmount -loopback bin/loopback $(BENCH)
	$(GO) build -o bin/memoryd ./integration/internal/memoryd
	for delay in 0 10ms; do
		echo
		echo "== a working copy of a service that takes $$delay for each call"
		bin/bench -wsmount bin/wsmount -loopback '' -memoryd bin/memoryd -delay $$delay $(BENCH)
	done
	for latency in 0 10ms; do
		bin/bench -wsmount bin/wsmount -s3 bin/minio -latency $$latency -rounds 3 -users "$$(id -un)" $(BENCH)
	done
	for service in azure gcs; do
		bin/bench -wsmount bin/wsmount -service $$service -latency 10ms -size 64 -rounds 3 -users "$$(id -un)" $(BENCH)
	done
	bin/bench -wsmount bin/wsmount -s3 bin/minio -latency 50ms -rounds 3 -users "$$(id -un)" -run 'walk of|TTL over' $(BENCH)
	bin/bench -wsmount bin/wsmount -git 1000,20000,100000 -rounds 3
	bin/bench -wsmount bin/wsmount -store 100

clean:
	@rm -rf bin

# All modules at once: a build asks for them package by package, and takes three times as long.
modules:
	@$(need) $(build_needs)
	printf '%s\n' . integration/tools integration/tools/servers | xargs -P 3 -I{} $(GO) mod download -C {}

bin/staticcheck bin/errcheck bin/gotestsum: integration/tools/go.mod
	@$(need) $(build_needs)
	echo 'building the pinned tools'
	$(GO) build -C integration/tools -o $(CURDIR)/bin/ honnef.co/go/tools/cmd/staticcheck github.com/kisielk/errcheck gotest.tools/gotestsum
	touch bin/staticcheck bin/errcheck bin/gotestsum

# Of the benchmark alone.
bin/loopback: integration/tools/go.mod
	@$(need) $(build_needs)
	$(GO) build -C integration/tools -o $(CURDIR)/bin/ github.com/hanwen/go-fuse/v2/example/loopback
	touch bin/loopback

bin/nfpm: integration/tools/nfpm/go.mod
	@$(need) $(build_needs)
	echo 'building the pinned packer'
	$(GO) build -C integration/tools/nfpm -o $(CURDIR)/bin/ tool
	touch bin/nfpm

# It reads its templates where its source was downloaded to.
bin/gitea: integration/tools/gitea/go.mod
	@$(need) $(build_needs) gcc:gcc /usr/include/stdlib.h:libc6-dev
	echo 'building the pinned Gitea, which takes some minutes'
	cd integration/tools/gitea
	$(GO) mod download code.gitea.io/gitea
	CGO_ENABLED=1 $(GO) build -tags 'sqlite sqlite_unlock_notify' -o $(CURDIR)/bin/ \
		-ldflags "-s -w -X code.gitea.io/gitea/modules/setting.StaticRootPath=$$($(GO) list -m -f '{{.Dir}}' code.gitea.io/gitea)" tool
	touch $(CURDIR)/bin/gitea

bin/github-api.json: integration/tools/github/package-lock.json integration/tools/github/cut.mjs
	@$(need) npm:npm node:nodejs
	echo "fetching GitHub's description of its API"
	mkdir -p bin
	whole=$$(mktemp -d bin/github-api.XXXXXX)
	trap 'rm -rf "$$whole"' EXIT
	cp integration/tools/github/package*.json "$$whole"
	npm ci --prefix "$$whole" --ignore-scripts --no-audit --no-fund --loglevel=error
	node integration/tools/github/cut.mjs "$$whole/node_modules/@octokit/openapi/generated/api.github.com.json" > "$$whole/cut.json"
	mv "$$whole/cut.json" $@

bin/versitygw bin/toxiproxy-server: integration/tools/servers/go.mod
	@$(need) $(build_needs)
	echo 'building the pinned servers'
	$(GO) build -C integration/tools/servers -o $(CURDIR)/bin/ tool
	mv bin/server bin/toxiproxy-server # whose package says no more
	touch bin/versitygw bin/toxiproxy-server

bin/minio: integration/tools/minio/go.mod
	@$(need) $(build_needs)
	echo 'building the pinned MinIO, which takes some minutes'
	$(GO) build -C integration/tools/minio -o $(CURDIR)/bin/ tool
	touch bin/minio

bin/fake-gcs-server: integration/tools/gcs/go.mod
	@$(need) $(build_needs)
	echo 'building the pinned fake-gcs-server, which takes some minutes'
	$(GO) build -C integration/tools/gcs -o $(CURDIR)/bin/ tool
	touch bin/fake-gcs-server

bin/azurite: integration/tools/azurite/package-lock.json
	@$(need) npm:npm node:nodejs
	echo 'fetching the pinned Azurite'
	mkdir -p bin
	whole=$$(mktemp -d bin/azurite.XXXXXX)
	trap 'rm -rf "$$whole"' EXIT
	cp integration/tools/azurite/package*.json "$$whole"
	npm ci --prefix "$$whole" --ignore-scripts --no-audit --no-fund --loglevel=error
	rm -rf $@
	mv "$$whole" $@
	touch $@
