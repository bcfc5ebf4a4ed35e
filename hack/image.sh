#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the container images without a container engine; see hack/image. `hack/image.sh` writes tarballs for this machine's
# platform to bin/images, `hack/image.sh release` the manager's OCI image layout for all platforms. IMAGE=name[:tag] names the
# manager's image, VERSION is stamped into it.
set -euo pipefail
cd "$(dirname "$0")/.."

# Sources that are no checkout have no answer.
of_git() {
  git "$@" 2>/dev/null || true
}

version=${VERSION:-$(of_git describe --tags --always --dirty)}
version=${version:-unknown}
created=${SOURCE_DATE_EPOCH:-$(of_git log -1 --format=%ct)}
# The tag that config/ asks for, so that it runs what was loaded.
configured=$(sed -n 's/^ *newTag: *//p' config/manager/kustomization.yaml)

CGO_ENABLED=0 go build -C hack/image -buildvcs=false -o ../../bin/image .
exec bin/image -version "$version" -revision "$(of_git rev-parse HEAD)" -created "${created:-0}" \
  -image "${IMAGE:-reprise/manager}" -also "$configured" "${1:-local}"
