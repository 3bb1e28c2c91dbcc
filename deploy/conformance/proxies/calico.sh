#!/bin/sh
# Installs Calico with its eBPF dataplane, which replaces kube-proxy, into the kind cluster `conformance`. Needs helm and kubectl.
set -eu
kubectl create namespace tigera-operator
kubectl create configmap kubernetes-services-endpoint --namespace tigera-operator \
  --from-literal=KUBERNETES_SERVICE_HOST=conformance-control-plane --from-literal=KUBERNETES_SERVICE_PORT=6443
helm install calico tigera-operator --repo https://docs.tigera.io/calico/charts --namespace tigera-operator --wait --timeout 10m \
  --set installation.calicoNetwork.linuxDataplane=BPF --set installation.calicoNetwork.bgp=Disabled \
  --set 'installation.calicoNetwork.ipPools[0].cidr=10.244.0.0/16' --set 'installation.calicoNetwork.ipPools[0].encapsulation=VXLAN'
kubectl wait --for=create daemonset/calico-node --namespace calico-system --timeout 5m
kubectl rollout status daemonset/calico-node --namespace calico-system --timeout 10m
