{{- /* The gateway checks the host of a probe as of everybody. */ -}}
{{- define "probe" -}}
httpGet:
  path: /health
  port: gateway
  httpHeaders:
    - { name: Host, value: {{ .Values.host }} }
{{- end }}
