import type { Lab, LabNode, LabPod } from '../../lab.ts';

/** Where a pod's containers run. */
export interface PodPlace {
  readonly host: LabPod;
  /** Takes away what was made for the pod; its processes have ended. */
  remove(): Promise<void>;
}

/** A namespace of the pod's own. */
export function podPlace(lab: Lab, host: LabPod): PodPlace {
  return { host, remove: () => lab.removePod(host) };
}

/** `hostNetwork: true`: the pod is in its node's namespace and has the node's addresses; nothing is made for it. */
export function hostNetworkPod(node: LabNode, name: string): PodPlace {
  const { namespace, addresses } = node;
  const host: LabPod = {
    name,
    namespace,
    addresses,
    node,
    run: (file, args, options) => node.run(file, args, options),
    spawn: (file, args, options) => node.spawn(file, args, options),
  };
  return { host, remove: () => Promise.resolve() };
}
