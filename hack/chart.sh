#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Writes what the Helm chart takes from config/: the CRDs, the rules of roles, whom the manager may not reach, alerts and dashboard.
# `hack/chart.sh package` makes dist/reprise-<version>.tgz; VERSION is the manager's (default git describe).
set -euo pipefail
cd "$(dirname "$0")/.."

chart=charts/reprise
written='{{- /* Written by hack/chart.sh, with make manifests. SPDX-License-Identifier: Apache-2.0 */ -}}'

# crd makes a template of a CRD: with the chart's labels, and the annotation that keeps it.
crd() {
  echo "$written"
  echo '{{- if .Values.crds.install }}'
  sed -e '/^---$/d' -e 's/{{/{{ "{{" }}/g' "$1" | awk '
    !done && /^  annotations:$/ {
      print
      print "    {{- if .Values.crds.keep }}"
      print "    helm.sh/resource-policy: keep"
      print "    {{- end }}"
      next
    }
    !done && /^  name: / {
      print "  labels:"
      print "    {{- include \"reprise.labels\" . | nindent 4 }}"
      done = 1
    }
    { print }'
  echo '{{- end }}'
}

# part makes a named template of what follows a line of a file, up to its end: all lines are indented alike.
part() {
  echo
  echo "{{- define \"$1\" -}}"
  awk -v line="$2" 'found { if (found == 1) { match($0, /^ */); found = RLENGTH + 2 } print substr($0, found - 1) } $0 == line { found = 1 }' "$3"
  echo '{{- end -}}'
}

generate() {
  mkdir -p "$chart/templates/crds"
  rm -f "$chart"/templates/crds/*.yaml
  local file
  for file in config/crd/bases/*.yaml; do
    crd "$file" >"$chart/templates/crds/${file##*/}"
  done
  {
    echo "$written"
    for file in config/rbac/role.yaml config/rbac/leader_election_role.yaml config/rbac/users/*_role.yaml config/prometheus/*_role.yaml; do
      part "reprise.rules.$(basename "$file" .yaml)" rules: "$file"
    done
    part reprise.rules.kube_state_metrics_role rules: config/prometheus/kube-state-metrics/role.yaml
    part reprise.egress '  - to:' config/network/manager_policy.yaml
  } >"$chart/templates/_config.tpl"
  mkdir -p "$chart/files"
  {
    echo '# Written by hack/chart.sh, with make manifests. SPDX-License-Identifier: Apache-2.0'
    sed -n '/^spec:$/,$p' config/prometheus/rules.yaml
  } >"$chart/files/rules.yaml"
  cp config/prometheus/dashboard.json "$chart/files/dashboard.json"
  cp config/prometheus/kube-state-metrics/custom_resource_state.yaml "$chart/files/custom_resource_state.yaml"
}

# package names the chart after the manager's version, if that is one that Helm understands.
package() {
  local version flags=()
  version=${VERSION:-$(git describe --tags --always --dirty 2>/dev/null || true)}
  if [[ $version =~ ^v[0-9]+\.[0-9]+\.[0-9]+ ]]; then
    flags=(--version "${version#v}" --app-version "$version")
  fi
  mkdir -p dist
  go tool -modfile=hack/helm/go.mod helm package "$chart" --destination dist "${flags[@]}"
}

case ${1:-generate} in
  generate) generate ;;
  package) generate && package ;;
  *) echo "usage: hack/chart.sh [generate|package]" >&2; exit 2 ;;
esac
