#!/bin/sh
# Installs Cilium with its replacement of kube-proxy into the kind cluster `conformance`. Needs helm and kubectl.
set -eu
helm install cilium cilium --repo https://helm.cilium.io --namespace kube-system --wait --timeout 10m \
  --set kubeProxyReplacement=true --set k8sServiceHost=conformance-control-plane --set k8sServicePort=6443 \
  --set ipam.mode=kubernetes --set operator.replicas=1
