{{/* The reference of one of the images: (list $ "operator") -> registry/repository:tag or @digest. */}}
{{- define "pretrain-operator.image" -}}
{{- $root := index . 0 }}
{{- $image := index $root.Values.image (index . 1) }}
{{- $registry := $image.registry | default $root.Values.image.registry }}
{{- $repository := $image.repository }}
{{- if $registry }}
{{- $repository = printf "%s/%s" $registry $image.repository }}
{{- end }}
{{- if $image.digest }}
{{- printf "%s@%s" $repository $image.digest }}
{{- else }}
{{- printf "%s:%s" $repository ($image.tag | default $root.Values.image.tag | default $root.Chart.AppVersion) }}
{{- end }}
{{- end }}
