# For GNU Make; recipes are POSIX sh.
BINARY      := bin/redis_keyhealth_exporter
# Pinned, and run apart from go.mod: they are no dependencies of the exporter.
GOFUMPT     := go run mvdan.cc/gofumpt@v0.12.0
STATICCHECK := go run honnef.co/go/tools/cmd/staticcheck@v0.8.2

VERSION     = $(shell cat VERSION)
REVISION    = $(shell git rev-parse --verify --quiet HEAD 2>/dev/null || echo unknown)
BRANCH      = $(shell git symbolic-ref --short --quiet HEAD 2>/dev/null || echo unknown)
# Of the commit, so that the same sources make the same bytes. GNU's date, or BSD's.
SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct 2>/dev/null || date +%s)
BUILD_DATE  = $(shell date -u -d @$(SOURCE_DATE_EPOCH) +$(DATE_FORMAT) 2>/dev/null || date -u -r $(SOURCE_DATE_EPOCH) +$(DATE_FORMAT))
DATE_FORMAT = %Y%m%d-%H:%M:%S
PKG_VERSION = github.com/prometheus/common/version
GO_LDFLAGS  = -X $(PKG_VERSION).Version=$(VERSION) -X $(PKG_VERSION).Revision=$(REVISION) \
	-X $(PKG_VERSION).Branch=$(BRANCH) -X $(PKG_VERSION).BuildDate=$(BUILD_DATE)

TESTFLAGS ?=
FUZZTIME  ?= 20s
PLATFORMS ?= linux/amd64 linux/arm64 darwin/amd64 darwin/arm64
DIST      ?= dist
IMAGE     ?= redis_keyhealth_exporter:$(VERSION)
MINUTES   ?= 10
# The document that takes the figures; nothing = they are printed only.
FIGURES   ?= docs/performance.md

.PHONY: help build test test-race test-tools lint fmt generate screenshots demo fuzz bench bench-instructions bench-large soak bench-tools release rootfs image clean
help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1	/p' $(MAKEFILE_LIST) | awk -F '\t' '{ printf "%-18s %s\n", $$1, $$2 }'

build: ## build the exporter into bin/
	CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags '$(GO_LDFLAGS)' -o $(BINARY) .

test: test-tools ## run all tests (TESTFLAGS='-run TestX' for some)
	go test $(TESTFLAGS) ./...

test-race: test-tools ## run all tests with the race detector (needs a C compiler)
	CGO_ENABLED=1 go test -race $(TESTFLAGS) ./...

test-tools:
	@scripts/install-tools.sh redis-server promtool amtool

lint: ## check the format of the code and look for mistakes
	@files=$$($(GOFUMPT) -l .) || exit 1; \
	if [ -n "$$files" ]; then printf 'not formatted, run make fmt:\n%s\n' "$$files"; exit 1; fi
	go vet ./...
	$(STATICCHECK) ./...

fmt: ## format the code
	$(GOFUMPT) -w .

# The dashboards are checked against docs/metrics.md, hence come behind it.
generate: ## write the generated docs, manifests, golden files and dashboards anew
	go test ./collector ./internal/policy ./internal/config ./internal/packaging -run 'TestDocs|TestGolden|TestDefaultPolicy' -update
	go run ./dashboards

screenshots: ## draw the dashboards into docs/img (RENDERER=program PROMETHEUS=url)
	@scripts/draw-dashboards.sh '$(RENDERER)' '$(PROMETHEUS)'

demo: ## show the exporter at work on a Redis of its own
	@scripts/install-tools.sh redis-server
	@CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags '$(GO_LDFLAGS)' -o bin/demo ./internal/demo
	@exec bin/demo

fuzz: ## run every fuzz test for FUZZTIME (20s)
	@for package in $$(go list ./...); do \
		tests=$$(go test -list '^Fuzz' "$$package") || { echo "$$tests"; exit 1; }; \
		for test in $$(echo "$$tests" | grep '^Fuzz'); do \
			go test -run '^$$' -fuzz "^$$test\$$" -fuzztime $(FUZZTIME) "$$package" || exit 1; \
		done; \
	done

bench: bench-tools ## compare the cost of a scan with its peers', and measure what others feel (14 min)
	bin/bench --write=$(FIGURES) compare
	bin/bench --write=$(FIGURES) foreground
	bin/bench --write=$(FIGURES) scrape

# Without noise, hence a gate: it fails beyond the limits. It writes only where told to.
bench-instructions: FIGURES =
bench-instructions: bench-tools ## count the server's instructions per key (1 min; needs valgrind)
	@scripts/install-tools.sh valgrind
	bin/bench --write=$(FIGURES) callgrind

bench-large: bench-tools ## scan 20 million keys (6 min, 4 GiB)
	bin/bench --write=$(FIGURES) large

soak: bench-tools ## look for MINUTES (10) whether anything grows under unrest
	bin/bench --write=$(FIGURES) soak --minutes=$(MINUTES)

bench-tools: build
	@scripts/install-tools.sh redis-server
	@go build -o bin/bench ./internal/bench

release: ## compile and pack for PLATFORMS, with checksums, into dist/
	@MAKE='$(MAKE)' VERSION='$(VERSION)' SOURCE_DATE_EPOCH='$(SOURCE_DATE_EPOCH)' scripts/release.sh $(DIST) $(PLATFORMS)

rootfs: ## lay out the files of the container image in dist/rootfs
	@MAKE='$(MAKE)' scripts/rootfs.sh $(DIST)/rootfs

image: rootfs ## make the container image with docker, podman or buildah
	@scripts/image.sh $(IMAGE) $(DIST)/rootfs $(if $(BASE),BASE=$(BASE)) VERSION=$(VERSION) REVISION=$(REVISION)

clean: ## remove what was built
	rm -rf bin dist
