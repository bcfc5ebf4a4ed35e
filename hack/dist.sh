#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Writes everything that config/default installs into one file, dist/install.yaml or the one that is named.
#   hack/dist.sh [file]
#   IMAGE=registry.example.com/reprise/manager:v0.1.0 hack/dist.sh    the manager's image, with a tag, a digest or both
set -euo pipefail
cd "$(dirname "$0")/.."
source hack/lib.sh

file=${1:-dist/install.yaml}

# images prints what kustomize calls an image: the name, and what follows it.
images() {
  local image=$1 name tag digest
  name=${image%%@*}
  digest=${image#"$name"}
  tag=
  # A colon before the last slash belongs to the port of a registry.
  if [[ ${name##*/} == *:* ]]; then
    tag=${name##*:}
    name=${name%:*}
  fi
  if [[ -z $name || -z $tag$digest ]]; then
    echo "IMAGE=$image: name a tag or a digest, as in registry.example.com/reprise/manager:v0.1.0" >&2
    return 1
  fi
  echo "- {name: reprise/manager, newName: '$name', newTag: '$tag', digest: '${digest#@}'}"
}

render() {
  local kustomize overlay=$1
  kustomize=$(tool kustomize)
  {
    echo "resources: [$(realpath --relative-to="$overlay" config/default)]"
    if [[ -n ${IMAGE:-} ]]; then
      echo "images:"
      images "$IMAGE"
    fi
  } >"$overlay/kustomization.yaml"
  echo "# SPDX-License-Identifier: Apache-2.0"
  echo "# Made of config/default by \`make dist\`. No image is published: build one (make image) and load it into the nodes, or push it"
  echo "# to a registry of yours and write this file anew with its name: make dist IMAGE=registry.example.com/reprise/manager:v0.1.0"
  "$kustomize" build "$overlay"
}

overlay=$(mktemp -d)
trap 'rm -rf "$overlay"' EXIT
render "$overlay" >"$overlay/install.yaml"
mkdir -p "$(dirname "$file")"
mv "$overlay/install.yaml" "$file"
echo "wrote $file"
