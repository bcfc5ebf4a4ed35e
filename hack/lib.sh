# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Sourced by the scripts beside it, which run from the repository's root.

# modules lists the directories of all Go modules of this repository.
modules() {
  code_modules
  echo hack/controlplane
  echo hack/controlplane/oldest
  echo hack/helm
  echo hack/kwok
  echo hack/prometheus
  echo hack/tools
}

# code_modules lists those that have code of ours.
code_modules() {
  echo .
  echo hack/image
  echo test/gitops
  echo test/project
}

# tool prints the path of a developer tool, built when it is not yet.
tool() {
  go tool -modfile=hack/tools/go.mod -n "$1"
}

# phase runs a command under a title and tells how long it took.
phase() {
  local title=$1 start=$SECONDS
  shift
  echo "== $title"
  if ! "$@"; then
    echo "== $title: FAILED after $((SECONDS - start)) s"
    return 1
  fi
  echo "== $title: done in $((SECONDS - start)) s"
}

# own_cluster makes sure that no test meets a cluster by accident: only CLUSTER=existing may read the user's kubeconfig.
own_cluster() {
  if [[ ${CLUSTER:-} != existing ]]; then
    unset KUBECONFIG
  fi
}
