{{/* What the operator asks of the API in a namespace with jobs, and nothing more. */}}
{{- define "pretrain-operator.rules" -}}
- apiGroups:
    - pretrain.dev
  resources:
    - pretrainjobs
  verbs:
    - list
    - watch
    - delete
- apiGroups:
    - pretrain.dev
  resources:
    - pretrainjobs/status
  verbs:
    - patch
- apiGroups:
    - batch
  resources:
    - jobs
  verbs:
    - list
    - watch
    - create
    - patch
    - delete
- apiGroups:
    - ""
  resources:
    - services
    - configmaps
  verbs:
    - list
    - watch
    - create
    - patch
    - delete
- apiGroups:
    - ""
  resources:
    - pods
  verbs:
    - list
    - watch
- apiGroups:
    - ""
  resources:
    - events
  verbs:
    - list
    - watch
    - create
{{- end }}

{{/* The Lease in the operator's own namespace; a name cannot restrict its creation. */}}
{{- define "pretrain-operator.leaseRules" -}}
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
    - {{ include "pretrain-operator.leaseName" . }}
  verbs:
    - get
    - update
{{- end }}
