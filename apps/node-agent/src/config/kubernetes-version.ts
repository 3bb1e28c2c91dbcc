/** The Kubernetes whose kube-proxy this agent stands in for. */
export const kubernetesVersion = { major: 1, minor: 36 } as const;

/** `1.36`. */
export const kubernetesRelease: string = `${kubernetesVersion.major}.${kubernetesVersion.minor}`;
