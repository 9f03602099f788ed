{{/* Stops with one line where a switch needs a kind that the cluster does not serve. */}}
{{- define "pretrain-operator.requireMonitor" -}}
{{- $root := index . 0 }}
{{- $switch := index . 1 }}
{{- $kind := index . 2 }}
{{- if not ($root.Capabilities.APIVersions.Has (printf "monitoring.coreos.com/v1/%s" $kind)) }}
{{- fail (printf "%s.enabled needs the CRD %ss.monitoring.coreos.com, which this cluster does not serve: install the Prometheus Operator first, or set %s.enabled=false" $switch (lower $kind) $switch) }}
{{- end }}
{{- end }}
