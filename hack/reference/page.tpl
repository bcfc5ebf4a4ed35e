{{- define "gvList" -}}
# API reference

<!-- Written by hack/reference.sh, with make manifests, from the comments in api/v1alpha1. -->

{{- range . }}
{{- $gv := . }}

Every field of `{{ $gv.GroupVersionString }}`; `kubectl explain` has the same. The API server checks the bounds, and rules over
several fields whose messages say what to write.
{{ range $gv.SortedKinds }}
{{- if ne . "QueueLedger" }}
- [{{ . }}](#{{ lower . }})
{{- end }}
{{- end }}
{{- range $gv.SortedKinds }}
{{- if ne . "QueueLedger" }}
{{ template "type" ($gv.TypeForKind .) }}
{{- end }}
{{- end }}
{{- range $gv.SortedTypes }}
{{- if not (or .GVK (has .Name (list "QueueLedgerSpec" "Intent" "Admissions"))) }}
{{ template "type" . }}
{{- end }}
{{- end }}
{{- end }}
{{ end -}}

{{- define "type" -}}
{{- if markdownShouldRenderType . }}
{{- if .GVK }}
## {{ .Name }}
{{- else }}
### {{ .Name }}
{{- end }}

{{ .Doc }}
{{- if .References }}

In:{{ range $i, $reference := .SortedReferences }}{{ if $i }},{{ end }} {{ markdownRenderTypeLink $reference }}{{ end }}
{{- end }}
{{- if .Members }}

| field | type | meaning | bounds |
| --- | --- | --- | --- |
{{- range .Members }}
{{- if ne .Name "metadata" }}
| `{{ .Name }}` | {{ template "name" .Type }} | {{ template "text" .Doc }} | {{ template "bounds" . }} |
{{- end }}
{{- end }}
{{- end }}
{{- if .EnumValues }}

| value | meaning |
| --- | --- |
{{- range .EnumValues }}
| `{{ .Name }}` | {{ template "text" .Doc }} |
{{- end }}
{{- end }}
{{ end }}
{{- end -}}

{{- /* Kubernetes' own types have no page here. */ -}}
{{- define "name" -}}
{{ regexReplaceAll "\\[([^]]*)\\]\\(https?:[^)]*\\)" (markdownRenderType .) "${1}" }}
{{- end -}}

{{- define "text" -}}
{{ markdownRenderFieldDoc . | replace "<br />" " " | replace "\\{" "{" | replace "\\}" "}" | trim }}
{{- end -}}

{{- define "bounds" -}}
{{- $all := list }}
{{- if not (regexMatch "^$|[{}]" .Default) }}{{ $all = append $all (printf "default %s" .Default) }}{{ end }}
{{- range .Validation }}
{{- $key := regexFind "^[A-Za-z:]+: " . }}
{{- $value := trimPrefix $key . | replace "|" "\\|" }}
{{- if eq $key "Minimum: " }}{{ $all = append $all (printf "≥ %d" (float64 $value | int64)) }}
{{- else if eq $key "Maximum: " }}{{ $all = append $all (printf "≤ %d" (float64 $value | int64)) }}
{{- else if eq $key "MinLength: " }}{{ $all = append $all (printf "≥ %s characters" $value) }}
{{- else if eq $key "MaxLength: " }}{{ $all = append $all (printf "≤ %s characters" $value) }}
{{- else if eq $key "MinItems: " }}{{ $all = append $all (printf "≥ %s items" $value) }}
{{- else if eq $key "MaxItems: " }}{{ $all = append $all (printf "≤ %s items" $value) }}
{{- else if eq $key "items:Minimum: " }}{{ $all = append $all (printf "each ≥ %s" $value) }}
{{- else if eq $key "items:Maximum: " }}{{ $all = append $all (printf "each ≤ %s" $value) }}
{{- else if eq $key "Pattern: " }}{{ $all = append $all $value }}
{{- end }}
{{- end }}
{{- join ", " ($all | uniq) }}
{{- end -}}
