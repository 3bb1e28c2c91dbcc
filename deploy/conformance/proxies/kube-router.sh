#!/bin/sh
# Installs kube-router with its Service proxy (IPVS) into the kind cluster `conformance`. Needs kubectl. The manifest reads
# kube-proxy's kubeconfig from its ConfigMap, which kind does not make without kube-proxy.
set -eu
manifest=https://raw.githubusercontent.com/cloudnativelabs/kube-router/master/daemonset/kubeadm-kuberouter-all-features.yaml
kubectl config view --flatten --minify | sed 's|server: .*|server: https://conformance-control-plane:6443|' >kubeconfig.conf
kubectl create configmap kube-proxy --namespace kube-system --from-file=kubeconfig.conf
rm kubeconfig.conf
kubectl apply -f "$manifest"
kubectl rollout status daemonset/kube-router --namespace kube-system --timeout 10m
