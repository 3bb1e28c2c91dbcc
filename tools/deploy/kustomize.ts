import { join } from 'node:path';
import { debianRoot } from '../debian/debian-root.ts';
import { runProgram } from '../debian/run-program.ts';
import { root } from '../workspace.ts';
import { type KubeObject, parseManifests } from './kube-object.ts';

/** Names of the folders below deploy/kustomize/overlays. */
export const overlays = [
  'nftables',
  'iptables',
  'ebpf',
  'custom-settings',
  'standalone',
  'replace-kubeadm',
  'clean-up',
  'observer',
  'drain-gate',
  'drain-gate-observer',
  'readiness-gate',
] as const;

export type Overlay = (typeof overlays)[number];

/** Objects of an overlay as `kubectl kustomize` renders it. `kubectl` is the program, the one in PATH if not given. */
export async function renderKustomize(
  overlay: Overlay,
  signal: AbortSignal,
  kubectl: string = 'kubectl',
): Promise<readonly KubeObject[]> {
  const { stdout } = await runProgram(kubectl, ['kustomize', overlayFolder(overlay)], { signal });
  return parseManifests(stdout);
}

/** Absolute path, for `kubectl apply -k`. */
function overlayFolder(overlay: Overlay): string {
  return join(root, 'deploy/kustomize/overlays', overlay);
}

/** Debian's kubectl, which is the oldest that has to do: 1.20 in Debian 12. It may be newer than the one in PATH. */
export async function debianKubectl(signal: AbortSignal): Promise<string> {
  return join(await debianRoot({ packages: ['kubernetes-client'], exclude: ['libc6'], signal }), 'usr/bin/kubectl');
}
