# SPDX-License-Identifier: Apache-2.0
# The manager's image for those who have a container engine:
#   docker build --build-arg VERSION="$(git describe --tags --always --dirty)" -t reprise/manager .
# `make image` builds the same without one, and with a bill of materials.
FROM --platform=$BUILDPLATFORM golang:1.26 AS build
ARG TARGETOS
ARG TARGETARCH
ARG VERSION=unknown
WORKDIR /src
# The modules change less often than the code: they are a layer of their own.
COPY go.mod go.sum ./
RUN go mod download
COPY api api
COPY cmd/manager cmd/manager
COPY controllers controllers
COPY internal internal
RUN CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH go build -trimpath -buildvcs=false \
    -ldflags "-s -w -X reprise.dev/reprise/internal/version.Version=$VERSION" -o /manager ./cmd/manager

# Nothing but the program: no shell, no packages. It brings its own roots of trust and time zones.
FROM scratch
COPY --from=build --chmod=0555 /manager /manager
WORKDIR /
USER 65532:65532
ENTRYPOINT ["/manager"]
