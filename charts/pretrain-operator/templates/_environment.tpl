{{/* Where the operator lives and what it looks at; the test pod of the chart needs the same. */}}
{{- define "pretrain-operator.placeEnvironment" -}}
- name: PRETRAIN_OPERATOR_NAMESPACES
  value: {{ join "," .Values.watchNamespaces | quote }}
- name: PRETRAIN_OPERATOR_POD_NAMESPACE
  valueFrom:
    fieldRef:
      fieldPath: metadata.namespace
- name: PRETRAIN_OPERATOR_LEASE_NAME
  value: {{ include "pretrain-operator.leaseName" . }}
{{- end }}

{{/* Everything that the operator reads, in the order of the values. */}}
{{- define "pretrain-operator.environment" -}}
{{ include "pretrain-operator.placeEnvironment" . }}
- name: PRETRAIN_OPERATOR_POD_NAME
  valueFrom:
    fieldRef:
      fieldPath: metadata.name
- name: PRETRAIN_OPERATOR_LEASE_SECONDS
  value: {{ .Values.lease.seconds | quote }}
- name: PRETRAIN_OPERATOR_HTTP_PORT
  value: {{ .Values.metrics.port | quote }}
- name: PRETRAIN_OPERATOR_POLL_SECONDS
  value: {{ .Values.pollSeconds | quote }}
- name: PRETRAIN_OPERATOR_RESYNC_SECONDS
  value: {{ .Values.resyncSeconds | quote }}
- name: PRETRAIN_OPERATOR_LOG_LEVEL
  value: {{ .Values.logging.level }}
- name: PRETRAIN_OPERATOR_LOG_FORMAT
  value: {{ .Values.logging.format }}
- name: PRETRAIN_OPERATOR_IMAGE
  value: {{ include "pretrain-operator.image" (list . "operator") }}
- name: PRETRAIN_PREPROCESS_IMAGE
  value: {{ include "pretrain-operator.image" (list . "preprocess") }}
- name: PRETRAIN_TRAIN_IMAGE
  value: {{ include "pretrain-operator.image" (list . "train") }}
- name: PRETRAIN_IMAGE_PULL_POLICY
  value: {{ .Values.image.pullPolicy }}
{{- with .Values.childLabels }}
- name: PRETRAIN_CHILD_LABELS
  value: {{ toJson . | quote }}
{{- end }}
{{- with .Values.defaultStorage.uri }}
- name: PRETRAIN_DEFAULT_STORAGE_URI
  value: {{ . | quote }}
{{- end }}
{{- with .Values.defaultStorage.endpointUrl }}
- name: PRETRAIN_DEFAULT_STORAGE_ENDPOINT_URL
  value: {{ . | quote }}
{{- end }}
{{- with .Values.defaultStorage.credentialsSecret }}
- name: PRETRAIN_DEFAULT_STORAGE_CREDENTIALS_SECRET
  value: {{ . | quote }}
{{- end }}
{{- with .Values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end }}
