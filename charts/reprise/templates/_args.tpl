{{- /* SPDX-License-Identifier: Apache-2.0 */ -}}

{{- /* A flag for each value that differs from what the manager does by itself. The first ones are as in config/. */ -}}
{{- define "reprise.args" -}}
- --leader-elect{{ if not .Values.leaderElection.enabled }}=false{{ end }}
{{- with .Values.namespaces }}
- --namespaces={{ join "," . }}
{{- end }}
- --health-probe-bind-address=:{{ .Values.probes.port }}
- --metrics-bind-address={{ if include "reprise.metrics" . }}:{{ .Values.metrics.port }}{{ else }}0{{ end }}
{{- if and (include "reprise.metrics" .) (not .Values.metrics.secure) }}
- --metrics-secure=false
{{- end }}
{{- if include "reprise.direct" . }}
- --direct-bind-address=:{{ .Values.direct.port }}
{{- if .Values.direct.certSecret }}
- --direct-cert-dir=/etc/reprise/direct
{{- end }}
{{- end }}
{{- if not .Values.recovery.cleanupStaleOnStartup }}
- --cleanup-stale-on-startup=false
{{- end }}
{{- if .Values.log.development }}
- --zap-devel
{{- end }}
{{- if ne (toString .Values.startup.burstLimit) "<nil>" }}
- --startup-burst-limit={{ int .Values.startup.burstLimit }}
{{- end }}
{{- with .Values.allowOutgoing }}
- {{ printf "--allow-outgoing-cidr=%s" (join "," .) | quote }}
{{- end }}
{{- include "reprise.texts" . }}
{{- range .Values.extraArgs }}
- {{ . | quote }}
{{- end }}
{{- end -}}

{{- define "reprise.texts" -}}
{{- $flags := list
  (list "direct-audience" .Values.direct.audience)
  (list "leader-elect-namespace" .Values.leaderElection.namespace)
  (list "leader-elect-lease-duration" .Values.leaderElection.leaseDuration)
  (list "leader-elect-renew-deadline" .Values.leaderElection.renewDeadline)
  (list "leader-elect-retry-period" .Values.leaderElection.retryPeriod)
  (list "startup-window" .Values.startup.window)
  (list "startup-stagger" .Values.startup.stagger)
  (list "recovery-policy" .Values.recovery.policy)
  (list "http-timeout" .Values.httpTimeout)
  (list "drain-timeout" .Values.drainTimeout)
  (list "zap-log-level" (toString .Values.log.level))
  (list "zap-encoder" .Values.log.encoder)
  (list "zap-stacktrace-level" .Values.log.stacktraceLevel)
  (list "zap-time-encoding" .Values.log.timeEncoding)
-}}
{{- range $flags }}
{{- if index . 1 }}
- {{ printf "--%s=%s" (index . 0) (index . 1) | quote }}
{{- end }}
{{- end }}
{{- end -}}
