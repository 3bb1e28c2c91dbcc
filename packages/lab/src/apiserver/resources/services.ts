import { type Json, type JsonObject, listAt, numberAt, objectAt, stringAt } from '../json.ts';
import { defineResource, type ResourceDefinition } from '../resource.ts';
import { ageColumn, column, nameColumn, orNone, pairsText, textSelectors } from './common.ts';
import { serviceClaims, serviceSpec, setServiceDefaults, setServiceStatusDefaults } from './service-defaults.ts';
import { validateService } from './service-validation.ts';
import * as t from '../schema.ts';

/** v1 Service. */
export const services: ResourceDefinition = defineResource({
  kind: 'Service',
  shortNames: ['svc'],
  categories: ['all'],
  isNamespaced: true,
  subresources: ['status'],
  schema: t.topLevel('Service', {
    spec: serviceSpec,
    status: t.object('ServiceStatus', {
      loadBalancer: t.object('LoadBalancerStatus', {
        ingress: t.list(
          t.object('LoadBalancerIngress', {
            ip: t.text,
            hostname: t.text,
            ipMode: t.textPointer,
            ports: t.list(t.object('PortStatus', { port: t.intPointer, protocol: t.text, error: t.textPointer })),
          }),
        ),
      }),
      conditions: t.listByKey('type', t.metaCondition),
    }),
  }),
  nameRule: 'label',
  fieldSelectors: textSelectors('spec.clusterIP', 'spec.type'),
  setDefaults: setServiceDefaults,
  setStatusDefaults: setServiceStatusDefaults,
  validate: validateService,
  initialStatus: () => ({ loadBalancer: {} }),
  bookmarkShell: { spec: {}, status: { loadBalancer: {} } },
  claims: serviceClaims,
  returnsDeleted: true,
  columns: [
    nameColumn,
    column('Type', (object) => stringAt(object, 'spec', 'type')),
    column('Cluster-IP', (object) => orNone(stringAt(object, 'spec', 'clusterIP'))),
    column('External-IP', externalText),
    column('Port(s)', portsText),
    ageColumn,
    column('Selector', (object) => pairsText(objectAt(object, 'spec', 'selector')), 1),
  ],
});

function externalText(object: JsonObject): string {
  const spec = objectAt(object, 'spec');
  const external = listAt(spec, 'externalIPs').map(String);
  if (spec['type'] === 'ExternalName') return orNone(stringAt(spec, 'externalName'));
  if (spec['type'] !== 'LoadBalancer') return orNone(external.join(','));
  const ingress = listAt(object, 'status', 'loadBalancer', 'ingress').map(
    (entry) => stringAt(entry, 'ip') || stringAt(entry, 'hostname'),
  );
  const all = [...ingress, ...external];
  return all.length === 0 ? '<pending>' : all.join(',');
}

function portsText(object: JsonObject): string {
  return orNone(listAt(object, 'spec', 'ports').map(portText).join(','));
}

function portText(port: Json): string {
  const nodePort = numberAt(port, 'nodePort');
  const number = String(numberAt(port, 'port'));
  const protocol = stringAt(port, 'protocol');
  return nodePort === undefined ? `${number}/${protocol}` : `${number}:${nodePort}/${protocol}`;
}
