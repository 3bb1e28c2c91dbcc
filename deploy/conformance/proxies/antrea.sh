#!/bin/sh
# Installs Antrea with AntreaProxy for all Service traffic into the kind cluster `conformance`. Needs helm and kubectl.
set -eu
helm install antrea antrea --repo https://charts.antrea.io --namespace kube-system --wait --timeout 10m \
  --set antreaProxy.proxyAll=true --set kubeAPIServerOverride=https://conformance-control-plane:6443
