#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Writes docs/reference.md, every field of the API, from the comments in api/v1alpha1.
set -euo pipefail
cd "$(dirname "$0")/.."
source hack/lib.sh

# Deeper than any type of ours; what is cut off is inside a Job's template.
"$(tool crd-ref-docs)" --log-level=ERROR --source-path=api/v1alpha1 --max-depth=20 --config=hack/reference/config.yaml \
  --renderer=markdown --templates-dir=hack/reference --output-path=docs/reference.md >/dev/null
echo "wrote docs/reference.md"
