import { ConfigError } from '@switchyard/core';
import type { Node, Service } from '@switchyard/core/kubernetes';
import { type KnownCheck, knownChecks } from '@switchyard/loss';
import type { NamedCheck } from '@switchyard/loss/workload';

/** Health checks of a Service's load balancer, and what shows them. */
export interface DetectedCheck {
  readonly check: NamedCheck;
  readonly from: string;
}

/** Reads `--load-balancer PROFILE`. Throws `ConfigError`. */
export function namedCheck(profile: string): DetectedCheck {
  if (!isKnown(profile)) {
    const known = Object.keys(knownChecks).join(', ');
    throw new ConfigError('rollout.load-balancer', `--load-balancer ${JSON.stringify(profile)}: not one of ${known}`);
  }
  return checkOf(profile, '--load-balancer');
}

const byClass: Readonly<Record<string, KnownCheck>> = {
  'switchyard.dev/lb': 'cloud-provider-kind',
  'service.k8s.aws/nlb': 'aws-nlb',
  'eks.amazonaws.com/nlb': 'aws-nlb',
};

/** Schemes of `spec.providerID`. On AWS the provider is not enough: it has classic load balancers too. */
const byProvider: Readonly<Record<string, KnownCheck>> = {
  kind: 'cloud-provider-kind-envoy',
  gce: 'google-nlb',
  azure: 'azure-lb',
  digitalocean: 'digitalocean-lb',
  oci: 'oci-lb',
  ocid1: 'oci-lb',
};

/** Finds the health checks by annotation, class and the nodes' provider. Throws `ConfigError` that says how to name them. */
export function detectCheck({ metadata, spec }: Service, nodes: readonly Node[]): DetectedCheck {
  const annotations = metadata.annotations ?? {};
  const profile = annotations['lb.switchyard.dev/health-check-profile'];
  if (profile !== undefined && isKnown(profile)) return checkOf(profile, 'annotation health-check-profile');
  const loadBalancerClass = spec?.loadBalancerClass;
  const known = byClass[loadBalancerClass ?? ''];
  if (known !== undefined) return checkOf(known, `loadBalancerClass ${loadBalancerClass}`);
  const type = annotations['service.beta.kubernetes.io/aws-load-balancer-type'];
  if (type === 'external' || type === 'nlb-ip') return checkOf('aws-nlb', `annotation aws-load-balancer-type ${type}`);
  const provider = nodes.flatMap((node) => /^(\w+?)(:|\.)/.exec(node.spec?.providerID ?? '')?.[1] ?? [])[0];
  const usual = byProvider[provider ?? ''];
  if (usual !== undefined && loadBalancerClass === undefined) return checkOf(usual, `the nodes' provider ${provider}`);
  const shown =
    loadBalancerClass === undefined
      ? `on nodes of ${provider ?? 'no known provider'}`
      : `of class ${loadBalancerClass}`;
  throw new ConfigError(
    'rollout.load-balancer',
    `Service ${metadata.name} has externalTrafficPolicy Local, and its load balancer ${shown} is not known; ` +
      `name one that checks as often: --load-balancer ${Object.keys(knownChecks).join('|')}`,
  );
}

function checkOf(name: KnownCheck, from: string): DetectedCheck {
  return { check: { name, ...knownChecks[name] }, from };
}

function isKnown(name: string): name is KnownCheck {
  return Object.hasOwn(knownChecks, name);
}
