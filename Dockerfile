# The image of the exporter: one static binary and the CA certificates.
#
#   docker build -t redis_keyhealth_exporter .     compiles it in BUILDER
#   make image                                     puts in a binary of this machine's Go
#
# docs/container.md says how to run it.

# Has Go, make and CA certificates.
ARG BUILDER=golang:1.26-bookworm
# Nothing more is needed, and nothing that is not there has to be patched. Any
# other base will do, such as gcr.io/distroless/static-debian12:nonroot.
ARG BASE=scratch
# The first is the content of the file VERSION; only git knows the others.
ARG VERSION=0.1.0
ARG REVISION=unknown
ARG BRANCH=unknown
ARG BUILD_DATE=unknown

FROM ${BASE} AS base
ARG VERSION
ARG REVISION
LABEL org.opencontainers.image.title="redis_keyhealth_exporter" \
      org.opencontainers.image.description="Prometheus exporter that watches over the health of the keys in Redis" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
# As numbers: scratch has no /etc/passwd, and Kubernetes' runAsNonRoot cannot
# look up names.
USER 65532:65532
EXPOSE 10121
# There is no HEALTHCHECK, as it would run a program in the image, of which there
# is but one: let the orchestrator ask for /-/healthy and /-/ready.
ENTRYPOINT ["/redis_keyhealth_exporter"]

# What `make rootfs` has laid out is the build context.
FROM base AS prebuilt
COPY . /

# Compiles on this machine's processor for that of the image.
FROM --platform=${BUILDPLATFORM} ${BUILDER} AS build
WORKDIR /src
# By themselves, so that a change of the code does not fetch the modules anew.
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION
ARG REVISION
ARG BRANCH
ARG BUILD_DATE
ARG TARGETARCH
RUN GOARCH=${TARGETARCH} make rootfs \
    VERSION="${VERSION}" REVISION="${REVISION}" BRANCH="${BRANCH}" BUILD_DATE="${BUILD_DATE}"

FROM base
COPY --from=build /src/dist/rootfs/ /
