import type { Lab, LabNode, LabPod } from '../../lab.ts';

/** Network namespace of a pod's containers. */
export interface PodPlace {
  readonly host: LabPod;
  /** Removes the pod's namespace. Call it after the pod's processes have ended. */
  remove(): Promise<void>;
}

/** A namespace of the pod's own. */
export function podPlace(lab: Lab, host: LabPod): PodPlace {
  return { host, remove: () => lab.removePod(host) };
}

/** `hostNetwork: true`: the pod is in its node's namespace and has the node's addresses; there is nothing to remove. */
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
