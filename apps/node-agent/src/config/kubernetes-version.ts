/** Kubernetes release whose kube-proxy this agent emulates. */
export const kubernetesVersion = { major: 1, minor: 36 } as const;

/** `1.36`. */
export const kubernetesRelease: string = `${kubernetesVersion.major}.${kubernetesVersion.minor}`;
