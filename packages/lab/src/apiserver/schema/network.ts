import {
  flag,
  flagPointer,
  int,
  intOrString,
  intPointer,
  list,
  listByKey,
  metaCondition,
  nullableList,
  object,
  objectReference,
  type ObjectSchema,
  text,
  textList,
  textMap,
  textPointer,
  topLevel,
} from './schema.ts';

const servicePort = object('ServicePort', {
  name: text,
  protocol: text,
  appProtocol: textPointer,
  port: intPointer,
  targetPort: intOrString,
  nodePort: int,
});

/** v1 Service. */
export const serviceSchema: ObjectSchema = topLevel('Service', {
  spec: object('ServiceSpec', {
    ports: listByKey('port', servicePort),
    selector: textMap,
    clusterIP: text,
    clusterIPs: textList,
    type: text,
    externalIPs: textList,
    sessionAffinity: text,
    loadBalancerIP: text,
    loadBalancerSourceRanges: textList,
    externalName: text,
    externalTrafficPolicy: text,
    healthCheckNodePort: int,
    publishNotReadyAddresses: flag,
    sessionAffinityConfig: object('SessionAffinityConfig', {
      clientIP: object('ClientIPConfig', { timeoutSeconds: intPointer }),
    }),
    ipFamilies: textList,
    ipFamilyPolicy: textPointer,
    allocateLoadBalancerNodePorts: flagPointer,
    loadBalancerClass: textPointer,
    internalTrafficPolicy: textPointer,
    trafficDistribution: textPointer,
  }),
  status: object('ServiceStatus', {
    loadBalancer: object('LoadBalancerStatus', {
      ingress: list(
        object('LoadBalancerIngress', {
          ip: text,
          hostname: text,
          ipMode: textPointer,
          ports: list(object('PortStatus', { port: intPointer, protocol: text, error: textPointer })),
        }),
      ),
    }),
    conditions: listByKey('type', metaCondition),
  }),
});

const namedHint = (type: string): ObjectSchema => object(type, { name: text });

const endpointPort = object('EndpointPort', {
  name: textPointer,
  protocol: textPointer,
  port: intPointer,
  appProtocol: textPointer,
});

const endpointFields = {
  addresses: textList,
  conditions: object('EndpointConditions', {
    ready: flagPointer,
    serving: flagPointer,
    terminating: flagPointer,
  }),
  hostname: textPointer,
  targetRef: objectReference,
  nodeName: textPointer,
  hints: object('EndpointHints', { forZones: list(namedHint('ForZone')), forNodes: list(namedHint('ForNode')) }),
};

/** discovery.k8s.io/v1 EndpointSlice. */
export const endpointSliceSchema: ObjectSchema = topLevel('EndpointSlice', {
  addressType: text,
  endpoints: nullableList(object('Endpoint', { ...endpointFields, deprecatedTopology: textMap, zone: textPointer })),
  ports: nullableList(endpointPort),
});

/** discovery.k8s.io/v1beta1 EndpointSlice. */
export const betaEndpointSliceSchema: ObjectSchema = topLevel('EndpointSlice', {
  addressType: text,
  endpoints: nullableList(object('Endpoint', { ...endpointFields, topology: textMap })),
  ports: nullableList(endpointPort),
});

/** networking.k8s.io/v1 ServiceCIDR. */
export const serviceCidrSchema: ObjectSchema = topLevel('ServiceCIDR', {
  spec: object('ServiceCIDRSpec', { cidrs: textList }),
  status: object('ServiceCIDRStatus', { conditions: listByKey('type', metaCondition) }),
});
