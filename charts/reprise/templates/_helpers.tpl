{{- /* SPDX-License-Identifier: Apache-2.0 */ -}}

{{- /* The first part of every name. A release named reprise gives the names of config/default. */ -}}
{{- define "reprise.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "reprise.labels" -}}
app.kubernetes.io/name: reprise
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | trunc 63 | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{- end -}}

{{- /* Those of config/: a selector cannot be changed, and so an installation by kustomize can become one by Helm. */ -}}
{{- define "reprise.selectorLabels" -}}
app.kubernetes.io/name: reprise
app.kubernetes.io/component: manager
{{- end -}}

{{- define "reprise.serviceAccountName" -}}
{{- if .Values.serviceAccount.name -}}
{{- .Values.serviceAccount.name -}}
{{- else if .Values.serviceAccount.create -}}
{{- printf "%s-manager" (include "reprise.fullname" .) -}}
{{- else -}}
{{- fail "serviceAccount.name: name the account to use, or let serviceAccount.create make one" -}}
{{- end -}}
{{- end -}}

{{- define "reprise.subjects" -}}
- kind: ServiceAccount
  name: {{ include "reprise.serviceAccountName" . }}
  namespace: {{ .Release.Namespace }}
{{- end -}}

{{- define "reprise.image" -}}
{{- if .Values.image.digest -}}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest -}}
{{- else -}}
{{- printf "%s:%s" .Values.image.repository (.Values.image.tag | default .Chart.AppVersion) -}}
{{- end -}}
{{- end -}}

{{- define "reprise.leaseNamespace" -}}
{{- .Values.leaderElection.namespace | default .Release.Namespace -}}
{{- end -}}

{{- /* Whether the manager may ask the API server who somebody is and what they may do; empty if not. */ -}}
{{- define "reprise.reviews" -}}
{{- if or (not .Values.namespaces) .Values.rbac.reviews -}}true{{- end -}}
{{- end -}}

{{- define "reprise.metrics" -}}
{{- if eq (toString .Values.metrics.enabled) "auto" -}}
{{- if or (not .Values.metrics.secure) (include "reprise.reviews" .) -}}true{{- end -}}
{{- else if .Values.metrics.enabled -}}true
{{- end -}}
{{- end -}}

{{- define "reprise.metricsService" -}}
{{- if or .Values.metrics.service.enabled .Values.metrics.serviceMonitor.enabled -}}true{{- end -}}
{{- end -}}

{{- define "reprise.direct" -}}
{{- if eq (toString .Values.direct.enabled) "auto" -}}
{{- include "reprise.reviews" . -}}
{{- else if .Values.direct.enabled -}}true
{{- end -}}
{{- end -}}

{{- /* What the schema cannot say. */ -}}
{{- define "reprise.validate" -}}
{{- if and (not .Values.leaderElection.enabled) (gt (int .Values.replicas) 1) -}}
{{- fail "replicas: without leaderElection.enabled there may be one at most" -}}
{{- end -}}
{{- if and (include "reprise.direct" .) (not (include "reprise.reviews" .)) -}}
{{- fail "direct.enabled: with namespaces, the manager needs rbac.reviews to know who asks" -}}
{{- end -}}
{{- if and (include "reprise.metrics" .) .Values.metrics.secure (not (include "reprise.reviews" .)) -}}
{{- fail "metrics.enabled: with namespaces, the manager needs rbac.reviews to know who asks, or metrics.secure off" -}}
{{- end -}}
{{- if and (include "reprise.metricsService" .) (not (include "reprise.metrics" .)) -}}
{{- fail "metrics.service.enabled, metrics.serviceMonitor.enabled: metrics are off" -}}
{{- end -}}
{{- end -}}

{{- define "reprise.certVolume" -}}
{{- if and (include "reprise.direct" .) .Values.direct.certSecret -}}
- name: direct-cert
  secret:
    secretName: {{ .Values.direct.certSecret }}
{{- end -}}
{{- end -}}
