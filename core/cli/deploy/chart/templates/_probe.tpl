{{- /* The gateway checks the host of a probe as of everybody. */ -}}
{{- define "probe" -}}
httpGet:
  path: /health
  port: gateway
  httpHeaders:
    - { name: Host, value: {{ .Values.host }} }
{{- end }}

{{- /* Succeeds where this process itself ends a connection that is none of a replica. */ -}}
{{- define "alive" -}}
exec:
  command:
    - node
    - -e
    - >-
      process.exitCode = 1;
      const socket = require('net').connect(8083, '127.0.0.1', () => {
      socket.on('close', () => { process.exitCode = 0 }).write('alive?\n') });
      socket.on('error', () => {}).resume()
{{- end }}
