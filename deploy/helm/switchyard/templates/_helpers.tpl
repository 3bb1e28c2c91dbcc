{{- define "switchyard.selectorLabels" -}}
app.kubernetes.io/name: {{ .Release.Name }}
app.kubernetes.io/component: {{ if .Values.observe }}observer{{ else }}node-agent{{ end }}
{{- end }}

{{- define "switchyard.labels" -}}
{{ include "switchyard.selectorLabels" . }}
{{ include "switchyard.releaseLabels" . }}
{{- end }}

{{- define "switchyard.gateSelectorLabels" -}}
app.kubernetes.io/name: {{ .Release.Name }}
app.kubernetes.io/component: drain-gate
{{- end }}

{{- define "switchyard.gateLabels" -}}
{{ include "switchyard.gateSelectorLabels" . }}
{{ include "switchyard.releaseLabels" . }}
{{- end }}

{{- define "switchyard.gateSubjects" -}}
subjects:
  - kind: ServiceAccount
    name: {{ .Release.Name }}-drain-gate
    namespace: {{ .Release.Namespace }}
{{- end }}

{{- define "switchyard.releaseLabels" -}}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "switchyard.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{ default .Release.Name .Values.serviceAccount.name }}
{{- else -}}
{{ required "serviceAccount.create is false: give serviceAccount.name" .Values.serviceAccount.name }}
{{- end -}}
{{- end }}

{{- define "switchyard.image" -}}
{{ default (printf "switchyard/agent-%s" (ternary "ebpf" .Values.dataplane .Values.observe)) .Values.image.repository }}:{{ default .Chart.AppVersion .Values.image.tag }}
{{- end }}

{{- /* The container's command, the same for both containers. */ -}}
{{- define "switchyard.command" -}}
- /usr/local/bin/kube-proxy
- --config=/var/lib/kube-proxy/config.conf
- --hostname-override=$(NODE_NAME)
{{- if .Values.settings }}
- --switchyard-config=/etc/switchyard/config.yaml
{{- end }}
{{- if .Values.observe }}
- --switchyard-observe
{{- else if eq .Values.dataplane "ebpf" }}
- --switchyard-ebpf-cgroup=/run/switchyard/cgroup
- --switchyard-ebpf-bpffs=/run/switchyard/bpf
{{- end }}
{{- with .Values.extraArgs }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "switchyard.env" -}}
- name: NODE_NAME
  valueFrom:
    fieldRef:
      fieldPath: spec.nodeName
{{- end }}

{{- /* Whether iptables-legacy may be used: `true`, or nothing. */ -}}
{{- define "switchyard.usesLegacyIptables" -}}
{{- if or .Values.removeLegacyIptablesRules (eq .Values.dataplane "iptables") -}}true{{- end -}}
{{- end }}

{{- /*
SYS_ADMIN enters pods' network namespaces and finds by id what an earlier agent left. For the kernel it includes BPF and PERFMON, which load
programs; older container runtimes refuse these two as unknown.
*/ -}}
{{- define "switchyard.capabilities" -}}
{{- $names := list "NET_ADMIN" }}
{{- if eq .Values.dataplane "ebpf" }}{{- $names = list "NET_ADMIN" "SYS_ADMIN" }}{{- end }}
{{- if include "switchyard.usesLegacyIptables" . }}{{- $names = append $names "NET_RAW" }}{{- end }}
{{- if .Values.drainGate }}{{- $names = append $names "SYS_PTRACE" }}{{- end }}
{{- printf "[%s]" (join ", " $names) }}
{{- end }}

{{- define "switchyard.configMounts" -}}
- name: kube-proxy
  mountPath: /var/lib/kube-proxy
  readOnly: true
{{- if .Values.settings }}
- name: switchyard
  mountPath: /etc/switchyard
  readOnly: true
{{- end }}
{{- end }}

{{- /* Parts that the pods of the agent and of the observer share. */ -}}
{{- define "switchyard.podMetadata" -}}
labels:
  {{- include "switchyard.selectorLabels" . | nindent 2 }}
  {{- with .Values.podLabels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- with .Values.podAnnotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "switchyard.podIdentity" -}}
serviceAccountName: {{ include "switchyard.serviceAccountName" . }}
{{ include "switchyard.pullSecrets" . }}
{{- end }}

{{- define "switchyard.pullSecrets" -}}
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "switchyard.podPlacement" -}}
{{- with .Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "switchyard.configVolumes" -}}
- name: kube-proxy
  configMap:
    name: {{ .Values.configMap.name }}
{{- if .Values.settings }}
- name: switchyard
  configMap:
    name: {{ .Release.Name }}
{{- end }}
{{- end }}
