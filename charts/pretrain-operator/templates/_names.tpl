{{/* Names and labels. Names leave room for the longest suffix, so that none is over 63 characters. */}}

{{- define "pretrain-operator.name" -}}
{{- .Values.nameOverride | default .Chart.Name | trunc 40 | trimSuffix "-" }}
{{- end }}

{{- define "pretrain-operator.fullname" -}}
{{- $name := include "pretrain-operator.name" . }}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" }}
{{- else if contains $name .Release.Name }}
{{- .Release.Name | trunc 40 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name $name | trunc 40 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- define "pretrain-operator.serviceAccountName" -}}
{{- if .Values.serviceAccount.create }}
{{- .Values.serviceAccount.name | default (include "pretrain-operator.fullname" .) }}
{{- else }}
{{- .Values.serviceAccount.name | default "default" }}
{{- end }}
{{- end }}

{{- define "pretrain-operator.leaseName" -}}
{{- .Values.lease.name | default (include "pretrain-operator.fullname" .) }}
{{- end }}

{{- define "pretrain-operator.selectorLabels" -}}
app.kubernetes.io/name: {{ include "pretrain-operator.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: operator
{{- end }}

{{/* Labels of every object. Children of jobs are told apart by managed-by, which is Helm here. */}}
{{- define "pretrain-operator.labels" -}}
{{- include "pretrain-operator.labelsAnd" (list . dict) }}
{{- end }}

{{/* The same with labels of one object: (list $ labels). */}}
{{- define "pretrain-operator.labelsAnd" -}}
{{- $root := index . 0 -}}
helm.sh/chart: {{ printf "%s-%s" $root.Chart.Name $root.Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/name: {{ include "pretrain-operator.name" $root }}
app.kubernetes.io/instance: {{ $root.Release.Name }}
app.kubernetes.io/version: {{ $root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ $root.Release.Service }}
app.kubernetes.io/part-of: pretrain-operator
{{- with merge (dict) (index . 1) $root.Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}
