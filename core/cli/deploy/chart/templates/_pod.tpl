{{- define "pod" -}}
{{- $replicas := .Values.replicas -}}
metadata:
  labels: { app: {{ .Release.Name }} }
  annotations:
    checksum/config: {{ include (print $.Template.BasePath "/configmap.yaml") . | sha256sum }}
spec:
  automountServiceAccountToken: false
  enableServiceLinks: false
  {{- if $replicas.enabled }}
  terminationGracePeriodSeconds: 75 # more than `limits.drain_ms`, the 10 s in which witnesses are told, and `preStop`
  topologySpreadConstraints:
    - maxSkew: 1
      topologyKey: kubernetes.io/hostname
      whenUnsatisfiable: DoNotSchedule
      labelSelector: { matchLabels: { app: {{ .Release.Name }} } }
    - maxSkew: 1
      topologyKey: topology.kubernetes.io/zone
      whenUnsatisfiable: ScheduleAnyway
      labelSelector: { matchLabels: { app: {{ .Release.Name }} } }
  {{- else }}
  terminationGracePeriodSeconds: 60 # more than `limits.drain_ms` and the 10 s in which witnesses are told
  {{- end }}
  securityContext:
    runAsNonRoot: true
    runAsUser: 10001
    runAsGroup: 10001
    fsGroup: 10001
    fsGroupChangePolicy: OnRootMismatch
    seccompProfile: { type: RuntimeDefault }
  containers:
    - name: gateway
      image: "{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}"
      imagePullPolicy: {{ .Values.image.pullPolicy }}
      envFrom:
        - secretRef: { name: {{ .Values.keysSecret }} }
        {{- if $replicas.enabled }}
        - secretRef: { name: {{ $replicas.databaseSecret }} }
        {{- end }}
      {{- if $replicas.enabled }}
      env:
        - name: POD_IP
          valueFrom: { fieldRef: { fieldPath: status.podIP } }
      lifecycle: # new connections go elsewhere before it stops
        preStop: { exec: { command: [sleep, "10"] } }
      {{- end }}
      ports:
        - { name: gateway, containerPort: 8080 }
        - { name: admin, containerPort: 8081 }
        - { name: metrics, containerPort: 8082 }
        {{- if $replicas.enabled }}
        - { name: replica, containerPort: 8083 }
        {{- end }}
      securityContext:
        allowPrivilegeEscalation: false
        readOnlyRootFilesystem: true
        capabilities: { drop: [ALL] }
      {{- if $replicas.enabled }}
      startupProbe:
        {{- include "alive" . | nindent 8 }}
        periodSeconds: 2
        timeoutSeconds: 5
        failureThreshold: 30
      livenessProbe: # of this process alone: no restart brings a database or an owner back
        {{- include "alive" . | nindent 8 }}
        periodSeconds: 10
        timeoutSeconds: 5
        failureThreshold: 6
      readinessProbe: # the owner answers it, and fails it where it could not renew its lease
        {{- include "probe" . | nindent 8 }}
        periodSeconds: 5
        timeoutSeconds: 2
        failureThreshold: 5 # as long as a connection waits for an owner, so that a takeover leaves the Service its addresses
      {{- else }}
      startupProbe: # chains are read back at the start
        {{- include "probe" . | nindent 8 }}
        periodSeconds: 2
        failureThreshold: 150
      livenessProbe:
        {{- include "probe" . | nindent 8 }}
        periodSeconds: 10
        timeoutSeconds: 5
        failureThreshold: 6
      readinessProbe:
        {{- include "probe" . | nindent 8 }}
        periodSeconds: 5
        timeoutSeconds: 2
      {{- end }}
      resources:
        {{- toYaml .Values.resources | nindent 8 }}
      volumeMounts:
        - { name: data, mountPath: /var/lib/gateway }
        {{- if not $replicas.enabled }}
        - { name: mark, mountPath: /var/lib/gateway-mark }
        {{- end }}
        - { name: config, mountPath: /etc/gateway, readOnly: true }
        - { name: tmp, mountPath: /tmp }
  volumes:
    {{- if not $replicas.enabled }}
    - name: data
      persistentVolumeClaim: { claimName: {{ .Release.Name }}-data }
    - name: mark
      persistentVolumeClaim: { claimName: {{ .Release.Name }}-mark }
    {{- end }}
    - name: config
      configMap: { name: {{ .Release.Name }} }
    - name: tmp
      emptyDir: { sizeLimit: 256Mi }
{{- end }}
