{{- /* Written by hack/chart.sh, with make manifests. SPDX-License-Identifier: Apache-2.0 */ -}}

{{- define "reprise.rules.role" -}}
- apiGroups:
  - ""
  resources:
  - pods
  verbs:
  - get
  - list
  - watch
- apiGroups:
  - ""
  resources:
  - secrets
  verbs:
  - get
- apiGroups:
  - authentication.k8s.io
  resources:
  - tokenreviews
  verbs:
  - create
- apiGroups:
  - authorization.k8s.io
  resources:
  - subjectaccessreviews
  verbs:
  - create
- apiGroups:
  - batch
  resources:
  - jobs
  verbs:
  - create
  - get
  - list
  - patch
  - watch
- apiGroups:
  - batch.reprise.dev
  resources:
  - directreservations
  verbs:
  - create
  - delete
  - get
  - list
  - update
  - watch
- apiGroups:
  - batch.reprise.dev
  resources:
  - directreservations/status
  - jobgroups/status
  - jobqueues/status
  - jobruns/status
  - scheduledjobs/status
  verbs:
  - update
- apiGroups:
  - batch.reprise.dev
  resources:
  - jobgroups
  - jobruns
  verbs:
  - create
  - delete
  - get
  - list
  - watch
- apiGroups:
  - batch.reprise.dev
  resources:
  - jobqueues
  verbs:
  - create
  - get
  - list
  - watch
- apiGroups:
  - batch.reprise.dev
  resources:
  - queueledgers
  verbs:
  - create
  - get
  - update
- apiGroups:
  - batch.reprise.dev
  resources:
  - scheduledjobs
  verbs:
  - delete
  - get
  - list
  - watch
- apiGroups:
  - coordination.k8s.io
  resources:
  - leases
  verbs:
  - get
- apiGroups:
  - events.k8s.io
  resources:
  - events
  verbs:
  - create
{{- end -}}

{{- define "reprise.rules.leader_election_role" -}}
- apiGroups:
  - coordination.k8s.io
  resources:
  - leases
  verbs:
  - create
- apiGroups:
  - coordination.k8s.io
  resources:
  - leases
  resourceNames:
  - reprise-manager
  verbs:
  - get
  - update
{{- end -}}

{{- define "reprise.rules.admin_role" -}}
- apiGroups:
  - batch.reprise.dev
  resources:
  - jobqueues
  verbs:
  - create
  - delete
  - deletecollection
  - patch
  - update
{{- end -}}

{{- define "reprise.rules.editor_role" -}}
- apiGroups:
  - batch.reprise.dev
  resources:
  - directreservations
  - jobgroups
  - jobruns
  - scheduledjobs
  verbs:
  - create
  - delete
  - deletecollection
  - patch
  - update
{{- end -}}

{{- define "reprise.rules.viewer_role" -}}
- apiGroups:
  - batch.reprise.dev
  resources:
  - directreservations
  - jobgroups
  - jobqueues
  - jobruns
  - scheduledjobs
  verbs:
  - get
  - list
  - watch
- apiGroups:
  - batch.reprise.dev
  resources:
  - queueledgers
  verbs:
  - get
  - list
- apiGroups:
  - batch
  resources:
  - cronjobs
  - jobs
  verbs:
  - get
  - list
  - watch
- apiGroups:
  - ""
  resources:
  - pods
  - pods/log
  verbs:
  - get
  - list
  - watch
{{- end -}}

{{- define "reprise.rules.metrics_reader_role" -}}
- nonResourceURLs:
  - /metrics
  verbs:
  - get
{{- end -}}

{{- define "reprise.rules.kube_state_metrics_role" -}}
- apiGroups:
  - apiextensions.k8s.io
  resources:
  - customresourcedefinitions
  verbs:
  - list
  - watch
- apiGroups:
  - batch.reprise.dev
  resources:
  - jobqueues
  - scheduledjobs
  verbs:
  - list
  - watch
{{- end -}}

{{- define "reprise.egress" -}}
- namespaceSelector: {} # some networks do not count pods as part of a range
- ipBlock:
    cidr: 0.0.0.0/0
    except:
    - 169.254.0.0/16
    - 100.100.100.200/32
    - 168.63.129.16/32
    - 192.0.0.192/32
- ipBlock:
    cidr: ::/0
    except:
    - fe80::/10
    - fd00:ec2::/32
    - fd20:ce::254/128
    - fd00:c1::a9fe:a9fe/128
    - fd00:42::42/128
{{- end -}}
