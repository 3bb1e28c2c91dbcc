import type { Node, Service } from '@switchyard/core/kubernetes';
import { expect, test } from 'vitest';
import { detectCheck, namedCheck } from './detect-load-balancer.ts';

const on = (providerID: string): Node => ({ metadata: { name: 'n' }, spec: { providerID } });

function service(annotations: Readonly<Record<string, string>>, loadBalancerClass?: string): Service {
  const spec = loadBalancerClass === undefined ? {} : { loadBalancerClass };
  return { metadata: { name: 'web', annotations }, spec };
}

test.each<[what: string, subject: Service, node: Node, profile: string]>([
  ['our annotation', service({ 'lb.switchyard.dev/health-check-profile': 'oci-lb' }), on('kind://x'), 'oci-lb'],
  ['our class', service({}, 'switchyard.dev/lb'), on('kind://x'), 'cloud-provider-kind'],
  ['the class of the AWS controller', service({}, 'service.k8s.aws/nlb'), on('aws:///eu/i-1'), 'aws-nlb'],
  [
    'its annotation',
    service({ 'service.beta.kubernetes.io/aws-load-balancer-type': 'external' }),
    on('aws:///eu/i-1'),
    'aws-nlb',
  ],
  ['nodes of kind', service({}), on('kind://docker/kind/kind-worker'), 'cloud-provider-kind-envoy'],
  ['nodes of Google', service({}), on('gce://p/europe-west1-b/n'), 'google-nlb'],
  ['nodes of Azure', service({}), on('azure:///subscriptions/x'), 'azure-lb'],
  ['nodes of DigitalOcean', service({}), on('digitalocean://1'), 'digitalocean-lb'],
  ['nodes of Oracle', service({}), on('ocid1.instance.oc1.phx.abc'), 'oci-lb'],
])('detects the load balancer by %s', (_, subject, node, profile) => {
  expect(detectCheck(subject, [node]).check.name).toBe(profile);
});

test.each<[what: string, subject: Service, node: Node, shown: string]>([
  ['another class', service({}, 'metallb'), on('gce://x'), 'of class metallb'],
  ['nodes of AWS, which may have a classic one', service({}), on('aws:///eu/i-1'), 'on nodes of aws'],
  ['nodes without a provider', service({}), { metadata: { name: 'n' } }, 'on nodes of no known provider'],
])('does not guess with %s', (_, subject, node, shown) => {
  expect(() => detectCheck(subject, [node])).toThrow(`its load balancer ${shown} is not known; name one`);
});

test('a name that is no profile is refused', () => {
  expect(namedCheck('google-nlb').check).toMatchObject({ name: 'google-nlb', fall: 3 });
  expect(() => namedCheck('elb')).toThrow(/--load-balancer "elb": not one of cloud-provider-kind, /);
});
